// What graphs mean: every op is held against plain loops, or against a value that is known from elsewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "base/float16.h"
#include "relax/interp.h"
#include "relax/parse.h"
#include "relax/print.h"

namespace sator::relax {
namespace {

using runtime::Dims;
using runtime::Tensor;
using runtime::Value;

using Floats = std::vector<float>;

Ref<Tensor> floats(const Floats& values, const Dims& shape) { return Tensor::of(values, shape, f32); }
Ref<Tensor> longs(const std::vector<int64_t>& values, const Dims& shape) { return Tensor::of(values, shape, i64); }
Ref<Tensor> random(const Dims& shape, uint32_t seed = 1, float low = -2, float high = 2) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  Ref<Tensor> t = Tensor::empty(shape, f32);
  for (int64_t i = 0; i < t->num_elements(); ++i) t->data_as<float>()[i] = uniform(engine);
  return t;
}
Floats values(const Value& v) {
  const Tensor* t = v.as<Tensor>();
  if (!t || t->dtype() != f32) return {};
  return {t->data_as<float>(), t->data_as<float>() + t->num_elements()};
}

/// The value of one expression over x, y, z.
Value evaluate(const std::string& call, const std::vector<Value>& args, const std::string& prelude = "") {
  std::string params;
  const char* const kNames[] = {"x", "y", "z", "w"};
  for (size_t i = 0; i < args.size(); ++i) {
    const Tensor& t = *args[i].as<Tensor>();
    std::string shape;
    for (int64_t d : t.shape()) shape += text(d, ", ");
    params += text(i ? ", " : "", kNames[i], ": R.Tensor((", shape, "), \"", t.dtype(), "\")");
  }
  std::string program =
      "@R.function\ndef main(" + params + "):\n" + prelude + "    out = " + call + "\n    return out\n";
  GraphInterpreter interpreter(parse_module(program));
  return interpreter.call("main", args);
}

void expect_near(const Floats& got, const Floats& expected, float tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(got[i])) << what << " [" << i << "]";
    else
      EXPECT_NEAR(got[i], expected[i], tolerance * std::max(1.0f, std::abs(expected[i]))) << what << " [" << i << "]";
  }
}

// ---- Elementwise ----

TEST(Meaning, ElementwiseOps) {
  using Fn = double (*)(double);
  const std::pair<const char*, Fn> kOps[] = {
      {"R.abs(x)", [](double v) { return std::fabs(v); }},
      {"R.negative(x)", [](double v) { return -v; }},
      {"R.exp(x)", std::exp},
      {"R.log(R.abs(x))", [](double v) { return std::log(std::fabs(v)); }},
      {"R.sqrt(R.abs(x))", [](double v) { return std::sqrt(std::fabs(v)); }},
      {"R.rsqrt(R.abs(x))", [](double v) { return 1 / std::sqrt(std::fabs(v)); }},
      {"R.tanh(x)", std::tanh},
      {"R.sigmoid(x)", [](double v) { return 1 / (1 + std::exp(-v)); }},
      {"R.erf(x)", std::erf},
      {"R.sin(x)", std::sin},
      {"R.cos(x)", std::cos},
      {"R.floor(x)", std::floor},
      {"R.ceil(x)", std::ceil},
      {"R.round(x)", std::nearbyint},
      {"R.sign(x)", [](double v) { return v < 0   ? -1.0
                                          : v > 0 ? 1.0
                                                  : 0.0; }},
      {"R.square(x)", [](double v) { return v * v; }},
      {"R.nn.relu(x)", [](double v) { return std::max(v, 0.0); }},
      {"R.nn.gelu(x)", [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); }},
      {"R.nn.gelu_tanh(x)",
       [](double v) { return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))); }},
      {"R.nn.silu(x)", [](double v) { return v / (1 + std::exp(-v)); }},
      {"R.nn.leakyrelu(x, 0.1)", [](double v) { return v < 0 ? 0.1 * v : v; }},
      {"R.clip(x, -0.5, 1.0)", [](double v) { return std::clamp(v, -0.5, 1.0); }},
  };
  Ref<Tensor> x = random({3, 5});
  for (const auto& [call, fn] : kOps) {
    Floats expected;
    for (float v : values(Value(x))) expected.push_back(static_cast<float>(fn(v)));
    expect_near(values(evaluate(call, {x})), expected, 2e-6f, call);
  }
}

