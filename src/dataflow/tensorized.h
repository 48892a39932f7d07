// A kernel whose products run by calls of the chip's array: tensorized instead of bound.
#pragma once

#include <variant>

#include "base/error.h"
#include "dataflow/from_tir.h"
#include "dataflow/scheduled.h"

namespace sator::dataflow {

/// The function at the sizes of `facts`, with every product tiled as its cost's default mapping says and its inner loops
/// replaced by the intrinsic of one stamp of the chip's whole array (rules/array_intrin.h). work_of reads the same mapping
/// from it as from schedule_as_costed.
///   cost   of the kernel by CostEngine, under mappings of the engine's own
///   →      the function, or why a product cannot be called so: an intrinsic has one shape, and computes whole tiles
std::variant<ScheduledFunction, Reason> tensorize_as_costed(const tir::PrimFuncRef& func, const FunctionFacts& facts,
                                                            const KernelCost& cost, const Chip& chip);

}  // namespace sator::dataflow
