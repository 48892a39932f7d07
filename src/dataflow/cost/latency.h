#pragma once

#include "dataflow/cost/cost.h"

namespace sator::dataflow {

/// Sets the cost's resources, bound, latency_parts and latency from its statements, by the formula of KernelCost.
void find_latency(KernelCost& cost, const Chip& chip);

}  // namespace sator::dataflow
