#pragma once

#include <string_view>

#include "runtime/tensor.h"

namespace sator::runtime {

/// What a program asks of a tensor while it runs, as the ops R.inspect.tensor_<what> name it:
///   dtype_code            DLPack's: 0 int, 1 uint and bool, 2 float, 4 bfloat
///   dtype_bits            bits of an element; dtype_lanes  1, but for vectors
///   ndim                  the rank
///   shape_i, stride_i     of the axis, in elements
///   byte_offset, elem_offset  0: a tensor begins at its first element
/// Errors: an axis outside of [0, rank).
int64_t tensor_property(const Tensor& tensor, std::string_view what, int64_t axis = 0);

}  // namespace sator::runtime
