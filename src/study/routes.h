// Three ways in which a compiler can bring a described chip into a program, compared on a model's steps.
#pragma once

#include <span>

#include "llm/workload.h"
#include "study/cost_program.h"

namespace sator::study {

/// schedule   every kernel's loops are bound to the array's PEs; what is no product runs on the chip's vector unit, or on the
///            host where the chip has none
/// tensorize  every product's innermost loops give way to the intrinsic of one stamp of the whole array
///            (dataflow/cost/tensorized.h), padded to whole tiles; a product that cannot be called so runs on the host with its
///            kernel
/// pattern    parts of the graph that match the chip's patterns (passes/byoc.h) are the chip's kernels, before anything
///            else is fused; all the rest runs on the host
/// merged     the same, and neighbouring parts are one kernel, as far as the chip has room for what lies between
enum class Route : uint8_t { schedule, tensorize, pattern, merged };
std::string_view name_of(Route route);
/// Those that a chip has: merged needs a memory between parts (Chip::keeps_between).
std::vector<Route> routes_of(const Chip& chip);

/// A kernel of a step by one route.
struct RouteKernel {
  std::string function;
  int64_t count = 1;
  int64_t macs = 0;         // of one call, as the layer has them
  int64_t macs_issued = 0;  // by the chip's array: with those of masked scores and of zeros that fill up tiles
  bool on_chip = false;
  double latency_s = 0;             // of one call
  std::string why;                  // it stays off the chip, of one that multiplies
  std::vector<std::string> padded;  // its products whose extents were rounded up to whole tiles, and to what
};

/// One step of a model by one route. Chip and host take turns and share the chip's outermost memory, at its bandwidth: what
/// one leaves there the other reads. Handing over costs nothing but the chip's launch.
struct RouteStep {
  int64_t macs = 0, macs_on_chip = 0;  // of the model's layers
  int64_t macs_issued = 0;  // by the chip's array: those on the chip, and of masked scores and zeros that fill up tiles
  int64_t launches_on_chip = 0, launches_on_host = 0;
  double chip_s = 0, host_s = 0;
  double outside_bytes = 0;          // read from and written to the outermost memory by both
  std::vector<RouteKernel> kernels;  // in the order of first sight

  double latency_s() const { return chip_s + host_s; }
  double share() const { return macs > 0 ? static_cast<double>(macs_on_chip) / static_cast<double>(macs) : 0; }
  /// Of what the array multiplied, the share that was zeros.
  double padded_share() const {
    return macs_issued > 0 ? 1 - static_cast<double>(macs_on_chip) / static_cast<double>(macs_issued) : 0;
  }
  double bytes_per_s() const { return latency_s() > 0 ? outside_bytes / latency_s() : 0; }
};

/// program_at_phase3 for Route::pattern and Route::merged: what the chip's patterns match is taken out after phase 0.
///   prompt_len   for which limits of patterns, and what fits between merged parts, are judged, in calls of at most a chunk
///   notes        where given: what the passes say of parts that were not matched or not joined, each once
/// Errors: as there; a pattern with an unknown op.
ProgramAtPhase3 program_with_patterns(const fs::path& folder, const llm::OpenOptions& options, const Chip& chip,
                                      bool merged, int64_t prompt_len, std::vector<std::string>* notes = nullptr);

/// A scheme's prompt and decode step by one route.
struct RouteCosts {
  Route route = Route::schedule;
  std::string scheme;
  RouteStep prefill, decode;
};

/// A prompt, and a token at a context, that routes are compared on.
struct RouteLengths {
  int64_t prompt_len = 128, context = 128;
};

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
