#pragma once

#include <nlohmann/json_fwd.hpp>

#include "formats/timeloop/evaluate.h"
#include "formats/timeloop/spec.h"

namespace sator::formats {

/// The figures that Timeloop prints for an input with the texts `architecture`, `problem`, `mapping` and, where energies
/// are asked, `ert`; `release` may be "v3.0.3" (else) or "master". The keys: `cycles`, `utilization`, `operations`, `energy_pJ` and `levels`, the innermost first, each with the
/// counts of the data spaces that it keeps. What was left out, and why, is said in `notes`.
/// Errors: those of timeloop::parse and timeloop::Model; a text is missing or another one is there.
nlohmann::json answer_timeloop(const nlohmann::json& input);

namespace timeloop {

nlohmann::json to_json(const Input& input, const Figures& figures);

}  // namespace timeloop

}  // namespace sator::formats
