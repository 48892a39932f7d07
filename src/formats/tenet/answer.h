#pragma once

#include <nlohmann/json_fwd.hpp>

#include "dataflow/counts/counts.h"
#include "dataflow/tenet/tenet_text.h"

namespace sator::formats {

/// `input` holds the texts `pe_array`, `mapping` and `statement`. The answer:
///   counts                 exact, 64-bit: macs, pe_array, space, time, spacetime, and per tensor ("in:A", "out:C") total,
///                          assigned, unique, temporal_hits, spatial_hits, footprint
///   derived                TENET's metrics as published, of these counts
///   tenet_master           what TENET's program returns (branch master), overflows included; null where it is no number
///   tenet_micro_tutorial   the same of the branch micro_tutorial; absent where that one divides by zero
///   cycles                 work_cycles: the most loaded PE of each stamp, summed; enumerated, outside_array: see counts.h
/// Errors: those of parse_tenet; what the engine refuses to count.
nlohmann::json answer_tenet(const nlohmann::json& input);

/// The same of files that were read already.
nlohmann::json tenet_answer(const dataflow::TenetInput& input, const dataflow::Counts& counts);

/// The exact counts. Errors: what the engine refuses to count, named.
dataflow::Counts tenet_counts(const dataflow::TenetInput& input);

/// "in:A", "out:C".
std::string tenet_key(const dataflow::TensorCounts& tensor);

}  // namespace sator::formats
