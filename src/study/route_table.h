// The routes to described chips, compared for any model, schemes and chips: what `--routes` adds to a study or a profile.
#pragma once

#include "study/routes.h"

namespace sator::study {

struct RouteQuestion {
  fs::path model;  // config.json suffices
  std::vector<llm::Scheme> schemes;
  std::vector<Chip> chips;
  Chip host;  // runs what a route leaves off a chip
  RouteLengths lengths;
};

/// Nothing is run. Errors: those of program_at_phase3 and program_with_patterns; a kernel that the cost engine refuses.
std::vector<RoutesOnChip> compare_routes(const RouteQuestion& question, const Progress& progress);

/// Per chip, scheme, step and route, with the lengths for which it holds: the share of MACs on the chip, of zeros among those issued, latency, bandwidth, launches;
/// then, by kernel, what stays off the chip and why, and what was padded.
std::string routes_table(const std::vector<RoutesOnChip>& all);

/// routes.csv: one line per chip, scheme, step, route and kernel.
std::string routes_csv(std::vector<RoutesOnChip> all);

}  // namespace sator::study
