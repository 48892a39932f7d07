#include "study/costing.h"

#include <algorithm>

#include "base/error.h"
#include "dataflow/scheduled.h"

namespace sator::study {

std::string ChipCoster::schedule_of(const PhaseKernel& kernel, const dataflow::KernelCost& cost) {
  const bool chosen = std::any_of(cost.statements.begin(), cost.statements.end(), [](const auto& s) {
    return s.on_array() && s.placement->nest.has_value();
  });
  if (!kernel.func || !chosen) return "";
  std::string facts;
  for (const auto& [name, value] : kernel.facts.sizes) facts += text(name, " = ", value, "\n");
  for (const dataflow::ParamFacts& p : kernel.facts.params) facts += text(name_of(p.kind), " ", p.bits, "\n");
  auto [at, fresh] = schedules_.try_emplace({kernel.func, facts});
  if (!fresh) return at->second;
  std::string other;
  try {
    const dataflow::ScheduledFunction scheduled = schedule_as_costed(kernel.func, kernel.facts.name, cost);
    const dataflow::TirWork again = work_of(*scheduled.func, kernel.facts, &chip());
    other = difference(cost, engine_.cost(again.kernel, again.placements));
    at->second = scheduled.trace;
  } catch (const Error& error) {
    at->second = text("# not written as a schedule: ", error.reason.what, "\n");
  }
  if (!other.empty())
    internal_error(text("the schedule of ", kernel.facts.name, " on ", chip().name, " has other counts: ", other));
  return at->second;
}

PhaseResult ChipCoster::cost(std::span<const PhaseKernel> kernels) {
  std::vector<KernelRow> rows;
  for (const PhaseKernel& k : kernels) {
    auto refuse = [&](const std::string& why) {
      rows.push_back(uncosted_row(k.calls, text(k.calls.function, " has no cost: ", why)));
    };
    if (!k.refused.empty()) {
      refuse(k.refused);
      continue;
    }
    try {
      const dataflow::KernelCost cost = engine_.cost(k.work.kernel, k.work.placements);
      KernelRow row = kernel_row(k.calls, k.work.kernel, cost, chip(), checker_.confirms(cost));
      row.notes.insert(row.notes.end(), k.work.notes.begin(), k.work.notes.end());
      row.schedule = schedule_of(k, cost);
      rows.push_back(std::move(row));
    } catch (const Error& error) {
      refuse(error.reason.what);
    }
  }
  return sum_of(std::move(rows), chip());
}

}  // namespace sator::study
