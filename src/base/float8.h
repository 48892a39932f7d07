#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/dtype.h"

namespace sator {

/// The value of the bits of an 8-bit float (e4m3 or e5m2).
inline float f8_to_f32(uint8_t bits, DType::Code format) {
  const bool is_e4m3 = format == DType::Code::e4m3;
  const int mantissa_bits = is_e4m3 ? 3 : 2, bias = is_e4m3 ? 7 : 15;
  const int exponent = (bits & 0x7f) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  float value = exponent == 0
                    ? std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits)
                    : std::ldexp(static_cast<float>(mantissa + (1 << mantissa_bits)), exponent - bias - mantissa_bits);
  if (is_e4m3 && (bits & 0x7f) == 0x7f) value = NAN;
  if (!is_e4m3 && exponent == 31) value = mantissa == 0 ? INFINITY : NAN;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | static_cast<uint32_t>(bits & 0x80) << 24);
}

/// The bits of the nearest 8-bit float, ties to even. What rounds beyond the greatest one is NaN in e4m3 (448 is the
/// greatest), and infinity in e5m2 (57344).
inline uint8_t f32_to_f8(float value, DType::Code format) {
  const bool is_e4m3 = format == DType::Code::e4m3;
  const int mantissa_bits = is_e4m3 ? 3 : 2, bias = is_e4m3 ? 7 : 15, shift = 23 - mantissa_bits;
  const uint32_t all = std::bit_cast<uint32_t>(value), magnitude = all & 0x7fffffff;
  const auto sign = static_cast<uint8_t>(all >> 24 & 0x80);
  const uint8_t infinite = is_e4m3 ? 0x7f : 0x7c, quiet_nan = is_e4m3 ? 0x7f : 0x7e;
  if (magnitude > 0x7f800000) return sign | quiet_nan;
  // Below the least normal number, steps are as large as at it: adding 2^(23 - M) such steps lets the processor round.
  const auto least = static_cast<uint32_t>(127 + 1 - bias) << 23;
  if (magnitude < least) {
    const float steps = std::bit_cast<float>(least + (static_cast<uint32_t>(shift) << 23));
    const float rounded = std::bit_cast<float>(magnitude) + steps;
    return sign | static_cast<uint8_t>(std::bit_cast<uint32_t>(rounded) - std::bit_cast<uint32_t>(steps));
  }
  const uint32_t odd = magnitude >> shift & 1;
  const uint32_t rounded = (magnitude + (1u << (shift - 1)) - 1 + odd) >> shift;
  const uint32_t code = rounded - (static_cast<uint32_t>(127 - bias) << mantissa_bits);
  return sign | static_cast<uint8_t>(code >= infinite ? infinite : code);
}

}  // namespace sator