TEST(Meaning, BinaryOpsBroadcast) {
  using Fn = double (*)(double, double);
  const std::pair<const char*, Fn> kOps[] = {
      {"x + y", [](double a, double b) { return a + b; }},
      {"x - y", [](double a, double b) { return a - b; }},
      {"x * y", [](double a, double b) { return a * b; }},
      {"x / y", [](double a, double b) { return a / b; }},
      {"R.maximum(x, y)", [](double a, double b) { return std::max(a, b); }},
      {"R.minimum(x, y)", [](double a, double b) { return std::min(a, b); }},
      {"R.power(R.abs(x), y)", [](double a, double b) { return std::pow(std::fabs(a), b); }},
      {"R.floor_divide(x, y)", [](double a, double b) { return std::floor(a / b); }},
      {"R.where(x < y, x, y)", [](double a, double b) { return std::min(a, b); }},
  };
  Ref<Tensor> x = random({2, 1, 3}), y = random({4, 1}, 2);
  for (const auto& [call, fn] : kOps) {
    Floats expected;
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 4; ++j)
        for (int k = 0; k < 3; ++k)
          expected.push_back(static_cast<float>(fn(x->data_as<float>()[i * 3 + k], y->data_as<float>()[j])));
    expect_near(values(evaluate(call, {x, y})), expected, 1e-6f, call);
  }
}

// ---- Reductions and norms ----

struct Rows {
  Ref<Tensor> x = random({4, 6});
  template <class Fn>
  Floats each(Fn fn) const {
    Floats out;
    for (int i = 0; i < 4; ++i) {
      Floats row(x->data_as<float>() + i * 6, x->data_as<float>() + i * 6 + 6);
      for (double v : fn(std::vector<double>(row.begin(), row.end()))) out.push_back(static_cast<float>(v));
    }
    return out;
  }
};
using Row = std::vector<double>;
double sum(const Row& r) { return std::accumulate(r.begin(), r.end(), 0.0); }
double mean(const Row& r) { return sum(r) / static_cast<double>(r.size()); }
double variance(const Row& r) {
  double m = mean(r), s = 0;
  for (double v : r) s += (v - m) * (v - m);
  return s / static_cast<double>(r.size());
}

TEST(Meaning, Reductions) {
  Rows rows;
  using Fn = Row (*)(Row);
  const std::pair<const char*, Fn> kOps[] = {
      {"R.sum(x, axis=1)", [](Row r) { return Row{sum(r)}; }},
      {"R.mean(x, axis=-1)", [](Row r) { return Row{mean(r)}; }},
      {"R.max(x, axis=1)", [](Row r) { return Row{*std::max_element(r.begin(), r.end())}; }},
      {"R.min(x, axis=1, keepdims=True)", [](Row r) { return Row{*std::min_element(r.begin(), r.end())}; }},
      {"R.prod(x, axis=1)", [](Row r) { return Row{std::accumulate(r.begin(), r.end(), 1.0, std::multiplies<>())}; }},
      {"R.variance(x, axis=1)", [](Row r) { return Row{variance(r)}; }},
      {"R.std(x, axis=1)", [](Row r) { return Row{std::sqrt(variance(r))}; }},
      {"R.cumsum(x, axis=1)",
       [](Row r) {
         std::partial_sum(r.begin(), r.end(), r.begin());
         return r;
       }},
      {"R.nn.softmax(x, axis=-1)",
       [](Row r) {
         double total = 0;
         for (double& v : r) total += v = std::exp(v);
         for (double& v : r) v /= total;
         return r;
       }},
      {"R.nn.log_softmax(x, axis=1)",
       [](Row r) {
         double total = 0;
         for (double v : r) total += std::exp(v);
         for (double& v : r) v -= std::log(total);
         return r;
       }},
      {"R.nn.layer_norm(x, R.ones((6,), \"float32\"), R.zeros((6,), \"float32\"), axes=[-1], epsilon=1e-5)",
       [](Row r) {
         double m = mean(r), s = std::sqrt(variance(r) + 1e-5);
         for (double& v : r) v = (v - m) / s;
         return r;
       }},
      {"R.nn.rms_norm(x, R.ones((6,), \"float32\"), axes=[-1], epsilon=1e-5)",
       [](Row r) {
         double s = 0;
         for (double v : r) s += v * v;
         for (double& v : r) v /= std::sqrt(s / 6 + 1e-5);
         return r;
       }},
      {"R.astype(R.argmax(x, axis=1), \"float32\")",
       [](Row r) { return Row{static_cast<double>(std::max_element(r.begin(), r.end()) - r.begin())}; }},
  };
  for (const auto& [call, fn] : kOps) expect_near(values(evaluate(call, {rows.x})), rows.each(fn), 3e-6f, call);
}

