// A tensor program of the user's own on a chip.
#pragma once

#include "dataflow/cost/cost.h"
#include "dataflow/programs/from_tir.h"

namespace sator::dataflow {

struct FunctionCost {
  KernelCost cost;
  std::vector<std::string> notes;  // what had to be assumed, beside cost.notes
};

/// The function as one kernel: under the mapping that its loops state, else under the engine's own. What an `if` on indices leaves
/// out is no work; where that is more ragged than the engine counts exactly (causal attention of some hundred tokens), it is a mask,
/// and rows run in blocks, each over the columns that it sees (cost/row_blocks.h), with a note.
///   goal   the engine's
/// Errors: those of work_of and CostEngine::cost.
FunctionCost cost_of_function(CostEngine& engine, const tir::PrimFuncRef& func, const FunctionFacts& facts,
                              const Goal& goal);

}  // namespace sator::dataflow
