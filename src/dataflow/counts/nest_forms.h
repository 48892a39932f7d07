#pragma once

#include <optional>

#include "dataflow/counts/counts.h"

namespace sator::dataflow {

/// Exact counts by closed form of a nest of loops over tiles: the domain is a box, and every coordinate of space and time is
/// a digit of one iterator, floor((x % m) / b), digits of one iterator each within a block of the one before; in space also
/// such digits side by side (d0 + n0 * d1). Tensors are counted where there is one PE: each of their coordinates one
/// iterator or whole blocks of it (k, floor(k/32)) that no digit of time cuts.
/// Nothing where a problem is not of this form: `count` takes it by boxes then.
///
/// Iterators are independent of each other, so every count is a product over them. A tensor's element is at hand one
/// stamp ago where the stamp before differs in no digit of an iterator that indexes the tensor: that is counted loop by
/// loop, by the loop that the step between the two stamps turns.
/// Source: ours; tests compare it with counts by boxes. Cost: some hundred integer operations.
std::optional<Counts> nest_counts(const Problem& problem);

/// Values that a map takes in a domain, likewise.
std::optional<int64_t> nest_stamps(const Domain& domain, const Map& map);

}  // namespace sator::dataflow