TEST(Meaning, GroupAndBatchNorm) {
  // Two groups of two channels over 3 positions.
  Ref<Tensor> x = random({2, 4, 3}), g = random({4}, 2), b = random({4}, 3);
  const float *px = x->data_as<float>(), *pg = g->data_as<float>(), *pb = b->data_as<float>();
  Floats group, batch;
  for (int n = 0; n < 2; ++n)
    for (int c = 0; c < 4; ++c) {
      Row members;
      for (int k = 0; k < 6; ++k) members.push_back(px[(n * 4 + c / 2 * 2) * 3 + k]);
      for (int i = 0; i < 3; ++i)
        group.push_back(static_cast<float>(
            (px[(n * 4 + c) * 3 + i] - mean(members)) / std::sqrt(variance(members) + 1e-5) * pg[c] + pb[c]));
    }
  expect_near(values(evaluate("R.nn.group_norm(x, y, z, num_groups=2, channel_axis=1, axes=[2])", {x, g, b})),
              group,
              1e-5f,
              "group_norm");
  Ref<Tensor> four = random({2, 4, 3, 1});
  const float* pf = four->data_as<float>();
  // By the statistics of the batch; the moving ones follow them by a tenth.
  Floats moved;
  for (int n = 0; n < 2; ++n)
    for (int c = 0; c < 4; ++c) {
      Row members;
      for (int m = 0; m < 2; ++m)
        for (int i = 0; i < 3; ++i) members.push_back(pf[(m * 4 + c) * 3 + i]);
      for (int i = 0; i < 3; ++i)
        batch.push_back(static_cast<float>(
            (pf[(n * 4 + c) * 3 + i] - mean(members)) / std::sqrt(variance(members) + 1e-3) * pg[c] + pb[c]));
      if (n == 0) moved.push_back(static_cast<float>(0.9 * pb[c] + 0.1 * mean(members)));
    }
  Value out = evaluate("R.nn.batch_norm(x, y, z, z, R.abs(y), axis=1, epsilon=1e-3)", {four, g, b});
  const runtime::Tuple* tuple = out.as<runtime::Tuple>();
  ASSERT_TRUE(tuple);
  expect_near(values(tuple->fields[0]), batch, 1e-5f, "batch_norm");
  expect_near(values(tuple->fields[1]), moved, 1e-6f, "moving mean");
}

// ---- Products ----

TEST(Meaning, Matmul) {
  Ref<Tensor> x = random({2, 1, 3, 4}), y = random({5, 4, 2}, 2);
  Floats expected;
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 5; ++b)
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 2; ++j) {
          double s = 0;
          for (int k = 0; k < 4; ++k)
            s += x->data_as<float>()[(a * 3 + i) * 4 + k] * y->data_as<float>()[(b * 4 + k) * 2 + j];
          expected.push_back(static_cast<float>(s));
        }
  expect_near(values(evaluate("R.matmul(x, y)", {x, y})), expected, 1e-6f, "matmul");
  Ref<Tensor> p = random({3, 4}, 3), q = random({4, 5}, 4);
  expect_near(values(evaluate("R.einsum((x, y), \"ik,kj->ji\")", {p, q})),
              values(evaluate("R.permute_dims(R.matmul(x, y))", {p, q})),
              1e-6f,
              "einsum");
  Ref<Tensor> w = random({5, 4}, 5), bias = random({5}, 6);
  expect_near(values(evaluate("R.linear(x, y, z)", {p, w, bias})),
              values(evaluate("R.matmul(x, R.permute_dims(y)) + z", {p, w, bias})),
              1e-6f,
              "linear");
}

