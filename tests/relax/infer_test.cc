// The struct info of calls: shapes as numpy, PyTorch and ONNX define them, also over symbolic sizes; calls that are refused.
#include <gtest/gtest.h>

#include "relax/parse.h"
#include "relax/print.h"
#include "relax/struct_info.h"

namespace sator::relax {
namespace {

/// The struct info of `call` in a function of these parameters.
std::string inferred(const std::string& params, const std::string& call) {
  Func f =
      parse_function("@R.function(private=True)\ndef main(" + params + "):\n    out = " + call + "\n    return out\n");
  return text(f.as<Function>()->ret);
}

struct Row {
  const char* params;
  const char* call;
  const char* expected;
};

const char* const kX = "x: R.Tensor((2, 3, 4), \"float32\")";
const char* const kN =
    "x: R.Tensor((\"n\", 3, 4), \"float32\"), y: R.Tensor((\"n\", 1, 4), \"float32\"), z: R.Tensor((4, 5), "
    "\"float32\"), s: R.Shape([\"m\"])";

const Row kRows[] = {
    // Elementwise and broadcast.
    {kX, "R.exp(x)", "R.Tensor((2, 3, 4), dtype=\"float32\")"},
    {kX, "R.isnan(x)", "R.Tensor((2, 3, 4), dtype=\"bool\")"},
    {kX, "R.astype(x, \"int8\")", "R.Tensor((2, 3, 4), dtype=\"int8\")"},
    {kX, "x + R.const(1.0)", "R.Tensor((2, 3, 4), dtype=\"float32\")"},
    {kN, "x + y", "R.Tensor((n, 3, 4), dtype=\"float32\")"},
    {kN, "x < y", "R.Tensor((n, 3, 4), dtype=\"bool\")"},
    {"x: R.Tensor((5, 1), \"int32\"), y: R.Tensor((3,), \"int32\")",
     "R.maximum(x, y)",
     "R.Tensor((5, 3), dtype=\"int32\")"},
    {"x: R.Tensor(\"float32\", ndim=2), y: R.Tensor((3, 1, 1), \"float32\")",
     "x * y",
     "R.Tensor(dtype=\"float32\", ndim=3)"},
    {"x: R.Tensor, y: R.Tensor((3,), \"float32\")", "x * y", "R.Tensor"},
    {"c: R.Tensor((2, 1), \"bool\"), x: R.Tensor((3,), \"float32\"), y: R.Tensor((), \"float32\")",
     "R.where(c, x, y)",
     "R.Tensor((2, 3), dtype=\"float32\")"},
    // Products.
    {kN, "R.matmul(x, z)", "R.Tensor((n, 3, 5), dtype=\"float32\")"},
    {"x: R.Tensor((4,), \"float32\"), y: R.Tensor((4,), \"float32\")",
     "R.matmul(x, y)",
     "R.Tensor((), dtype=\"float32\")"},
    {"x: R.Tensor((4,), \"float32\"), y: R.Tensor((7, 4, 5), \"float32\")",
     "R.matmul(x, y)",
     "R.Tensor((7, 5), dtype=\"float32\")"},
    {"x: R.Tensor((6, 1, 2, 4), \"float16\"), y: R.Tensor((5, 4, 3), \"float16\")",
     "R.matmul(x, y, out_dtype=\"float32\")",
     "R.Tensor((6, 5, 2, 3), dtype=\"float32\")"},
    {"x: R.Tensor((2, 4), \"float32\"), w: R.Tensor((3, 4), \"float32\"), b: R.Tensor((3,), \"float32\")",
     "R.linear(x, w, b)",
     "R.Tensor((2, 3), dtype=\"float32\")"},
    {"x: R.Tensor((2, 3), \"float32\"), y: R.Tensor((3, 4), \"float32\")",
     "R.einsum((x, y), \"ik,kj->ji\")",
     "R.Tensor((4, 2), dtype=\"float32\")"},
    // Reductions.
    {kN, "R.sum(x)", "R.Tensor((), dtype=\"float32\")"},
    {kN, "R.mean(x, axis=[-1, 0])", "R.Tensor((3,), dtype=\"float32\")"},
    {kN, "R.max(x, axis=1, keepdims=True)", "R.Tensor((n, 1, 4), dtype=\"float32\")"},
    {kN, "R.argmax(x, axis=2)", "R.Tensor((n, 3), dtype=\"int64\")"},
    {kN, "R.cumsum(x, axis=1)", "R.Tensor((n, 3, 4), dtype=\"float32\")"},
    {kN, "R.cumsum(x)", "R.Tensor((n * 3 * 4,), dtype=\"float32\")"},
    // Movement.
    {kN, "R.reshape(x, (12, -1))", "R.Tensor((12, n), dtype=\"float32\")"},
    {kN, "R.permute_dims(x)", "R.Tensor((4, 3, n), dtype=\"float32\")"},
    {kN, "R.permute_dims(x, [0, 2, 1])", "R.Tensor((n, 4, 3), dtype=\"float32\")"},
    {kN, "R.expand_dims(x, [0, -1])", "R.Tensor((1, n, 3, 4, 1), dtype=\"float32\")"},
    // n may be 1 at run time, so not even the rank is known.
    {kN, "R.squeeze(y)", "R.Tensor(dtype=\"float32\")"},
    {kN, "R.concat((x, y), axis=1)", "R.Tensor((n, 4, 4), dtype=\"float32\")"},
    {kN, "R.concat((x, x), axis=0)", "R.Tensor((n * 2, 3, 4), dtype=\"float32\")"},
    {kN,
     "R.split(x, 2, axis=2)",
     "R.Tuple(R.Tensor((n, 3, 2), dtype=\"float32\"), R.Tensor((n, 3, 2), dtype=\"float32\"))"},
    {kX,
     "R.split(x, [1, 3], axis=2)",
     "R.Tuple(R.Tensor((2, 3, 1), dtype=\"float32\"), R.Tensor((2, 3, 2), dtype=\"float32\"), R.Tensor((2, 3, 1), "
     "dtype=\"float32\"))"},
    {kX,
     "R.strided_slice(x, axes=[1, 2], begin=[0, 3], end=[3, 0], strides=[2, -1])",
     "R.Tensor((2, 2, 3), dtype=\"float32\")"},
    {kX, "R.take(x, R.const([[0, 1], [1, 0]], \"int64\"), axis=1)", "R.Tensor((2, 2, 2, 4), dtype=\"float32\")"},
    {kX, "R.broadcast_to(x, (5, 2, 3, 4))", "R.Tensor((5, 2, 3, 4), dtype=\"float32\")"},
    {kX, "R.repeat(x, 2, axis=1)", "R.Tensor((2, 6, 4), dtype=\"float32\")"},
    {kX, "R.tile(x, (2, 1, 1, 3))", "R.Tensor((2, 2, 3, 12), dtype=\"float32\")"},
    {kX, "R.flatten(x)", "R.Tensor((24,), dtype=\"float32\")"},
    // The shape is the variable s, which the function's result cannot name.
    {"s: R.Shape([\"m\", 2])", "R.zeros(s, \"float16\")", "R.Tensor(dtype=\"float16\", ndim=2)"},
    {"s: R.Shape([\"m\"])", "R.arange(0, m, 3, \"int64\")", "R.Tensor(((m + 2) // 3,), dtype=\"int64\")"},
    // Neural networks.
    {"x: R.Tensor((\"n\", 3, 32, 32), \"float32\"), w: R.Tensor((8, 3, 3, 3), \"float32\")",
     "R.nn.conv2d(x, w, strides=2, padding=1)",
     "R.Tensor((n, 8, 16, 16), dtype=\"float32\")"},
    {"x: R.Tensor((1, 32, 32, 4), \"float32\"), w: R.Tensor((8, 2, 5, 5), \"float32\")",
     "R.nn.conv2d(x, w, groups=2, dilation=2, data_layout=\"NHWC\")",
     "R.Tensor((1, 24, 24, 8), dtype=\"float32\")"},
    {"x: R.Tensor((1, 3, 10), \"float32\"), w: R.Tensor((3, 5, 4), \"float32\")",
     "R.nn.conv1d_transpose(x, w, strides=2, padding=1)",
     "R.Tensor((1, 5, 20), dtype=\"float32\")"},
    {"x: R.Tensor((1, 3, 7, 7), \"float32\")",
     "R.nn.max_pool2d(x, (3, 3), strides=2, ceil_mode=True)",
     "R.Tensor((1, 3, 3, 3), dtype=\"float32\")"},
    {"x: R.Tensor((1, 3, 7, 7), \"float32\")",
     "R.nn.adaptive_avg_pool2d(x, (1, 1))",
     "R.Tensor((1, 3, 1, 1), dtype=\"float32\")"},
    {"x: R.Tensor((\"b\", \"s\", 8), \"float32\"), w: R.Tensor((8,), \"float32\")",
     "R.nn.rms_norm(x, w, axes=-1)",
     "R.Tensor((b, s, 8), dtype=\"float32\")"},
    {"q: R.Tensor((2, \"s\", 8, 64), \"float16\"), k: R.Tensor((2, \"t\", 8, 64), \"float16\"), v: R.Tensor((2, \"t\", "
     "8, 32), \"float16\")",
     "R.nn.attention(q, k, v)",
     "R.Tensor((2, s, 8, 32), dtype=\"float16\")"},
    {"x: R.Tensor((2, 5), \"float32\")",
     "R.topk(x, k=3, axis=1)",
     "R.Tuple(R.Tensor((2, 3), dtype=\"float32\"), R.Tensor((2, 3), dtype=\"int32\"))"},
    // Scalars of known value.
    {"a: R.Prim(value=\"n\"), b: R.Prim(value=\"m\")", "R.add(a, b)", "R.Prim(value=n + m)"},
    {"a: R.Prim(\"int64\"), b: R.Prim(value=\"m\")", "R.add(a, b)", "R.Prim(\"int64\")"},
    // Shapes as values.
    {kN, "R.shape_of(x)", "R.Shape([n, 3, 4])"},
    {"s: R.Shape(ndim=3)", "R.shape_to_tensor(s)", "R.Tensor((3,), dtype=\"int64\")"},
    {"x: R.Tensor((3,), \"int64\")", "R.tensor_to_shape(x)", "R.Shape(ndim=3)"},
};

TEST(Infer, ShapesAndDtypes) {
  for (const Row& row : kRows) {
    try {
      EXPECT_EQ(inferred(row.params, row.call), row.expected) << row.params << "\n" << row.call;
    } catch (const Error& e) {
      ADD_FAILURE() << row.call << "\n" << e.what();
    }
  }
}

TEST(Infer, RefusesWhatCannotBe) {
  const Row kWrong[] = {
      {"x: R.Tensor((2, 3), \"float32\"), y: R.Tensor((2, 4), \"float32\")", "x + y", "broadcast"},
      {"x: R.Tensor((2, 3), \"float32\"), y: R.Tensor((2, 3), \"float16\")", "x + y", "dtype"},
      {"x: R.Tensor((2, 3), \"float32\"), y: R.Tensor((4, 2), \"float32\")", "R.matmul(x, y)", "matmul"},
      {"x: R.Tensor((), \"float32\"), y: R.Tensor((4, 2), \"float32\")", "R.matmul(x, y)", "matmul"},
      {kX, "R.sum(x, axis=3)", "axis"},
      {kX, "R.sum(x, axis=[0, -3])", "sum"},
      {kX, "R.reshape(x, (5, -1))", "reshape"},
      {kX, "R.reshape(x, (2, 13))", "reshape"},
      {kN, "R.split(x, 2147483648, axis=0)", "2147483648 sections"},
      {kX, "R.permute_dims(x, [0, 1])", "permute_dims"},
      {kX, "R.permute_dims(x, [0, 1, 1])", "permute_dims"},
      {kX, "R.squeeze(x, axis=0)", "squeeze"},
      {kX, "R.concat((x, R.const([[1.0]], \"float32\")), axis=0)", "concat"},
      {kX, "R.broadcast_to(x, (2, 3, 5))", "broadcast_to"},
      {kX, "R.nn.conv2d(x, x)", "conv2d"},
      {"x: R.Tensor((1, 3, 32, 32), \"float32\"), w: R.Tensor((8, 4, 3, 3), \"float32\")",
       "R.nn.conv2d(x, w)",
       "conv2d"},
      {"x: R.Tensor((4, 4), \"float32\"), s: R.Shape((3,))", "R.add(x, s)", "add"},
      {"x: R.Tensor((2,), \"float32\"), i: R.Tensor((2,), \"float32\")", "R.take(x, i, axis=0)", "take"},
      // A value that an optional attribute cannot have is no None.
      {kX, "R.cumsum(x, x)", "cumsum"},
      {"x: R.Tensor", "R.permute_dims(x, [1, 0])", "permute_dims"},
      {"x: R.Tensor([16])", "R.memory.view(x, R.shape([17]))", "beyond"},
  };
  for (const Row& row : kWrong) {
    try {
      ADD_FAILURE() << row.call << " gives " << inferred(row.params, row.call);
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(row.expected), std::string::npos) << e.what();
    }
  }
}

// ---- Struct info among itself ----

StructInfo info(const std::string& written, const std::string& sizes = "[\"n\", \"m\"]") {
  Func f = parse_function("@R.function(private=True)\ndef main(s: R.Shape(" + sizes + "), x: " + written +
                          "):\n    return x\n");
  return f.as<Function>()->params[1]->sinfo;
}

/// Both over the same symbolic sizes.
std::pair<StructInfo, StructInfo> both(const std::string& a, const std::string& b) {
  auto pair = info("R.Tuple(" + a + ", " + b + ")");
  const TupleInfo& t = *pair.as<TupleInfo>();
  return {t.items[0], t.items[1]};
}

TEST(StructInfo, HowFarOneIsTheOther) {
  struct Case {
    const char *base, *derived;
    BaseCheck expected;
  };
  using enum BaseCheck;
  const Case kCases[] = {
      {"R.Object", "R.Tensor((2,), \"int8\")", pass},
      {"R.Tensor", "R.Tensor((2,), \"int8\")", pass},
      {"R.Tensor((2,), \"int8\")", "R.Tensor", not_known},
      {"R.Tensor((2,), \"int8\")", "R.Tensor((3,), \"int8\")", disjoint},
      {"R.Tensor((2,), \"int8\")", "R.Tensor((2,), \"int16\")", disjoint},
      {"R.Tensor((\"n\",), \"int8\")", "R.Tensor((\"n\",), \"int8\")", pass},
      {"R.Tensor((\"n\",), \"int8\")", "R.Tensor((\"m\",), \"int8\")", values_unknown},
      {"R.Tensor((\"n\",), \"int8\")", "R.Tensor((\"n + 1\",), \"int8\")", values_unknown},
      {"R.Tensor((\"n * 2\",))", "R.Tensor((\"n + n\",), \"int8\")", pass},
      {"R.Tensor(ndim=2)", "R.Tensor((3,))", disjoint},
      {"R.Tensor", "R.Shape", disjoint},
      {"R.Shape(ndim=1)", "R.Shape((\"n\",))", pass},
      {"R.Tuple(R.Object, R.Tensor)", "R.Tuple(R.Shape, R.Tensor((2,)))", pass},
      {"R.Tuple(R.Object)", "R.Tuple(R.Shape, R.Tensor)", disjoint},
      {"R.Prim(\"int64\")", "R.Prim(value=\"n\")", pass},
      // Parameters are compared like results; what is not known of them is left to the run.
      {"R.Callable((R.Tensor((2,)),), R.Tensor)", "R.Callable((R.Tensor,), R.Tensor((3,)))", values_unknown},
      {"R.Callable((R.Tensor,), R.Tensor)", "R.Callable((R.Tensor,), R.Tensor((3,)))", pass},
      {"R.Callable((R.Tensor,), R.Tensor)", "R.Callable((R.Tensor,), R.Tensor, False)", disjoint},
      {"R.Callable((R.Tensor,), R.Tensor, False)", "R.Callable((R.Tensor,), R.Tensor)", pass},
  };
  arith::Analyzer arith;
  for (const Case& c : kCases) {
    auto [base, derived] = both(c.base, c.derived);
    EXPECT_EQ(static_cast<int>(base_check(base, derived, arith)), static_cast<int>(c.expected))
        << c.base << " <- " << c.derived;
  }
}

TEST(StructInfo, TheLeastThatHoldsForBoth) {
  const std::tuple<const char*, const char*, const char*> kCases[] = {
      {"R.Tensor((2, 3), \"int8\")", "R.Tensor((2, 3), \"int8\")", "R.Tensor((2, 3), dtype=\"int8\")"},
      {"R.Tensor((2, 3), \"int8\")", "R.Tensor((2, 4), \"int8\")", "R.Tensor(dtype=\"int8\", ndim=2)"},
      {"R.Tensor((2, 3), \"int8\")", "R.Tensor((2,), \"int8\")", "R.Tensor(dtype=\"int8\")"},
      {"R.Tensor((2, 3), \"int8\")", "R.Tensor((2, 3), \"int16\")", "R.Tensor((2, 3))"},
      {"R.Tensor", "R.Shape", "R.Object"},
      {"R.Shape((1, 2))", "R.Shape((1, 3))", "R.Shape(ndim=2)"},
      {"R.Tuple(R.Tensor, R.Shape)", "R.Tuple(R.Shape, R.Shape)", "R.Tuple(R.Object, R.Shape(ndim=-1))"},
      {"R.Tuple(R.Tensor)", "R.Tuple(R.Tensor, R.Tensor)", "R.Object"},
  };
  arith::Analyzer arith;
  for (const auto& [a, b, expected] : kCases) {
    auto [x, y] = both(a, b);
    EXPECT_EQ(text(common_base(x, y, arith)), expected) << a << " " << b;
    EXPECT_EQ(text(common_base(y, x, arith)), expected) << b << " " << a;
  }
}

TEST(StructInfo, ACallPutsTheCallersSizesIntoTheResult) {
  const char* const kModule = R"(
@I.ir_module
class Module:
    @R.function
    def callee(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor) -> R.Tensor(("m * 2", "n"), "float32"):
        n, m = T.int64(), T.int64()
        z = R.call_pure_packed("f", x, sinfo_args=R.Tensor((m * 2, n), "float32"))
        return z
    @R.function
    def main(x: R.Tensor(("k", 3), "float32")):
        y = Module.callee(x, x)
        return y
)";
  ModuleRef module = parse_module(kModule);
  EXPECT_EQ(text(module->functions.at("main").as<Function>()->ret), "R.Tensor((6, k), dtype=\"float32\")");
}

TEST(StructInfo, SizesOfAScopeDoNotLeaveIt) {
  // n is bound inside; nobody outside knows it.
  Func f = parse_function(
      "@R.function\ndef main(x: R.Tensor(\"float32\", ndim=1)):\n    n = T.int64()\n    y = R.match_cast(x, "
      "R.Tensor((n,), \"float32\"))\n    return y\n");
  EXPECT_EQ(text(f.as<Function>()->ret), "R.Tensor(dtype=\"float32\", ndim=1)");
}

}  // namespace
}  // namespace sator::relax
