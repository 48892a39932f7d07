// Elements as unsigned numbers that sort as they do: NaN is the greatest, -0 and 0 are equal.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/dtype.h"
#include "base/float16.h"

namespace sator::runtime {

template <class Float, class Bits>
Bits key_of_float(Float value) {
  if (value != value) return std::numeric_limits<Bits>::max();
  if (value == 0) value = 0;  // -0 and 0 are equal
  const Bits bits = std::bit_cast<Bits>(value), sign = Bits{1} << (sizeof(Bits) * 8 - 1);
  return bits & sign ? ~bits : bits | sign;
}

/// Reads elements of one dtype as keys.
template <class Key>
Key key_at(const void* data, int64_t i, DType dtype) {
  auto read = [&]<class T>(T) {
    T v;
    std::memcpy(&v, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return v;
  };
  if (dtype.is_ieee_float()) {
    if (dtype.bits == 16) return key_of_float<float, uint32_t>(f16_to_f32(read(uint16_t{})));
    if (dtype.bits == 32) return key_of_float<float, uint32_t>(read(float{}));
    if constexpr (sizeof(Key) == 8) return key_of_float<double, uint64_t>(read(double{}));
  }
  if (dtype.is_bfloat())
    return key_of_float<float, uint32_t>(std::bit_cast<float>(static_cast<uint32_t>(read(uint16_t{})) << 16));
  const int64_t bytes = dtype.bytes();
  const bool is_signed = dtype.is_int();
  const Key flip = is_signed ? Key{1} << (sizeof(Key) * 8 - 1) : Key{0};
  if (bytes == 1) return static_cast<Key>(is_signed ? read(int8_t{}) : read(uint8_t{})) ^ flip;
  if (bytes == 2) return static_cast<Key>(is_signed ? read(int16_t{}) : read(uint16_t{})) ^ flip;
  if (bytes == 4) return static_cast<Key>(is_signed ? read(int32_t{}) : read(uint32_t{})) ^ flip;
  return static_cast<Key>(read(uint64_t{})) ^ flip;
}

}  // namespace sator::runtime
