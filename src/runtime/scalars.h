// Numbers that programs get as arguments, and those in tensors.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "base/float16.h"
#include "base/float8.h"

namespace sator::runtime {

/// Whether a value of an integer dtype, or bool, can be this number. An integer of 64 bits, signed or not, is any.
inline bool holds(DType dtype, int64_t number) {
  if (dtype.is_bool()) return number == 0 || number == 1;
  return dtype.bits >= 64 || (number >= min_int(dtype) && number <= max_int(dtype));
}

/// The float that lies at an address, which f64 holds whatever the dtype is.
inline double real_at(const void* at, DType dtype) {
  auto get = [&]<class T>(T) { return *static_cast<const T*>(at); };
  if (dtype.is_float8()) return f8_to_f32(get(uint8_t{}), dtype.code);
  if (dtype.is_bfloat()) return bf16_to_f32(get(uint16_t{}));
  switch (dtype.bits) {
    case 16: return f16_to_f32(get(uint16_t{}));
    case 32: return get(float{});
    default: return get(double{});
  }
}

/// The integer or bool that lies at an address; of uint64 its bits.
inline int64_t integer_at(const void* at, DType dtype) {
  auto get = [&]<class T>(T) { return int64_t{*static_cast<const T*>(at)}; };
  switch (dtype.element_bytes()) {
    case 1: return dtype.is_int() ? get(int8_t{}) : get(uint8_t{});
    case 2: return dtype.is_int() ? get(int16_t{}) : get(uint16_t{});
    case 4: return dtype.is_int() ? get(int32_t{}) : get(uint32_t{});
    default: return get(int64_t{});
  }
}

}  // namespace sator::runtime
