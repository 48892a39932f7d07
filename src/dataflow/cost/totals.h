#pragma once

#include "dataflow/cost/cost.h"

namespace sator::dataflow {

/// Sets what follows from a kernel's statements and its latency: MACs, traffic outside, what memories and PEs do of what they
/// could, and energy part by part.
void sum_up(KernelCost& cost, const Chip& chip);

}  // namespace sator::dataflow
