// Three ways in which a compiler can bring a described chip into a program, compared on a model's steps.
#pragma once

#include <span>

#include "llm/workload.h"
#include "study/cost_program.h"
#include "study/route_costs.h"

namespace sator::study {

/// Those that a chip has: merged needs a memory between parts (Chip::keeps_between).
std::vector<Route> routes_of(const Chip& chip);

/// program_at_phase3 for Route::pattern and Route::merged: what the chip's patterns match is taken out after phase 0.
///   prompt_len   for which limits of patterns, and what fits between merged parts, are judged, in calls of at most a chunk
///   notes        where given: what the passes say of parts that were not matched or not joined, each once
/// Errors: as there; a pattern with an unknown op.
ProgramAtPhase3 program_with_patterns(const fs::path& folder, const llm::OpenOptions& options, const Chip& chip,
                                      bool merged, int64_t prompt_len, std::vector<std::string>* notes = nullptr);

/// Costs steps on a chip and a host; remembers what it has counted. One per pair.
class RouteCoster {
 public:
  RouteCoster(const Chip& chip, const Chip& host);

  ///   calls   of the step: of the program at phase 3, or with its patterns
  /// Errors: a kernel that the cost engine refuses.
  RouteStep cost(Route route, std::vector<llm::KernelCall> calls);

  /// A scheme's steps by every route that the chip has.
  ///   at      the scheme's program
  ///   notes   added to, as by program_with_patterns
  std::vector<RouteCosts> by_every_route(const fs::path& folder, const llm::Scheme& scheme, const ProgramAtPhase3& at,
                                         const RouteLengths& lengths, const Progress& progress,
                                         std::vector<std::string>& notes);

 private:
  /// The kernel on the chip, by the route; nothing where it stays off, with the reason in `row`.
  std::optional<dataflow::KernelCost> on_chip(Route route, const PhaseKernel& kernel, RouteKernel& row);

  dataflow::CostEngine chip_, host_;
};

}  // namespace sator::study
