// Floats that become integers within bounds, as quantized numbers are made (arithmetic.cc), beside the C library's rounding.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "codegen/run_kernel.h"
#include "tir/parse.h"

namespace sator::codegen {
namespace {

constexpr int64_t kNumbers = 1 << 18;

/// B[i] = Integer(max(min(nearbyint(A[i]), high), low)), in vectors of 16.
tir::PrimFuncRef rounds(const char* dtype, const char* low, const char* high) {
  const std::string shape = text("((", kNumbers, ",), \"");
  return tir::parse_function(text("\n@T.prim_func\ndef f(A: T.Buffer",
                                  shape,
                                  "float32\"), B: T.Buffer",
                                  shape,
                                  dtype,
                                  "\")):\n    for i in range(",
                                  kNumbers / 16,
                                  "):\n        for j in T.vectorized(16):\n            B[i * 16 + j] = T.Cast(\"",
                                  dtype,
                                  "\", T.max(T.min(T.nearbyint(A[i * 16 + j]), T.float32(",
                                  high,
                                  ")), T.float32(",
                                  low,
                                  ")))\n"));
}

/// Floats of every exponent and sign, infinities and NaN among them, then those around whole numbers and halves.
std::vector<float> numbers() {
  std::vector<float> out;
  uint32_t state = 1;
  for (uint32_t top = 0; top < 1 << 16; ++top) {
    state = state * 1664525u + 1013904223u;
    out.push_back(std::bit_cast<float>(top << 16 | state >> 16));
  }
  const auto steps = static_cast<int>((kNumbers - static_cast<int64_t>(out.size())) / 3);
  for (int i = 0; i < steps; ++i) {
    const float half = static_cast<float>(i - steps / 2) * 0.5f;
    for (float near : {std::nextafterf(half, -1e9f), half, std::nextafterf(half, 1e9f)}) out.push_back(near);
  }
  while (static_cast<int64_t>(out.size()) < kNumbers) out.push_back(0);
  return out;
}

template <class Integer>
void expect_rounded(const char* dtype, const char* low, const char* high) {
  const std::vector<float> x = numbers();
  Data<float> a(kNumbers);
  std::copy(x.begin(), x.end(), a.memory);
  Data<Integer> b(kNumbers);
  for (const target::CpuLevel* level : target::host_levels()) {
    ASSERT_EQ(run_kernel(rounds(dtype, low, high), *level, {a.raw(), b.raw()}), 0);
    size_t wrong = 0;
    for (size_t i = 0; i < kNumbers; ++i) {
      constexpr std::numeric_limits<Integer> kOwn;
      const double most = std::fmin(std::stod(high), static_cast<double>(kOwn.max()));
      const double least = std::fmax(std::stod(low), static_cast<double>(kOwn.min()));
      const double bounded = std::fmax(std::fmin(std::nearbyint(x[i]), most), least);
      wrong += b[i] != static_cast<Integer>(std::isnan(x[i]) ? 0 : bounded);
    }
    EXPECT_EQ(wrong, 0u) << dtype << " in [" << low << ", " << high << "] at " << level->name;
  }
}

TEST(Rounding, IsToTheNearestIntegerWithinBounds) {
  expect_rounded<int8_t>("int8", "-127", "127");
  expect_rounded<int8_t>("int8", "-128", "127");
  expect_rounded<uint8_t>("uint8", "0", "255");
  expect_rounded<int16_t>("int16", "-32767", "32767");
  expect_rounded<int32_t>("int32", "-20000", "3000000");
  expect_rounded<int64_t>("int64", "-7", "7");
  expect_rounded<int8_t>("int8", "-1000", "1000");  // what an int8 holds bounds it too
}

}  // namespace
}  // namespace sator::codegen
