// Where a tensor is not 0: what the op `nonzero` means (relax/ops/search.cc).
#pragma once

#include "runtime/tensor.h"

namespace sator::runtime {

/// The indices of the elements that are not 0 (a NaN is not), row by row of x.
///   x   [...], rank >= 1    any dtype of numbers, bool
///   →   [rank, count] int64
Ref<Tensor> nonzero(const Tensor& x);

}  // namespace sator::runtime
