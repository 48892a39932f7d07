#pragma once

#include <optional>

#include "dataflow/counts/counts.h"

namespace sator::dataflow {

/// Exact counts by closed form of a nest of loops over tiles on a systolic array: PEs (r, c) of two axes, each at most one
/// digit of an iterator, wired to the one before along both; and a last coordinate of time t + r + c, t at most one digit:
/// operands take a stamp per PE. The other coordinates of time are digits, as in nest_counts, and so are tensors'.
/// Nothing where a problem is not of this form, or where a wave of one PE may pass on what it holds to the next.
///
/// Within a wave every PE is supplied one stamp ago by the PE before it in its row, the one before in its column, and
/// itself: elements that do not depend on r, on c, on t. So an element is unique where each of these digits that does not
/// index the tensor is 0: a product over iterators of tuples of digits. Between waves nothing is passed on, for a wave
/// begins at the first PE and ends elsewhere.
/// Source: ours; tests compare it with enumeration. Cost: some hundred integer operations.
std::optional<Counts> wave_counts(const Problem& problem);

}  // namespace sator::dataflow
