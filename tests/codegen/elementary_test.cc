// Elementary functions against libm in double precision, over the whole range of f32.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "codegen/programs.h"
#include "codegen/run_kernel.h"
#include "ir/builtins.h"

namespace sator::codegen {
namespace {

/// B[i] = op(A[i]) by vectors of `lanes`.
tir::PrimFuncRef unary(const std::string& op, int64_t n, int lanes, DType dtype = f32) {
  BufferRef a = make_buffer("A", {int_imm(n, i64)}, dtype), b = make_buffer("B", {int_imm(n, i64)}, dtype);
  VarRef i = make_var("i", i64), j = make_var("j", i64);
  Expr at = i * lanes + j;
  tir::Stmt body = tir::store(b, call_builtin(op, {load(a, {at})}), {at});
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

TEST_P(Elementary, IsWithinItsErrorAtEveryLevel) {
  const Row& row = GetParam();
  std::vector<float> x = arguments(row.around);
  int64_t n = static_cast<int64_t>(x.size());
  Data<float> a(x.size()), b(x.size());
  std::copy(x.begin(), x.end(), a.memory);
  std::vector<uint32_t> first;
  for (const target::CpuLevel* level : target::host_levels())
    for (int lanes : {1, 64, 16}) {
      std::fill(b.memory, b.memory + n, -77.0f);
      ASSERT_EQ(run_kernel(unary(row.op, n, lanes), *level, {a.raw(), b.raw()}), 0);
      if (first.empty()) {
        double worst = 0;
        float worst_at = 0;
        for (size_t i = 0; i < x.size(); ++i) {
          double error = ulps(b[i], row.reference(x[i]));
          if (error > worst) worst = error, worst_at = x[i];
        }
        EXPECT_LE(worst, row.max_ulps) << row.op << "(" << worst_at << ")";
        RecordProperty("ulps", std::to_string(worst));
        for (size_t i = 0; i < x.size(); ++i) first.push_back(std::bit_cast<uint32_t>(b[i]));
      } else {
        size_t differ = 0;
        for (size_t i = 0; i < x.size(); ++i) differ += first[i] != std::bit_cast<uint32_t>(b[i]) && !std::isnan(b[i]);
        EXPECT_EQ(differ, 0u) << row.op << " at " << level->name << " with " << lanes << " lanes";
      }
    }
}

INSTANTIATE_TEST_SUITE_P(All, Elementary, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.op).substr(4); });

/// Numbers where functions of two change what they do, each with each, and `more` in both.
struct Pairs {
  std::vector<std::pair<float, float>> all;
  Pairs() {
    std::vector<float> special = {0.0f, -0.0f, 1.0f,   -1.0f, 2.0f,        -2.0f,       3.0f,      -3.0f,
                                  0.5f, -0.5f, 1e-40f, 1e30f, -1e30f,      16777216.0f, INFINITY,  -INFINITY,
                                  NAN,  2.5f,  -2.5f,  1e-3f, 33554433.0f, 0.99999994f, 1.0000001f};
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
