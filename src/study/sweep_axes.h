#pragma once

#include <cstdint>
#include <vector>

namespace sator::study {

/// Batches and contexts of a sweep; each batch is taken with each context.
struct SweepAxes {
  std::vector<int64_t> batches, contexts;
  bool empty() const { return batches.empty() && contexts.empty(); }
};

}  // namespace sator::study
