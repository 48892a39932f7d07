// Elementary functions against libm in the next precision, over the whole range of f32 and of f64.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "codegen/programs.h"
#include "codegen/run_kernel.h"
#include "ir/builtins.h"

namespace sator::codegen {
namespace {

/// The name of a builtin, or a formula in its place.
struct Function {
  std::string name;
  std::function<Expr(const Expr&)> of = [name = name](const Expr& x) { return call_builtin(name, {x}); };
};

/// B[i] = f(A[i]) by vectors of `lanes`.
tir::PrimFuncRef unary(const Function& f, int64_t n, int lanes, DType dtype = f32) {
  BufferRef a = make_buffer("A", {int_imm(n, i64)}, dtype), b = make_buffer("B", {int_imm(n, i64)}, dtype);
  VarRef i = make_var("i", i64), j = make_var("j", i64);
  Expr at = i * lanes + j;
  tir::Stmt body = tir::store(b, f.of(load(a, {at})), {at});
  body = tir::for_loop(j, int_imm(lanes, i64), body, lanes > 1 ? tir::LoopKind::vectorized : tir::LoopKind::serial);
  return prim_func({a, b}, tir::for_loop(i, int_imm(n / lanes, i64), body));
}

/// Units in the last place of `reference` rounded to f32 between it and `got`.
double ulps(float got, double reference) {
  float rounded = static_cast<float>(reference);
  if (std::isnan(reference)) return std::isnan(got) ? 0 : 1e9;
  if (std::isinf(rounded) || std::isinf(got)) {
    if (got == rounded) return 0;
    // The last finite number and infinity are one step apart.
    double largest = std::numeric_limits<float>::max();
    return std::abs(std::isinf(got) ? std::copysign(largest, got) - reference
                                    : got - std::copysign(largest, reference)) < 1e32
               ? 1
               : 1e9;
  }
  double magnitude = std::abs(reference);
  int exponent = magnitude < 0x1p-126 ? -126 : std::ilogb(magnitude);
  return std::abs(got - reference) / std::ldexp(1.0, exponent - 23);
}

/// All exponents and signs with many mantissas, the special values, and the neighbourhood of `around`.
std::vector<float> arguments(const std::vector<double>& around) {
  std::vector<float> out;
  for (uint64_t bits = 0; bits < (1ull << 32); bits += 9973)
    out.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (uint32_t bits : {0u, 1u, 2u, 0x7fffffu, 0x800000u, 0x3f800000u, 0x7f7fffffu, 0x7f800000u, 0x7fc00000u})
    for (uint32_t sign : {0u, 0x80000000u}) out.push_back(std::bit_cast<float>(bits | sign));
  for (double center : around)
    for (int step = -2000; step <= 2000; ++step) {
      float c = static_cast<float>(center);
      out.push_back(std::bit_cast<float>(std::bit_cast<uint32_t>(c) + static_cast<uint32_t>(step)));
    }
  while (out.size() % 64 != 0) out.push_back(1.0f);
  return out;
}

struct Row {
  const char* op;
  double (*reference)(double);
  double max_ulps;
  std::vector<double> around;  // where the method changes, or the result does
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double exp10_(double x) { return std::pow(10.0, x); }

const Row kRows[] = {
    {"tir.exp", std::exp, 1.0, {88.72, -87.3, -103.9, 0.3466, -0.3466}},
    {"tir.exp2", std::exp2, 1.0, {127.999, -126, -149.5, 0.5}},
    {"tir.exp10", exp10_, 1.5, {38.53, -37.9, -45.1, 0.15}},
    {"tir.log", std::log, 1.0, {1.0, 1.4142135, 0.70710678, 1.1754944e-38}},
    {"tir.log2", std::log2, 1.5, {1.0, 1.4142135, 0.70710678, 2.0, 1.1754944e-38}},
    {"tir.log10", std::log10, 1.5, {1.0, 1.4142135, 0.70710678, 10.0}},
    {"tir.log1p", std::log1p, 1.5, {-0.99999, -0.2928, 0.41421, 1e-7, -1e-7}},
    {"tir.tanh", std::tanh, 1.5, {0.6, -0.6, 9.01, 1e-4}},
    {"tir.sigmoid", sigmoid, 2.5, {-87.3, -103.2, 0.0001, 17.3}},
    {"tir.erf", std::erf, 1.5, {0.93, -0.93, 3.91, 4.0}},
    {"tir.sin", std::sin, 1.5, {3.14159265, 1.57079633, 131072, 100000.5, 1e10, 710.0}},
    {"tir.cos", std::cos, 1.5, {3.14159265, 1.57079633, 131072, 100000.5, 1e10, 710.0}},
    {"tir.tan", std::tan, 2.5, {3.14159265, 1.57079633, 0.78539816, 131072, 100000.5, 1e10, 710.0}},
    {"tir.sinh", std::sinh, 2.5, {1.0, -1.0, 88.73, 89.41, -89.41, 1e-4}},
    {"tir.cosh", std::cosh, 2.5, {1.0, 0.1, 88.73, 89.41, -89.41}},
    {"tir.asin", std::asin, 2.5, {0.5, -0.5, 1.0, -1.0, 1e-4}},
    {"tir.acos", std::acos, 2.5, {0.5, -0.5, 1.0, -1.0, 1e-4}},
    {"tir.atan", std::atan, 2.5, {0.41421356, 2.4142135, -2.4142135, 1.0, 1e-4}},
    {"tir.asinh", std::asinh, 2.5, {4096, 0.1, -1.0, 1e-4}},
    {"tir.acosh", std::acosh, 2.5, {1.0, 1.0001, 2.0, 4096}},
    {"tir.atanh", std::atanh, 2.5, {0.5, -0.5, 0.99999994, 1e-4}},
};

class Elementary : public testing::TestWithParam<Row> {};

/// Whether 0, of an argument that is 0, has another sign than the reference's.
template <class T, class Reference>
bool is_of_wrong_sign(T got, T x, Reference want) {
  return x == 0 && want == 0 && std::signbit(got) != std::signbit(want);
}

/// One error, in units in the last place, and the same bits at every level and with every number of lanes.
///   error_at   of element i of the results
template <class T, class ErrorAt>
void expect_same_bits_within(const Function& f, DType dtype, const std::vector<T>& x,
                             std::initializer_list<int> all_lanes, double max_ulps, const ErrorAt& error_at) {
  const auto n = static_cast<int64_t>(x.size());
  Data<T> a(x.size()), b(x.size());
  std::copy(x.begin(), x.end(), a.memory);
  std::vector<T> first;
  for (const target::CpuLevel* level : target::host_levels())
    for (int lanes : all_lanes) {
      std::fill(b.memory, b.memory + n, static_cast<T>(-77));
      ASSERT_EQ(run_kernel(unary(f, n, lanes, dtype), *level, {a.raw(), b.raw()}), 0);
      if (first.empty()) {
        double worst = 0;
        T worst_at = 0;
        for (size_t i = 0; i < x.size(); ++i)
          if (const double error = error_at(b[i], x[i]); error > worst) worst = error, worst_at = x[i];
        EXPECT_LE(worst, max_ulps) << f.name << "(" << worst_at << ")";
        testing::Test::RecordProperty("ulps", std::to_string(worst));
        first.assign(b.memory, b.memory + n);
      } else {
        size_t differ = 0;
        for (size_t i = 0; i < x.size(); ++i)
          differ += std::memcmp(&first[i], &b[i], sizeof(T)) != 0 && !std::isnan(b[i]);
        EXPECT_EQ(differ, 0u) << f.name << " at " << level->name << " with " << lanes << " lanes";
      }
    }
}

TEST_P(Elementary, IsWithinItsErrorAtEveryLevel) {
  const Row& row = GetParam();
  expect_same_bits_within({row.op}, f32, arguments(row.around), {1, 64, 16}, row.max_ulps, [&](float got, float x) {
    return is_of_wrong_sign(got, x, row.reference(x)) ? 1e9 : ulps(got, row.reference(x));
  });
}

// GELU's 1 + tanh(u) is a function of its own: where u is negative, tanh's rounding would leave few digits.
TEST(ElementarySum, OnePlusTanhKeepsItsDigits) {
  const Function sum{"1 + tanh", [](const Expr& x) { return constant(1, f32) + call_builtin("tir.tanh", {x}); }};
  auto error = [](float got, float x) {
    const double want = 2 / (1 + std::exp(-2 * static_cast<double>(x)));
    if (x <= -43) return got >= 0 && got < 0x1p-122 && (x > -44.5 || got == 0) ? 0 : 1e9;
    return ulps(got, want);
  };
  const std::vector<double> around = {-43.5, -44.3, 43.6, 9.01, -9.01, 0.1733, -0.1733, 1e-4};
  expect_same_bits_within(sum, f32, arguments(around), {1, 64, 16}, 2.5, error);
}

INSTANTIATE_TEST_SUITE_P(All, Elementary, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.op).substr(4); });

// ---- f64 ----

/// Units in the last place of f64 between a result and a reference of 64 bits of mantissa.
double ulps64(double got, long double reference) {
  if (std::isnan(reference)) return std::isnan(got) ? 0 : 1e9;
  const auto rounded = static_cast<double>(reference);
  if (std::isinf(rounded) || std::isinf(got)) {
    if (got == rounded) return 0;
    // The last finite number and infinity are one step apart.
    const long double largest = std::numeric_limits<double>::max();
    const long double off = std::isinf(got) ? std::copysign(largest, got) - reference
                                            : static_cast<long double>(got) - std::copysign(largest, reference);
    return std::abs(off) < 0x1p972L ? 1 : 1e9;
  }
  const long double magnitude = std::abs(reference);
  const int exponent = magnitude < 0x1p-1022L ? -1022 : std::ilogb(magnitude);
  return static_cast<double>(std::abs(static_cast<long double>(got) - reference) / std::ldexp(1.0L, exponent - 52));
}

/// All exponents and signs with 40 mantissas each, the special values, and the neighbourhood of `around`.
std::vector<double> arguments64(const std::vector<double>& around) {
  std::vector<double> out;
  uint64_t state = 1;
  for (uint64_t high = 0; high < 4096; ++high)
    for (int k = 0; k < 40; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      out.push_back(std::bit_cast<double>(high << 52 | state >> 12));
    }
  for (double v : {0.0, 0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp-1023, 1.0, std::numeric_limits<double>::max()})
    for (double sign : {1.0, -1.0}) out.push_back(v * sign);
  for (double v : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    for (double sign : {1.0, -1.0}) out.push_back(std::copysign(v, sign));
  for (double center : around) {
    for (int step = -1000; step <= 1000; ++step)
      out.push_back(std::bit_cast<double>(std::bit_cast<uint64_t>(center) + static_cast<uint64_t>(step)));
    for (int step = -1000; step <= 1000; ++step) out.push_back(center * (1 + step * 1e-4));
  }
  while (out.size() % 16 != 0) out.push_back(1.0);
  return out;
}

struct WideRow {
  const char* op;
  long double (*reference)(long double);
  double max_ulps;
  std::vector<double> around;
};

const WideRow kWideRows[] = {
    {"tir.exp", std::exp, 1.0, {709.78, -708.4, -745.1, 0.3466, -0.3466, 1e-3}},
    {"tir.exp2", std::exp2, 1.0, {1023.999, -1022, -1074.5, 0.5}},
    {"tir.exp10", [](long double x) { return std::pow(10.0L, x); }, 1.5, {308.25, -307.65, -323.3, 0.15}},
    {"tir.log", std::log, 1.0, {1.0, 1.4142135623730951, 0.70710678118654752, 0x1p-1022}},
    {"tir.log2", std::log2, 1.5, {1.0, 1.4142135623730951, 0.70710678118654752, 2.0, 0x1p-1022}},
    {"tir.log10", std::log10, 1.5, {1.0, 1.4142135623730951, 0.70710678118654752, 10.0}},
    {"tir.log1p", std::log1p, 1.5, {-0.99999, -0.2928, 0.41421, 1e-7, -1e-7}},
    {"tir.tanh", std::tanh, 2.5, {0.17, 0.6, -0.6, 19.06, 1e-4}},
    {"tir.sigmoid", [](long double x) { return 1 / (1 + std::exp(-x)); }, 2.5, {-708.4, -744.4, 0.0001, 36.7, 1.0}},
    {"tir.sin", std::sin, 1.0, {3.141592653589793, 1.5707963267948966, 524288, 100000.5, 710.0, 0.7}},
    {"tir.cos", std::cos, 1.0, {3.141592653589793, 1.5707963267948966, 524288, 100000.5, 710.0, 0.7}},
    {"tir.tan", std::tan, 2.5, {3.141592653589793, 1.5707963267948966, 0.7853981633974483, 524288, 100000.5, 0.7}},
    {"tir.sinh", std::sinh, 2.5, {1.0, -1.0, 709.78, 710.47, -710.47, 1e-4}},
    {"tir.cosh", std::cosh, 2.5, {1.0, 0.1, 709.78, 710.47, -710.47}},
    {"tir.asin", std::asin, 2.5, {0.5, -0.5, 1.0, -1.0, 1e-4}},
    {"tir.acos", std::acos, 2.5, {0.5, -0.5, 1.0, -1.0, 1e-4}},
    {"tir.atan", std::atan, 2.5, {0.41421356, 2.4142135, -2.4142135, 1.0, 1e-4}},
    {"tir.asinh", std::asinh, 2.5, {0x1p27, 0.1, -1.0, 1e-4}},
    {"tir.acosh", std::acosh, 2.5, {1.0, 1.0001, 2.0, 0x1p27}},
    {"tir.atanh", std::atanh, 2.5, {0.5, -0.5, 0.9999999999999999, 1e-4}},
};

class WideElementary : public testing::TestWithParam<WideRow> {};

TEST_P(WideElementary, IsWithinItsErrorAtEveryLevel) {
  const WideRow& row = GetParam();
  expect_same_bits_within({row.op}, f64, arguments64(row.around), {1, 16, 8}, row.max_ulps, [&](double got, double x) {
    return is_of_wrong_sign(got, x, row.reference(x)) ? 1e9 : ulps64(got, row.reference(x));
  });
}

INSTANTIATE_TEST_SUITE_P(All, WideElementary, testing::ValuesIn(kWideRows),
                         [](const auto& info) { return std::string(info.param.op).substr(4); });

/// A function of two in f64 on special values, each with each, and on what `draw` gives.
template <class Draw>
void expect_wide_within(const char* op, long double (*reference)(long double, long double), double max_ulps,
                        const Draw& draw) {
  std::vector<std::pair<double, double>> pairs;
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> special = {0.0,
                                       -0.0,
                                       1.0,
                                       -1.0,
                                       2.0,
                                       -2.0,
                                       3.0,
                                       -3.0,
                                       0.5,
                                       -0.5,
                                       5e-324,
                                       1e-310,
                                       1e300,
                                       inf,
                                       -inf,
                                       nan,
                                       2.5,
                                       -1e300,
                                       0x1p53,
                                       0x1p53 + 2,
                                       0.9999999999999999,
                                       1.0000000000000002,
                                       -0x1p53,
                                       7.0};
  for (double x : special)
    for (double y : special) pairs.emplace_back(x, y);
  uint64_t state = 1;
  auto uniform = [&](double lo, double hi) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return lo + (hi - lo) * static_cast<double>(state >> 11) * 0x1p-53;
  };
  for (int i = 0; i < 200000; ++i) pairs.push_back(draw(uniform, i));
  while (pairs.size() % 16) pairs.emplace_back(1.0, 1.0);
  const auto n = static_cast<int64_t>(pairs.size());
  BufferRef a = make_buffer("A", {int_imm(n, i64)}, f64), b = make_buffer("B", {int_imm(n, i64)}, f64),
            c = make_buffer("C", {int_imm(n, i64)}, f64);
  VarRef i = make_var("i", i64), j = make_var("j", i64);
  Expr at = i * 16 + j;
  tir::Stmt body = tir::for_loop(j,
                                 int_imm(16, i64),
                                 tir::store(c, call_builtin(op, {load(a, {at}), load(b, {at})}), {at}),
                                 tir::LoopKind::vectorized);
  const tir::PrimFuncRef f = prim_func({a, b, c}, tir::for_loop(i, int_imm(n / 16, i64), body));
  Data<double> x(pairs.size()), y(pairs.size()), z(pairs.size());
  for (size_t k = 0; k < pairs.size(); ++k) x[k] = pairs[k].first, y[k] = pairs[k].second;
  for (const target::CpuLevel* level : target::host_levels()) {
    ASSERT_EQ(run_kernel(f, *level, {x.raw(), y.raw(), z.raw()}), 0);
    double worst = 0;
    size_t worst_at = 0;
    for (size_t k = 0; k < pairs.size(); ++k) {
      const long double wanted = reference(x[k], y[k]);
      double error = ulps64(z[k], wanted);
      if (wanted == 0 && std::signbit(wanted) != std::signbit(z[k])) error = 1e9;
      if (error > worst) worst = error, worst_at = k;
    }
    EXPECT_LE(worst, max_ulps) << op << "(" << x[worst_at] << ", " << y[worst_at] << ") = " << z[worst_at] << " at "
                               << level->name;
    testing::Test::RecordProperty("ulps", std::to_string(worst));
  }
}

TEST(WidePow, FollowsCWithinAnUlpAndAHalf) {
  expect_wide_within("tir.pow", std::pow, 1.5, [](auto& uniform, int i) -> std::pair<double, double> {
    if (i % 4 == 0) return {1 + uniform(-1e-3, 1e-3), uniform(-7e5, 7e5)};
    if (i % 4 == 1) return {std::exp2(uniform(-1070, 1023)), uniform(-1, 1)};
    if (i % 4 == 2) return {uniform(-30, 30), std::nearbyint(uniform(-200, 200))};
    return {std::exp2(uniform(-20, 20)), uniform(-50, 50)};
  });
}

TEST(WideAtan2, FollowsCWithinTwoUlpsAndAHalf) {
  expect_wide_within("tir.atan2", std::atan2, 2.5, [](auto& uniform, int i) -> std::pair<double, double> {
    const double y = std::exp2(uniform(i % 3 ? -20 : 900, i % 3 ? 20 : 1023)), x = y * uniform(-4, 4);
    return {i % 2 ? y : -y, x};
  });
}

// ---- Functions of two in f32 ----

/// Numbers where functions of two change what they do, each with each, and `more` in both.
struct Pairs {
  std::vector<std::pair<float, float>> all;
  Pairs() {
    std::vector<float> special = {0.0f,      -0.0f, 1.0f,   -1.0f,  2.0f,  -2.0f,       3.0f,        -3.0f,
                                  0.5f,      -0.5f, 1e-45f, 1e-40f, 1e30f, -1e30f,      16777216.0f, INFINITY,
                                  -INFINITY, NAN,   2.5f,   -2.5f,  1e-3f, 33554433.0f, 0.99999994f, 1.0000001f};
    for (float x : special)
      for (float y : special) all.emplace_back(x, y);
  }
  float draw(float lo, float hi) {
    state_ = state_ * 1664525u + 1013904223u;
    return lo + (hi - lo) * static_cast<float>(state_ >> 8) * 0x1p-24f;
  }

