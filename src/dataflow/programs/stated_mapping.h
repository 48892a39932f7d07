// The mapping that a scheduled function states: in loops that are bound, in annotations, in copies into memories.
#pragma once

#include <span>

#include "dataflow/programs/bound_statements.h"
#include "dataflow/programs/placement.h"
#include "dataflow/programs/tir_places.h"
#include "dataflow/programs/work.h"

namespace sator::dataflow {

/// What is around a statement: the loops that are its iterators, and the annotations of its block.
struct Around {
  std::vector<Scope::Loop> loops;
  Attrs annotations;
};

/// A copy of a tensor into a memory: its loops say since when the memory holds the tile.
struct CopyIn {
  std::string memory, tensor;
  std::vector<VarRef> loops;
};

/// The mapping that bound loops state: pe.x and pe.y are rows and columns, core.* the chip's cores; the other loops run in
/// time, but unrolled ones at once. Nothing where nothing is stated.
/// Errors: two loops on one axis; more blocks than cores; annotations of another chip. They name the function.
std::optional<Placement> stated_placement(const std::string& function, const Around& around, const Work& work,
                                          std::span<const CopyIn> copies, const Chip& chip);

/// The statement with bound loops as space and the others as time; nothing where no loop is bound.
/// Errors: an axis that no chip has; two loops on one.
std::optional<BoundStatement> stated_space(const std::string& function, const Around& around, Statement statement);

}  // namespace sator::dataflow
