// The values of a tensor, each once: what the op `unique` means (relax/ops/search.cc).
#pragma once

#include <optional>

#include "runtime/value.h"

namespace sator::runtime {

struct UniqueOptions {
  bool sorted = true;  ///< ascending; else in the order of their first occurrences
  bool index = false, inverse = false,
       counts = false;               ///< further results: int64[values], int64[elements], int64[values]
  std::optional<int64_t> axis = {};  ///< of the slices that are compared, element by element; nothing: single elements
};

/// The values, or a tuple of them and the further results in their order. A NaN is one value, greater than all numbers.
///   x   [...]  bool | integer | float (IEEE or bfloat16)
/// Errors: the axis is not one of x.
Value unique(const Tensor& x, const UniqueOptions& options);

}  // namespace sator::runtime
