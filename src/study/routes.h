// Three ways in which a compiler can bring a described chip into a program, compared on a model's steps.
#pragma once

#include <span>

#include "llm/workload.h"
#include "study/cost_program.h"

namespace sator::study {

/// schedule   every kernel's loops are bound to the array's PEs; what is no product runs on the chip's vector unit, or on the
///            host where the chip has none
/// tensorize  every product's innermost loops give way to the intrinsic of one stamp of the whole array
///            (dataflow/tensorized.h); a product that has no whole tiles runs on the host with its kernel
/// pattern    parts of the graph that match the backend's patterns (passes/byoc.h) are the chip's kernels, before anything
///            else is fused; all the rest runs on the host
enum class Route : uint8_t { schedule, tensorize, pattern };
inline constexpr Route kRoutes[] = {Route::schedule, Route::tensorize, Route::pattern};
std::string_view name_of(Route route);

/// One step of a model by one route. Chip and host take turns and share the chip's outermost memory, at its bandwidth: what
/// one leaves there the other reads. Handing over costs nothing but the chip's launch.
struct RouteStep {
  int64_t macs = 0, macs_on_chip = 0;
  int64_t launches_on_chip = 0, launches_on_host = 0;
  double chip_s = 0, host_s = 0;
  double outside_bytes = 0;            // read from and written to the outermost memory by both
  std::vector<std::string> left_over;  // products that stay off the chip, and why; each once

  double latency_s() const { return chip_s + host_s; }
  double share() const { return macs > 0 ? static_cast<double>(macs_on_chip) / static_cast<double>(macs) : 0; }
  double bytes_per_s() const { return latency_s() > 0 ? outside_bytes / latency_s() : 0; }
};

/// program_at_phase3 for Route::pattern: what the backend's patterns match is taken out after phase 0. Errors: as there.
ProgramAtPhase3 program_with_patterns(const fs::path& folder, const llm::OpenOptions& options,
                                      bool shapes_only = false);

/// Costs steps on a chip and a host; remembers what it has counted. One per pair.
class RouteCoster {
 public:
  RouteCoster(const Chip& chip, const Chip& host);

  ///   calls   of the step: of the program at phase 3, or with its patterns
  /// Errors: a kernel that the cost engine refuses.
  RouteStep cost(Route route, std::vector<llm::KernelCall> calls);

 private:
  /// The kernel on the chip, by the route; nothing where it stays off.
  ///   why   set where products stay off
  std::optional<dataflow::KernelCost> on_chip(Route route, const PhaseKernel& kernel, std::string& why);

  dataflow::CostEngine chip_, host_;
};

}  // namespace sator::study
