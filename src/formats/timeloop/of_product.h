#pragma once

#include <variant>

#include "dataflow/cost/cost.h"
#include "formats/timeloop/spec.h"

namespace sator::formats::timeloop {

/// A costed product and its mapping as Timeloop states them. Levels are the chip's memories and, innermost, the registers of the
/// PEs; a level that keeps nothing stands where a memory's loops have one of the same dimension twice. Tensors that are
/// made inside of the kernel come from outside here, and a tensor of one element is left out. Not said: capacities and
/// bandwidths (Timeloop has words of one width per level, the chip bits), the skew of the array, energies.
/// Or why Timeloop cannot state it: the mapping has no loops of its own (TENET's files, rows of a filter on both axes), an
/// index is no sum of loops (scales of groups), tiles do not divide those around them, cores have unequal shares.
std::variant<Input, Reason> input_of(const dataflow::StatementCost& product, const Chip& chip);

}  // namespace sator::formats::timeloop
