#pragma once

#include "dataflow/cost.h"
#include "dataflow/count_memo.h"

namespace sator::dataflow {

/// What a product costs on the array under a mapping: exact counts at the PEs with the chip's skew, cycles of the array,
/// and traffic of every memory that its tensors pass.
/// Errors: the mapping uses PEs that the chip lacks or says nothing of some memory; a count that the engine refuses.
StatementCost cost_on_array(const Work& work, const Product& product, const Placement& placement,
                            const PrecisionChoice& choice, const Chip& chip, CountMemo& memo);

/// How the chip runs a choice of precision.
Pace pace_of(const PrecisionChoice& choice);

/// An array of one PE, which stands for a memory when tiles are counted.
const Array& one_pe();

/// count * bits. Errors: it does not fit 64 bits.
int64_t bits_of(int64_t count, int64_t bits);

}  // namespace sator::dataflow
