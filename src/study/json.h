// study.json: the result as other programs read it, and back.
#pragma once

#include "base/json.h"
#include "study/result.h"

namespace sator::study {

/// Raised when a key changes its meaning or goes away.
inline constexpr int64_t kSchemaVersion = 1;

enum class Kernels : uint8_t { left_out, included };

/// The study as JSON: `model`, `protocol`, `chips`, `schemes`, `rows` (one per scheme and chip, with `prefill` and
/// `decode`), `sweep`, and `routes` with `routes_host` where they were asked for. Units are part of the keys; `bandwidth` is in bytes/s. What was not measured is null; a figure beyond
/// all bounds is the string "inf".
///   kernels   with each phase's kernels under `kernels` (one that differs from an earlier one in its layer alone says so) and
///             each scheme's calls under `host_calls`; else both are left to kernels.csv
Json to_json(const Study& study, Kernels kernels = Kernels::left_out);

/// One phase by itself, with its kernels: as in `rows` of a study.
Json phase_json(PhaseResult phase);

/// Routes, one entry per chip, scheme, step and route. Units are part of the keys.
Json routes_json(std::vector<RoutesOnChip> all);

/// A whole study has one row for each scheme and chip, in their order; a part has what it has.
enum class Extent { whole, part };

/// The study that `to_json` wrote; kernels that were left out are absent.
/// Errors: a value is missing or of another type; a row names a scheme that is not listed; a whole study lacks a row or has them in
/// another order; another schema version.
Study from_json(const Json& json, std::string_view source, Extent extent = Extent::whole);

}  // namespace sator::study