TEST(Meaning, Convolution) {
  // 1 image, 4 channels in 2 groups, stride 2, dilation 2, padding 1 and 2.
  Ref<Tensor> x = random({1, 4, 7, 8}), w = random({6, 2, 3, 2}, 2);
  const float *px = x->data_as<float>(), *pw = w->data_as<float>();
  int oh = (7 + 2 - 5) / 2 + 1, ow = (8 + 4 - 3) / 2 + 1;
  Floats expected;
  for (int o = 0; o < 6; ++o)
    for (int i = 0; i < oh; ++i)
      for (int j = 0; j < ow; ++j) {
        double s = 0;
        for (int c = 0; c < 2; ++c)
          for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 2; ++b) {
              int y = i * 2 + a * 2 - 1, z = j * 2 + b * 2 - 2;
              if (y >= 0 && y < 7 && z >= 0 && z < 8)
                s += px[((o / 3 * 2 + c) * 7 + y) * 8 + z] * pw[((o * 2 + c) * 3 + a) * 2 + b];
            }
        expected.push_back(static_cast<float>(s));
      }
  expect_near(values(evaluate("R.nn.conv2d(x, y, strides=2, dilation=2, padding=(1, 2), groups=2)", {x, w})),
              expected,
              1e-5f,
              "conv2d");
}

TEST(Meaning, TransposedConvolutionSpreadsWhatConvolutionGathers) {
  Ref<Tensor> x = random({1, 3, 5}), w = random({3, 2, 4}, 2);
  const float *px = x->data_as<float>(), *pw = w->data_as<float>();
  Floats expected(2 * 10, 0);  // (5 - 1) * 2 + 4 - 2 * 1
  for (int c = 0; c < 3; ++c)
    for (int o = 0; o < 2; ++o)
      for (int i = 0; i < 5; ++i)
        for (int k = 0; k < 4; ++k) {
          int at = i * 2 + k - 1;
          if (at >= 0 && at < 10) expected[static_cast<size_t>(o * 10 + at)] += px[c * 5 + i] * pw[(c * 2 + o) * 4 + k];
        }
  expect_near(values(evaluate("R.nn.conv1d_transpose(x, y, strides=2, padding=1)", {x, w})),
              expected,
              1e-5f,
              "conv1d_transpose");
}

TEST(Meaning, Pooling) {
  Ref<Tensor> x = random({1, 2, 5, 5});
  const float* px = x->data_as<float>();
  Floats maxima, means;
  for (int c = 0; c < 2; ++c)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        double top = -INFINITY, total = 0;
        int count = 0;
        for (int a = 0; a < 3; ++a)
          for (int b = 0; b < 3; ++b) {
            int y = i * 2 + a - 1, z = j * 2 + b - 1;
            if (y < 0 || y >= 5 || z < 0 || z >= 5) continue;
            double v = px[(c * 5 + y) * 5 + z];
            top = std::max(top, v);
            total += v;
            ++count;
          }
        maxima.push_back(static_cast<float>(top));
        means.push_back(static_cast<float>(total / count));
      }
  expect_near(values(evaluate("R.nn.max_pool2d(x, (3, 3), strides=2, padding=1)", {x})), maxima, 1e-6f, "max_pool2d");
  expect_near(values(evaluate("R.nn.avg_pool2d(x, (3, 3), strides=2, padding=1)", {x})), means, 1e-6f, "avg_pool2d");
}

TEST(Meaning, Attention) {
  // batch 1, 3 queries, 4 keys, 2 heads of 5, values of 3.
  Ref<Tensor> q = random({1, 3, 2, 5}), k = random({1, 4, 2, 5}, 2), v = random({1, 4, 2, 3}, 3);
  Floats expected;
  for (int i = 0; i < 3; ++i)
    for (int h = 0; h < 2; ++h) {
      Row weights;
      for (int j = 0; j < 4; ++j) {
        double s = 0;
        for (int d = 0; d < 5; ++d)
          s += q->data_as<float>()[(i * 2 + h) * 5 + d] * k->data_as<float>()[(j * 2 + h) * 5 + d];
        weights.push_back(std::exp(s / std::sqrt(5.0)));
      }
      for (int d = 0; d < 3; ++d) {
        double s = 0;
        for (int j = 0; j < 4; ++j) s += weights[static_cast<size_t>(j)] * v->data_as<float>()[(j * 2 + h) * 3 + d];
        expected.push_back(static_cast<float>(s / sum(weights)));
      }
    }
  expect_near(values(evaluate("R.nn.attention(x, y, z)", {q, k, v})), expected, 1e-5f, "attention");
}

// ---- Movement ----

