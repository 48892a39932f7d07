#pragma once

#include "dataflow/cost/cost.h"
#include "dataflow/counts/count_memo.h"
#include "dataflow/mapping/at_pes.h"

namespace sator::dataflow {

/// What a product costs on the array under a mapping: exact counts at the PEs with the chip's skew, cycles of the array,
/// and traffic of every memory that its tensors pass.
///   in_parts   per access and iterator: whether the tensor's tiles along the iterator come or go one after the other
/// Or why it cannot be counted, as a value: another mapping may be.
/// Errors: the mapping uses PEs that the chip lacks or says nothing of some memory; bits beyond 64 bits.
std::variant<StatementCost, Reason> cost_on_array(const Work& work, const Product& product, const Placement& placement,
                                                  const PrecisionChoice& choice, const Chip& chip, CountMemo& memo,
                                                  const std::vector<std::vector<bool>>& in_parts);

/// A product's statement at the PEs as it was costed: under its placement, or as TENET's files of the chip say.
Problem problem_at_pes(const StatementCost& cost, const Chip& chip);

/// How the chip runs a choice of precision.
Pace pace_of(const PrecisionChoice& choice);

/// count * bits. Errors: it does not fit 64 bits.
int64_t bits_of(int64_t count, int64_t bits);

}  // namespace sator::dataflow
