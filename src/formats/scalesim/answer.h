#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sator::formats {

/// SCALE-Sim's answer to `config` (.cfg) and `topology` (CSV; of M, N, K where `"gemm": true`): `layers`, each with the
/// array's counts and, from the memory behind it, stalls, DRAM words and bandwidths. `ofmap_sram_writes` counts the words
/// that leave the array, and `ofmap_sram_writes_as_reported` what SCALE-Sim prints; with `"compat": "scalesim"` both are
/// as printed. A layer whose memory is not followed has `memory_refused` in place of its memory keys.
/// Errors: a key that is missing or not a text, and what the readers of the two files say.
nlohmann::json answer_scalesim(const nlohmann::json& input);

}  // namespace sator::formats
