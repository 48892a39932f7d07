// The work of a function that is run for several groups of rows, each with matrices of its own: experts.
#pragma once

#include "dataflow/programs/from_tir.h"

namespace sator::dataflow {

/// Attribute of such a function: what it states is one group's work. Its sizes then say `rows`, of all groups together, and
/// `groups`, how many there are.
inline constexpr const char* kRowGroups = "sator.row_groups";

/// The work of all groups: the rows are spread evenly, so some groups have one more than others. A group is the outermost
/// iterator; every tensor has a part for each.
/// Errors: as of work_of; the two sizes are not given; loops that are bound for one group.
TirWork work_of_groups(const tir::PrimFunc& func, const FunctionFacts& facts, const Chip* chip);

/// Errors: the function is run for several groups, which no loop of its own goes over.
void require_one_group(const tir::PrimFunc& func, const FunctionFacts& facts);

}  // namespace sator::dataflow
