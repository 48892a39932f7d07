#include "study/costing.h"

#include <algorithm>

#include "base/error.h"

namespace sator::study {

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
      rows.push_back(std::move(row));
    } catch (const Error& error) {
      refuse(error.reason.what);
    }
  }
  return sum_of(std::move(rows), chip());
}

}  // namespace sator::study
