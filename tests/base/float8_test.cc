// 8-bit floats: the values of their codes, and the nearest code of a value.
#include "base/float8.h"

#include <gtest/gtest.h>

#include <limits>

namespace sator {
namespace {

constexpr auto kE4M3 = DType::Code::e4m3, kE5M2 = DType::Code::e5m2;

TEST(Float8, CodesHaveTheValuesOfTheStandard) {
  EXPECT_EQ(f8_to_f32(0x00, kE4M3), 0.0f);
  EXPECT_TRUE(std::signbit(f8_to_f32(0x80, kE4M3)));
  EXPECT_EQ(f8_to_f32(0x38, kE4M3), 1.0f);
  EXPECT_EQ(f8_to_f32(0xb8, kE4M3), -1.0f);
  EXPECT_EQ(f8_to_f32(0x7e, kE4M3), 448.0f);
  EXPECT_EQ(f8_to_f32(0x01, kE4M3), 0x1p-9f);
  EXPECT_EQ(f8_to_f32(0x08, kE4M3), 0x1p-6f);
  EXPECT_TRUE(std::isnan(f8_to_f32(0x7f, kE4M3)));
  EXPECT_EQ(f8_to_f32(0x3c, kE5M2), 1.0f);
  EXPECT_EQ(f8_to_f32(0x7b, kE5M2), 57344.0f);
  EXPECT_EQ(f8_to_f32(0x01, kE5M2), 0x1p-16f);
  EXPECT_EQ(f8_to_f32(0xfc, kE5M2), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(f8_to_f32(0x7d, kE5M2)));
}

TEST(Float8, EveryCodeIsItsOwnNearest) {
  for (DType::Code format : {kE4M3, kE5M2})
    for (int code = 0; code < 256; ++code) {
      const float value = f8_to_f32(static_cast<uint8_t>(code), format);
      if (!std::isnan(value)) EXPECT_EQ(f32_to_f8(value, format), code);
    }
}

/// The nearest value by trying all codes; of two that are as near, the one whose last bit is 0.
float nearest_of_all(float value, DType::Code format) {
  float best = NAN;
  double error = INFINITY;
  for (int code = 0; code < 256; ++code) {
    const float at = f8_to_f32(static_cast<uint8_t>(code), format);
    if (!std::isfinite(at)) continue;
    const double off = std::fabs(static_cast<double>(at) - value);
    if (off < error || (off == error && code % 2 == 0 && at != best)) {
      best = at;
      error = off;
    }
  }
  return best;
}

TEST(Float8, RoundingTakesTheNearestAndOfTwoTheEvenOne) {
  for (DType::Code format : {kE4M3, kE5M2}) {
    const float greatest = format == kE4M3 ? 448.0f : 57344.0f;
    for (int i = -4000; i <= 4000; ++i) {
      const float value = std::ldexp(static_cast<float>(i), i % 23 - 20);
      if (std::fabs(value) > greatest) continue;
      EXPECT_EQ(f8_to_f32(f32_to_f8(value, format), format), nearest_of_all(value, format)) << value;
    }
  }
}

TEST(Float8, WhatIsTooLargeIsNaNOrInfinite) {
  EXPECT_EQ(f32_to_f8(464.0f, kE4M3), 0x7e);  // half of the step beyond 448: the even one
  EXPECT_EQ(f32_to_f8(465.0f, kE4M3), 0x7f);
  EXPECT_EQ(f32_to_f8(-INFINITY, kE4M3), 0xff);
  EXPECT_EQ(f32_to_f8(61439.0f, kE5M2), 0x7b);
  EXPECT_EQ(f32_to_f8(61440.0f, kE5M2), 0x7c);
  EXPECT_EQ(f32_to_f8(NAN, kE5M2) & 0x7f, 0x7e);
}

TEST(DTypeNames, VectorsOfAnyMachineAndFloatsOf8Bits) {
  for (const char* name : {"float32xvscalex4", "int8xvscalex16", "e4m3_float8", "e5m2_float8x4", "boolx4", "float32x4"})
    EXPECT_EQ(DType::parse(name).value_or(DType::Void()).name(), name);
  EXPECT_EQ(DType::parse("float8_e4m3fn")->name(), "e4m3_float8");
  EXPECT_EQ(DType::parse("uint1x4")->name(), "boolx4");
  EXPECT_FALSE(DType::parse("float32x4xvscale"));
  EXPECT_FALSE(DType::parse("float32xvscalex1"));
  EXPECT_FALSE(DType::parse("float8"));
  EXPECT_NE(*DType::parse("float32xvscalex4"), *DType::parse("float32x4"));
}

}  // namespace
}  // namespace sator
