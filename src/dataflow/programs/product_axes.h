#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dataflow/programs/work.h"

namespace sator::dataflow {

/// The iterators of a product that is a matmul C[i,j] += A[i,k] * B[k,j], perhaps under a batch: by what they index.
/// Iterators of one value are left out. Several iterators of a class run as one, the first outermost.
struct ProductAxes {
  std::vector<size_t> batch, i, j, k;
};

/// Nothing where an iterator is in one tensor alone, or where two classes meet in one index (a window).
std::optional<ProductAxes> axes_of(const Work& work, const Product& product);

/// The iterators of one class as one that starts at 0; its number of values.
QuasiAffine fused(const std::vector<size_t>& iterators, const Domain& domain);
int64_t extent_of(const std::vector<size_t>& iterators, const Domain& domain);

}  // namespace sator::dataflow
