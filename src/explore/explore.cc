#include "explore/explore.h"

#include "base/error.h"
#include "base/text.h"
#include "explore/area.h"

namespace sator::explore {

Evaluated evaluated(const Design& d, const Limits& limits) {
  Evaluated e{.point = {}, .objectives = {d.latency_s, d.energy_j, d.area_mm2}, .refused = {}};
  auto check = [&](double value, const std::optional<double>& most) {
    if (most && value > *most) e.violation += *most > 0 ? value / *most - 1 : value + 1;
  };
  check(d.area_mm2, limits.area_mm2);
  check(d.latency_s, limits.latency_s);
  check(d.energy_j, limits.energy_j);
  check(d.watts(), limits.watts);
  return e;
}

KernelSpace::KernelSpace(ChipSpace chips, std::vector<Job> jobs, size_t mappings, Limits limits)
    : chips_(std::move(chips)), jobs_(std::move(jobs)), mappings_(mappings), limits_(limits) {
  if (jobs_.empty() || mappings_ < 1 || (mappings_ > 1 && jobs_.size() > 1))
    fail({.what = text(mappings_, " mappings of ", jobs_.size(), " kernels"),
          .needs = "one mapping of several kernels, or several of one",
          .hint = "leave the number of mappings out"});
}

std::vector<ChipSpace::Dimension> KernelSpace::dimensions() const {
  std::vector<ChipSpace::Dimension> all = chips_.dimensions();
  if (mappings_ == 1) return all;
  ChipSpace::Dimension ranks{"mapping", {}};
  for (size_t m = 0; m < mappings_; ++m) ranks.values.push_back(m == 0 ? "engine's" : text("no. ", m));
  all.push_back(std::move(ranks));
  return all;
}

std::vector<size_t> KernelSpace::choices() const {
  std::vector<size_t> choices;
  for (const ChipSpace::Dimension& d : dimensions()) choices.push_back(d.values.size());
  return choices;
}

std::vector<dataflow::KernelCost> KernelSpace::costs(const Point& point) const {
  dataflow::CostEngine engine(chips_.at(point));
  std::vector<dataflow::KernelCost> costs;
  const size_t rank = mappings_ > 1 ? point.back() : 0;
  if (rank > 0) {
    const std::vector<dataflow::Placement> found = engine.mappings(jobs_[0].kernel, mappings_ - 1);
    if (rank > found.size())
      fail({.what = text("there are ", found.size(), " mappings"),
            .needs = "one of them",
            .hint = "take a lower number"});
    costs.push_back(engine.cost(jobs_[0].kernel, {found[rank - 1]}));
    return costs;
  }
  for (const Job& job : jobs_) costs.push_back(engine.cost(job.kernel));
  return costs;
}

Design KernelSpace::design(const Point& point) const {
  const std::vector<dataflow::KernelCost> all = costs(point);
  Design design{.area_mm2 = area_mm2(chips_.at(point), chips_.base()), .mapping = {}, .bound = all[0].bound};
  for (size_t j = 0; j < jobs_.size(); ++j) {
    design.latency_s += jobs_[j].times * all[j].latency_s;
    design.energy_j += jobs_[j].times * all[j].energy_j;
  }
  for (const dataflow::StatementCost& s : all[0].statements)
    if (s.on_array() && design.mapping.empty()) design.mapping = s.placement->words;
  return design;
}

Evaluated KernelSpace::evaluate(const Point& point) const {
  try {
    return evaluated(design(point), limits_);
  } catch (const Error& error) {
    return {.point = point, .objectives = {}, .refused = error.reason.what};
  }
}

}  // namespace sator::explore