TEST(Meaning, MovementByPositions) {
  // Element (i, j) of x is 10 i + j: the results can be read off.
  Floats numbers;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) numbers.push_back(static_cast<float>(10 * i + j));
  Ref<Tensor> x = floats(numbers, {3, 4});
  const std::pair<const char*, Floats> kOps[] = {
      {"R.permute_dims(x)", {0, 10, 20, 1, 11, 21, 2, 12, 22, 3, 13, 23}},
      {"R.reshape(x, (2, -1))", numbers},
      {"R.strided_slice(x, axes=[0, 1], begin=[2, 0], end=[-4, 4], strides=[-2, 3])", {20, 23, 0, 3}},
      {"R.take(x, R.const([2, 0], \"int64\"), axis=0)", {20, 21, 22, 23, 0, 1, 2, 3}},
      {"R.take(x, R.const([[3], [1]], \"int64\"), axis=1)", {3, 1, 13, 11, 23, 21}},
      {"R.concat((x, R.flip(x, axis=1)), axis=0)",
       {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 3, 2, 1, 0, 13, 12, 11, 10, 23, 22, 21, 20}},
      {"R.split(x, [1, 3], axis=1)[1]", {1, 2, 11, 12, 21, 22}},
      {"R.repeat(R.strided_slice(x, axes=[1], begin=[0], end=[2]), 2, axis=1)",
       {0, 0, 1, 1, 10, 10, 11, 11, 20, 20, 21, 21}},
      {"R.tile(R.strided_slice(x, axes=[0], begin=[0], end=[1]), (2, 1))", {0, 1, 2, 3, 0, 1, 2, 3}},
      {"R.broadcast_to(R.strided_slice(x, axes=[1], begin=[1], end=[2]), (3, 2))", {1, 1, 11, 11, 21, 21}},
      {"R.tril(x)", {0, 0, 0, 0, 10, 11, 0, 0, 20, 21, 22, 0}},
      {"R.triu(x, 1)", {0, 1, 2, 3, 0, 0, 12, 13, 0, 0, 0, 23}},
      {"R.nn.pad(x, [0, 1, 1, 0])", {0, 0, 1, 2, 3, 0, 10, 11, 12, 13, 0, 20, 21, 22, 23, 0, 0, 0, 0, 0}},
      {"R.sort(x, axis=1, descending=True)", {3, 2, 1, 0, 13, 12, 11, 10, 23, 22, 21, 20}},
      {"R.topk(x, k=2, axis=1, ret_type=\"values\")", {3, 2, 13, 12, 23, 22}},
      {"R.arange(1, 8, 2, \"float32\")", {1, 3, 5, 7}},
      {"R.full((2,), R.const(3.0, \"float32\"), \"float32\")", {3, 3}},
  };
  for (const auto& [call, expected] : kOps) expect_near(values(evaluate(call, {x})), expected, 0, call);
}

TEST(Meaning, Casts) {
  Value out = evaluate("R.astype(x, \"float16\")", {floats({1.0f, 65504.0f, 0.1f}, {3})});
  const Tensor* t = out.as<Tensor>();
  ASSERT_TRUE(t && t->dtype() == f16);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(t->data_as<uint16_t>()[i], f32_to_f16(i == 0 ? 1.0f : i == 1 ? 65504.0f : 0.1f));
  expect_near(values(evaluate("R.astype(R.astype(x, \"int32\"), \"float32\")", {floats({-1.7f, 2.9f}, {2})})),
              {-1, 2},
              0,
              "to int");
}

// ---- Functions ----

