// What an integer dtype makes of a float: the same in constants, in the interpreter and in machine code.
#pragma once

#include "base/dtype.h"

namespace sator {

/// Towards zero; NaN becomes 0, what is too large or too small the nearest integer of the dtype. Of uint64 the bits.
int64_t float_to_int(double v, DType dtype);

}  // namespace sator
