// A statement at a chip's PEs: the problem whose counts are asked.
#pragma once

#include <optional>

#include "dataflow/counts/relation.h"
#include "target/chip.h"

namespace sator::dataflow {

/// The chip's PEs, (row, column), or with cores (core, row, column); without wires.
Array pes_of(const Chip& chip, bool cores);

/// The mapping with the core's number as first coordinate of space, where there is one.
Mapping with_core(Mapping mapping, const std::optional<QuasiAffine>& core);

/// Whether operands take one stamp per PE on the chip's wires.
bool skews(const Mapping& mapping, const Chip& chip);

/// The statement at the chip's PEs under a mapping: with its wires and the skew that belongs to them. Where cores are
/// chosen, they are a further coordinate of space, before rows and columns.
Problem problem_at_pes(const Statement& statement, const Mapping& mapping, const Chip& chip,
                       const std::optional<QuasiAffine>& core = {});

/// An array of one PE, which stands for a memory when tiles are counted.
const Array& one_pe();

}  // namespace sator::dataflow