TEST(Run, SymbolicSizesTakeTheirValuesFromTheArguments) {
  GraphInterpreter run(parse_module(R"(
@I.ir_module
class Module:
    @T.prim_func
    def iota(out: T.handle, k: T.int64):
        n = T.int64()
        A = T.match_buffer(out, (n,), "int64")
        for i in range(n):
            with T.block("a"):
                vi = T.axis.spatial(n, i)
                A[vi] = vi * k
    @R.function
    def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n * 2",), "int64"):
        n = T.int64()
        cls = Module
        y = R.call_tir(cls.iota, (), out_sinfo=R.Tensor((n * 2,), "int64"), tir_vars=(n,))
        return y
)"));
  for (int64_t n : {1, 3}) {
    Value out = run.call("main", {random({n, 2})});
    const Tensor* t = out.as<Tensor>();
    ASSERT_EQ(t->num_elements(), 2 * n);
    for (int64_t i = 0; i < 2 * n; ++i) EXPECT_EQ(t->data_as<int64_t>()[i], i * n);
  }
}

TEST(Run, BranchesRecursionAndTuples) {
  // 2 ** n by halves of the work: the recursion ends at 0.
  GraphInterpreter run(parse_module(R"(
@R.function
def main(x: R.Tensor((), "int64")) -> R.Tuple(R.Tensor((), "int64"), R.Tensor((), "int64")):
    @R.function
    def power(k: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        stop = R.equal(k, R.const(0, "int64"))
        if stop:
            r = R.const(1, "int64")
        else:
            below = power(R.subtract(k, R.const(1, "int64")))
            r = R.multiply(below, R.const(2, "int64"))
        return r

    y = power(x)
    return (x, y)
)"));
  Value out = run.call("main", {longs({10}, {})});
  EXPECT_EQ(out.as<runtime::Tuple>()->fields[1].as<Tensor>()->data_as<int64_t>()[0], 1024);
}

TEST(Run, HostFunctionsAndMessages) {
  std::vector<std::string> said;
  GraphOptions options;
  options.print = [&](const std::string& s) { said.push_back(s); };
  options.functions["double"] = [](std::span<const Value> args) -> Value {
    Ref<Tensor> out = Tensor::empty(args[0].as<Tensor>()->shape(), f32);
    for (int64_t i = 0; i < out->num_elements(); ++i)
      out->data_as<float>()[i] = 2 * args[0].as<Tensor>()->data_as<float>()[i];
    return out;
  };
  options.functions["into"] = [](std::span<const Value> args) -> Value {
    args[1].as<Tensor>()->data_as<float>()[0] = args[0].as<Tensor>()->data_as<float>()[1];
    return {};
  };
  GraphInterpreter run(parse_module(R"(
@R.function(pure=False)
def main(x: R.Tensor((2,), "float32")) -> R.Tensor((1,), "float32"):
    y = R.call_packed("double", x, sinfo_args=R.Tensor((2,), "float32"))
    R.print(R.shape([2, 3]), format="shape {}!")
    z = R.call_dps_packed("into", (y,), out_sinfo=R.Tensor((1,), "float32"))
    return z
)"),
                       options);
  EXPECT_EQ(values(run.call("main", {floats({1, 4}, {2})})), (Floats{8}));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].find("shape "), 0u);
}

TEST(Run, MistakesAtRunTime) {
  GraphInterpreter run(parse_module(R"(
@I.ir_module
class Module:
    @R.function
    def cast(x: R.Tensor(ndim=2)) -> R.Object:
        n = T.int64()
        y = R.match_cast(x, R.Tensor((n, n), "float32"))
        return y
    @R.function(pure=False)
    def check(x: R.Tensor((), "bool")) -> R.Object:
        _ = R.assert_op(x, format="must hold")
        return x
    @R.function(pure=False)
    def unknown(x: R.Object) -> R.Object:
        y = R.call_packed("nowhere", x)
        return y
    @R.function
    def forever(x: R.Object) -> R.Object:
        y = Module.forever(x)
        return y
    @R.function
    def lies(x: R.Tensor((2,), "float32")) -> R.Tensor((3,), "float32"):
        y = R.call_pure_packed("identity", x, sinfo_args=R.Tensor((3,), "float32"))
        return y
)"),
                       {.functions = {{"identity", [](std::span<const Value> a) { return a[0]; }}}});
  EXPECT_NO_THROW(run.call("cast", {random({3, 3})}));
  EXPECT_THROW(run.call("cast", {random({3, 4})}), Error);
  EXPECT_THROW(run.call("cast", {random({3})}), Error);
  EXPECT_THROW(run.call("check", {Tensor::of(std::vector<int8_t>{0}, {}, boolean)}), Error);
  EXPECT_NO_THROW(run.call("check", {Tensor::of(std::vector<int8_t>{1}, {}, boolean)}));
  EXPECT_THROW(run.call("unknown", {Value(1)}), Error);
  EXPECT_THROW(run.call("forever", {Value(1)}), Error);
  EXPECT_THROW(run.call("lies", {random({2})}), Error);
  EXPECT_THROW(run.call("nobody", {Value(1)}), Error);
}

}  // namespace
}  // namespace sator::relax
