#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "dataflow/cost/cost.h"

namespace sator::dataflow {

/// A kernel's cost for people: latency with its terms, which resource binds and what the others leave free, bytes per memory,
/// energy with its sources.
std::string cost_table(const KernelCost& cost, const Chip& chip);

/// The same figures by name.
nlohmann::json cost_json(const KernelCost& cost, const Chip& chip);

}  // namespace sator::dataflow
