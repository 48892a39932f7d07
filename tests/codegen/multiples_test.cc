// Multiples of float16 scales, rounded to float16 (arithmetic.cc): where a function promises that they are finite, without conversions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/float16.h"
#include "codegen/llvm.h"
#include "codegen/run_kernel.h"
#include "tir/parse.h"

namespace sator::codegen {
namespace {

constexpr int64_t kScales = 1 << 16;

/// B[i] = float16((code - zero) * S[i]) as float32, where `code` is an expression of the word or byte A[0] and of the byte Z[0].
tir::PrimFuncRef multiples(const char* code, const char* code_dtype, bool promised, const char* loop = "range") {
  return tir::parse_function(text("\n@T.prim_func\ndef f(A: T.Buffer((1,), \"",
                                  code_dtype,
                                  "\"), Z: T.Buffer((1,), \"uint8\"), S: T.Buffer((65536,), \"float16\"), "
                                  "B: T.Buffer((65536,), \"float32\")):\n",
                                  promised ? "    T.func_attr({\"sator.finite_casts\": 1})\n" : "",
                                  "    for i in ",
                                  loop,
                                  "(4096):\n        for j in T.vectorized(16):\n"
                                  "            B[i * 16 + j] = T.Cast(\"float32\", T.Cast(\"float16\", ",
                                  code,
                                  " * T.Cast(\"float32\", S[i * 16 + j])))\n"));
}

float nearest_float16(float v) { return f16_to_f32(f32_to_f16(v)); }

struct Scales {
  Data<uint16_t> bits{kScales};
  Scales() {
    for (int64_t i = 0; i < kScales; ++i) bits[static_cast<size_t>(i)] = static_cast<uint16_t>(i);
  }
  float operator[](size_t i) const { return f16_to_f32(bits[i]); }
};

/// All scales of which the multiple is finite, at every level.
void expect_nearest(const tir::PrimFuncRef& f, void* code, uint8_t zero, float multiplier) {
  Scales scales;
  Data<float> b(kScales);
  size_t compared = 0;
  for (const target::CpuLevel* level : target::host_levels()) {
    ASSERT_EQ(run_kernel(f, *level, {code, &zero, scales.bits.raw(), b.raw()}), 0);
    size_t wrong = 0;
    for (size_t i = 0; i < kScales; ++i) {
      const float expected = nearest_float16(multiplier * scales[i]);
      if (!std::isfinite(expected)) continue;
      ++compared;
      wrong += b[i] != expected;
    }
    EXPECT_EQ(wrong, 0u) << level->name << ", multiples by " << multiplier;
  }
  EXPECT_GT(compared, 2000u);
}

TEST(Multiples, OfCodesLessAConstantAreTheNearestFloat16) {
  const char* code = "(T.Cast(\"float32\", T.bitwise_and(A[0], T.uint32(15))) - T.float32(7))";
  for (uint32_t c = 0; c < 16; ++c) {
    uint32_t word = 0xabcdef30u | c;
    expect_nearest(multiples(code, "uint32", true), &word, 0, static_cast<float>(c) - 7);
  }
}

TEST(Multiples, OfBytesLessZeroPointsAreTheNearestFloat16) {
  const char* code = "(T.Cast(\"float32\", A[0]) - T.Cast(\"float32\", Z[0]))";
  const tir::PrimFuncRef f = multiples(code, "uint8", true);
  for (auto [c, zero] : {std::pair{255, 0}, {0, 255}, {254, 3}, {171, 0}, {129, 2}, {0, 85}, {11, 11}, {3, 214}}) {
    uint8_t byte = static_cast<uint8_t>(c);
    expect_nearest(f, &byte, static_cast<uint8_t>(zero), static_cast<float>(c - zero));
  }
}

TEST(Multiples, WithoutThePromiseTheyMayBeInfinite) {
  const char* code = "(T.Cast(\"float32\", A[0]) - T.Cast(\"float32\", Z[0]))";
  Scales scales;
  Data<float> b(kScales);
  uint8_t byte = 11, zero = 4;
  for (const target::CpuLevel* level : target::host_levels()) {
    ASSERT_EQ(run_kernel(multiples(code, "uint8", false), *level, {&byte, &zero, scales.bits.raw(), b.raw()}), 0);
    size_t wrong = 0;
    for (size_t i = 0; i < kScales; ++i) {
      const float expected = nearest_float16(7 * scales[i]);
      wrong += !(b[i] == expected || (std::isnan(b[i]) && std::isnan(expected)));
    }
    EXPECT_EQ(wrong, 0u) << level->name;
    EXPECT_EQ(b[f32_to_f16(30000)], std::numeric_limits<float>::infinity());
  }
}

TEST(Multiples, AreNotConvertedWherePromised) {
  const char* code = "(T.Cast(\"float32\", A[0]) - T.Cast(\"float32\", Z[0]))";
  for (const char* loop : {"range", "T.parallel"}) {
    auto listing = [&](bool promised) {
      return compile_listing(*passes::lower(multiples(code, "uint8", promised, loop)), "k", target::cpu_level("avx512"))
          .assembly;
    };
    EXPECT_EQ(listing(true).find("vcvtps2ph"), std::string::npos) << loop;
    EXPECT_NE(listing(false).find("vcvtps2ph"), std::string::npos) << loop;
  }
}

}  // namespace
}  // namespace sator::codegen
