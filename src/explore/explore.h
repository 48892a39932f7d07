// Chips and mappings for given kernels: latency, energy and area of each point, and the points that no other beats.
#pragma once

#include <optional>

#include "dataflow/cost/cost.h"
#include "explore/chip_space.h"

namespace sator::explore {

/// A kernel and how often it runs.
struct Job {
  dataflow::Kernel kernel;
  double times = 1;
};

/// What a point may take at most.
struct Limits {
  std::optional<double> area_mm2, latency_s, energy_j, watts;
};

/// What one point comes to.
struct Design {
  double latency_s = 0, energy_j = 0, area_mm2 = 0;
  double watts() const { return latency_s > 0 ? energy_j / latency_s : 0; }
  std::string mapping;  // of the first kernel's product, in words
  std::string bound;    // what binds the first kernel
};

/// {latency, energy, area}, and by how much limits are passed: the sum of the relative excesses.
Evaluated evaluated(const Design& design, const Limits& limits);

/// A space of chips and, where there is one kernel, of its mappings.
class KernelSpace {
 public:
  ///   mappings   how many are points of their own for each chip: the engine's choice, then those that a longer search, with
  ///              tiles of each memory its own, estimates to be best
  /// Errors: mappings below 1, or several for several kernels; those of ChipSpace.
  KernelSpace(ChipSpace chips, std::vector<Job> jobs, size_t mappings, Limits limits);

  const ChipSpace& chips() const { return chips_; }
  std::vector<ChipSpace::Dimension> dimensions() const;
  std::vector<size_t> choices() const;

  /// Costs of all kernels at a point, in their order. Errors: a kernel that the engine refuses; a mapping that there is not.
  std::vector<dataflow::KernelCost> costs(const Point& point) const;
  Design design(const Point& point) const;
  /// The same as objectives. A point that the engine refuses is one without objectives.
  Evaluated evaluate(const Point& point) const;

 private:
  ChipSpace chips_;
  std::vector<Job> jobs_;
  size_t mappings_;
  Limits limits_;
};

}  // namespace sator::explore
