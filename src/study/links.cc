#include "study/links.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "dataflow/cost/collective.h"

namespace sator::study {

KernelRow all_reduce_row(const Links& links, const std::string& layer, int64_t tokens, const Chip& chip) {
  const double bytes = static_cast<double>(tokens) * static_cast<double>(links.width * links.bits) / 8;
  KernelRow row{.function = "all_reduce", .layer = layer};
  row.i = tokens, row.j = links.width;
  row.activation_bits = row.output_bits = links.bits;
  Cost& cost = row.cost;
  cost.latency_cycles =
      static_cast<int64_t>(std::ceil(dataflow::all_reduce_s(chip, links.chips, bytes) * chip.clock_hz - 1e-6));
  cost.latency_s = static_cast<double>(cost.latency_cycles) / chip.clock_hz;
  if (chip.calibration) cost.latency_interval = {cost.latency_s, cost.latency_s};
  cost.elasticities = {{"links", 1}};
  cost.bound = "links";
  at(cost.components, Component::links).latency_cycles = cost.latency_cycles;
  // Beside array and vector unit, which stand first.
  cost.resources = {{"array", 0}, {"vector", 0}, {"links", cost.latency_cycles}};
  cost.latency_parts = {{"links: all-reduce", cost.latency_cycles}};
  cost.energy_node_nm = chip.node_nm;
  cost.energy_j = dataflow::all_reduce_j(chip, links.chips, bytes) / static_cast<double>(links.chips);
  if (cost.energy_j > 0) cost.energy = {{"links", cost.energy_j, chip.link->energy_per_bit.source}};
  if (const double waiting = chip.static_watts * cost.latency_s; waiting > 0) {
    cost.energy.push_back({"static", waiting, chip.static_source});
    cost.energy_j += waiting;
  }
  return row;
}

void add_all_reduces(std::vector<KernelRow>& rows, const Links& links, std::span<const int64_t> tokens,
                     const Chip& chip) {
  if (!links.any()) return;
  std::map<int64_t, int64_t> steps;  // by their tokens
  for (int64_t t : tokens) ++steps[t];
  std::vector<KernelRow> out;
  for (size_t r = 0; r < rows.size(); ++r) {
    const std::string layer = rows[r].layer;
    out.push_back(std::move(rows[r]));
    const bool last = std::none_of(rows.begin() + static_cast<long>(r) + 1, rows.end(), [&](const KernelRow& later) {
      return later.layer == layer;
    });
    if (!last || std::find(links.layers.begin(), links.layers.end(), layer) == links.layers.end()) continue;
    for (const auto& [count, times] : steps) {
      out.push_back(all_reduce_row(links, layer, count, chip));
      out.back().count = times;
    }
  }
  rows = std::move(out);
}

}  // namespace sator::study
