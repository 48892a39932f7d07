// Numbers that programs get as arguments.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace sator::runtime {

/// Whether a value of an integer dtype, or bool, can be this number. An integer of 64 bits, signed or not, is any.
inline bool holds(DType dtype, int64_t number) {
  if (dtype.is_bool()) return number == 0 || number == 1;
  return dtype.bits >= 64 || (number >= min_int(dtype) && number <= max_int(dtype));
}

}  // namespace sator::runtime
