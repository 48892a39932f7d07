// What a model's steps cost by the routes in which a compiler can bring a described chip into a program (routes.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
inline constexpr Route kAllRoutes[] = {Route::schedule, Route::tensorize, Route::pattern, Route::merged};

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
  bool operator==(const RouteKernel&) const = default;
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
  bool operator==(const RouteStep&) const = default;
};

/// A scheme's prompt and decode step by one route.
struct RouteCosts {
  Route route = Route::schedule;
  std::string scheme;
  RouteStep prefill, decode;
  bool operator==(const RouteCosts&) const = default;
};
/// Its steps, by name.
struct RouteStepName {
  std::string_view name;
  RouteStep RouteCosts::* step;
};
inline constexpr RouteStepName kRouteSteps[] = {{"prefill", &RouteCosts::prefill}, {"decode", &RouteCosts::decode}};

/// A prompt, and a token at a context, that routes are compared on.
struct RouteLengths {
  int64_t prompt_len = 128, context = 128;
  bool operator==(const RouteLengths&) const = default;
};

/// A scheme on a chip.
struct RoutesOnChip {
  std::string chip, scheme;
  RouteLengths lengths;
  std::vector<RouteCosts> routes;
  std::vector<std::string> notes;  // of the passes, on parts of the graph that were not matched or not joined
  bool operator==(const RoutesOnChip&) const = default;
};

}  // namespace sator::study