 private:
  uint32_t state_ = 1;
};

void expect_within(const char* op, double (*reference)(double, double), double max_ulps,
                   std::vector<std::pair<float, float>> pairs) {
  while (pairs.size() % 16) pairs.emplace_back(1.0f, 1.0f);
  int64_t n = static_cast<int64_t>(pairs.size());
  BufferRef a = make_buffer("A", {int_imm(n, i64)}, f32), b = make_buffer("B", {int_imm(n, i64)}, f32),
            c = make_buffer("C", {int_imm(n, i64)}, f32);
  VarRef i = make_var("i", i64), j = make_var("j", i64);
  Expr at = i * 16 + j;
  tir::Stmt body = tir::for_loop(j,
                                 int_imm(16, i64),
                                 tir::store(c, call_builtin(op, {load(a, {at}), load(b, {at})}), {at}),
                                 tir::LoopKind::vectorized);
  Data<float> x(pairs.size()), y(pairs.size()), z(pairs.size());
  for (size_t k = 0; k < pairs.size(); ++k) x[k] = pairs[k].first, y[k] = pairs[k].second;
  for (const target::CpuLevel* level : target::host_levels()) {
    ASSERT_EQ(
        run_kernel(
            prim_func({a, b, c}, tir::for_loop(i, int_imm(n / 16, i64), body)), *level, {x.raw(), y.raw(), z.raw()}),
        0);
    double worst = 0;
    size_t worst_at = 0;
    for (size_t k = 0; k < pairs.size(); ++k) {
      const double wanted = reference(static_cast<double>(x[k]), static_cast<double>(y[k]));
      double error = ulps(z[k], wanted);
      if (wanted == 0 && std::signbit(wanted) != std::signbit(z[k])) error = 1e9;
      if (error > worst) worst = error, worst_at = k;
    }
    EXPECT_LE(worst, max_ulps) << op << "(" << x[worst_at] << ", " << y[worst_at] << ") = " << z[worst_at] << " at "
                               << level->name;
  }
}

TEST(Pow, FollowsCWithinAnUlpAndAHalf) {
  Pairs pairs;
  for (int i = 0; i < 100000; ++i) pairs.all.emplace_back(std::exp2(pairs.draw(-20, 20)), pairs.draw(-6, 6));
  for (int i = 0; i < 20000; ++i) pairs.all.emplace_back(pairs.draw(0.999f, 1.001f), pairs.draw(-60000, 60000));
  expect_within("tir.pow", std::pow, 1.5, std::move(pairs.all));
}

TEST(Atan2, FollowsCWithinTwoUlpsAndAHalf) {
  Pairs pairs;
  for (int i = 0; i < 100000; ++i) {
    const float y = std::exp2(pairs.draw(-20, 20)), x = y * pairs.draw(-4, 4);
    pairs.all.emplace_back(i % 2 ? y : -y, x);
  }
  for (int i = 0; i < 20000; ++i)
    pairs.all.emplace_back(std::exp2(pairs.draw(100, 128)), std::exp2(pairs.draw(100, 128)));
  expect_within("tir.atan2", std::atan2, 2.5, std::move(pairs.all));
}

}  // namespace
}  // namespace sator::codegen
