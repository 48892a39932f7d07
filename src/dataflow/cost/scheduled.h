#pragma once

#include "dataflow/cost/cost.h"
#include "tir/nodes.h"

namespace sator::dataflow {

/// A function whose products run on an array of PEs.
struct ScheduledFunction {
  tir::PrimFuncRef func;
  std::string trace;                // steps from the function to this one, which schedule/script.h runs
  std::vector<std::string> padded;  // products whose extents were rounded up to whole tiles, and to what
};

/// The function that a kernel was read from, with its products scheduled as their costs' default mappings say: loops bound
/// to pe.x, pe.y and core.*, the others in time. work_of reads the same mapping from it.
///   cost   of the kernel by CostEngine, under mappings of the engine's own
/// Errors: a product is no block of its own (a choice on indices has cut it in parts); a step is refused.
ScheduledFunction schedule_as_costed(const tir::PrimFuncRef& func, const std::string& name, const KernelCost& cost);

/// What differs in the costs of a kernel, read from two forms of its program: counts of products, cycles, traffic; empty if
/// nothing does.
std::string difference(const KernelCost& a, const KernelCost& b);

}  // namespace sator::dataflow
