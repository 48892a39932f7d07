// Floats of few bits of exponent, whose channel has a power of two for scale: float32 in 28 bits, bfloat16 in 12.
#pragma once

#include <bit>
#include <cstdint>

namespace sator::llm {

/// A float of 1 sign, `exponent_bits` of exponent (2 .. 7) and the rest of mantissa (at most 23), subnormal below its least exponent, without
/// infinities: the largest exponent is that of 1 to 2.
struct SmallFloat {
  int bits, exponent_bits;
  int mantissa_bits() const { return bits - 1 - exponent_bits; }
  uint32_t sign() const { return 1u << (bits - 1); }
  uint32_t largest() const { return sign() - 1; }

  /// What float32 with the code's sign, exponent and mantissa is multiplied by, a power of two.
  float unit() const { return std::bit_cast<float>(static_cast<uint32_t>(254 - ((1 << exponent_bits) - 1)) << 23); }
  float value(uint32_t code) const {
    const uint32_t bits32 = (code & sign()) << (32 - bits) | (code & largest()) << (23 - mantissa_bits());
    return std::bit_cast<float>(bits32) * unit();
  }
  /// The nearest, ties to even, of |v| < 2. It may be one more than `largest`.
  uint32_t magnitude(float v) const {
    const uint32_t all = std::bit_cast<uint32_t>(v) & 0x7fffffff;
    const int exponent = static_cast<int>(all >> 23);
    const uint32_t mantissa = exponent > 0 ? (all & 0x7fffff) | 0x800000 : all & 0x7fffff;
    // Of this format; what is below 1 is subnormal, and shifted so much further.
    const int own = (exponent > 0 ? exponent : 1) - (127 - ((1 << exponent_bits) - 1));
    const int shift = 23 - mantissa_bits() + (own < 1 ? 1 - own : 0);
    if (shift > 24) return 0;
    const uint32_t rounded =
        shift == 0 ? mantissa : (mantissa + (1u << (shift - 1)) - 1 + (mantissa >> shift & 1)) >> shift;
    return own < 1 ? rounded : (static_cast<uint32_t>(own - 1) << mantissa_bits()) + rounded;
  }
};

}  // namespace sator::llm
