#include "formats/maestro/cost.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text_line.h"
#include "formats/maestro/volumes.h"

namespace sator::formats::maestro {
namespace {

constexpr double kL1Energy = 1.68, kL2Energy = 18.61;  // in MACs
constexpr double kMacEnergyNj = 0.00023;

/// What a level tells the one above.
struct Inside {
  int64_t cycles = 0;
  double average_units = 0;  // of the innermost level, at work
};

class LayerAnalysis {
 public:
  LayerAnalysis(const Layer& layer, const Tensors& tensors, const Hardware& hardware)
      : layer_(layer), tensors_(tensors), hardware_(hardware), levels_(levels_of(layer, tensors, hardware.pes)) {}

  LayerCost cost();
  bool one_level() const { return levels_.size() == 1; }

 private:
  /// Analyzes a level whose dimensions have these sizes; `top` also collects what is reported.
  Inside level(size_t index, const PerDim<int64_t>& size, LayerCost* top);
  const Inside& inner(size_t index, const PerDim<int64_t>& size);
  int64_t transfer_cycles(int64_t words) const {
    const int64_t width = hardware_.noc_words_per_cycle;
    return hardware_.noc_latency_cycles + (words + width - 1) / width - 1;
  }
  int64_t tensor_size(const std::vector<Dim>& tensor, const PerDim<int64_t>& size) const;
  [[noreturn]] void refuse(std::string what) const {
    fail({.what = text("layer ", shown(layer_.name), ": ", what),
          .needs = "every case of the loops computes something; MAESTRO stops here too",
          .hint = "map tiles that fit into their dimensions",
          .where = where_of(layer_.place)});
  }

  const Layer& layer_;
  const Tensors& tensors_;
  const Hardware& hardware_;
  const std::vector<Level> levels_;
  std::map<std::pair<size_t, PerDim<int64_t>>, Inside> known_;
};

const Inside& LayerAnalysis::inner(size_t index, const PerDim<int64_t>& size) {
  const auto key = std::pair(index, size);
  auto it = known_.find(key);
  if (it == known_.end()) it = known_.emplace(key, level(index, size, nullptr)).first;
  return it->second;
}

/// Words of a tensor; an output's Y and X are counted in output positions.
int64_t LayerAnalysis::tensor_size(const std::vector<Dim>& tensor, const PerDim<int64_t>& size) const {
  int64_t words = 1;
  for (Dim dim : tensor) {
    const bool output = &tensor == &tensors_.output;
    const int64_t window = !output ? 1 : dim == Dim::y ? size[Dim::r] : dim == Dim::x ? size[Dim::s] : 1;
    words = times(words, size[dim] - window + 1);
  }
  return words;
}

Inside LayerAnalysis::level(size_t index, const PerDim<int64_t>& size, LayerCost* top) {
  const Level& here = levels_[index];
  const std::vector<std::vector<LoopState>> states = loop_states(here, size);
  Inside out;
  int64_t cases = 0;
  long double average_words = 0;
  int64_t input_buffer = 0, output_buffer = 0;  // L2 words, double-buffered
  bool sized = false;
  std::vector<size_t> at(states.size(), 0);
  LoopCase loops(states.size());
  while (true) {
    int64_t count = 1;
    bool all_first = true;
    for (size_t i = 0; i < states.size(); ++i) {
      loops[i] = states[i][at[i]];
      count = times(count, loops[i].times);
      all_first = all_first && loops[i].at == LoopState::At::first;
    }
    const Volumes volumes(here, loops);
    const int64_t input = volumes.ingress(tensors_.input), weight = volumes.ingress(tensors_.weight);
    const int64_t egress = volumes.egress(tensors_.output), products = volumes.products(tensors_.output);
    const int64_t unit_products = volumes.products_of_a_unit(tensors_.output);
    if (top && !sized) {
      input_buffer = plus(input_buffer, times(2, plus(input, weight)));
      output_buffer = times(2, egress);
      top->input.l2_writes = tensor_size(tensors_.input, size);
      top->filter.l2_writes = tensor_size(tensors_.weight, size);
      top->output.l2_reads = tensor_size(tensors_.output, size);
    }
    if (top) {
      top->output.l2_writes = plus(top->output.l2_writes, times(count, egress));
      top->output.l1_writes = plus(top->output.l1_writes, times(count, products));
      top->output.l1_reads = top->output.l1_writes;
    }
    if (unit_products > 0) {
      sized = true;
      const int64_t ingress = plus(input, weight);
      int64_t compute = unit_products;
      double units = 0;
      if (index + 1 < levels_.size()) {
        const LoopState& spatial = loops[here.spatial_map()];
        compute = 0;
        const auto add = [&](bool short_unit, int64_t copies) {
          const Inside& inside = inner(index + 1, volumes.inner_size(short_unit));
          compute = std::max(compute, inside.cycles);
          units += inside.average_units * static_cast<double>(copies);
        };
        if (spatial.short_tile() && spatial.last_unit_short) {
          add(true, 1);
          if (here.edge_clusters > 1) add(false, here.edge_clusters - 1);
        } else {
          add(false, volumes.active_units());
        }
      }
      if (units == 0) units = static_cast<double>(volumes.active_units());
      const int64_t in_cycles = transfer_cycles(ingress), out_cycles = transfer_cycles(egress);
      int64_t cycles = all_first ? plus(compute, in_cycles) : std::max({out_cycles, compute, in_cycles});
      if (top) {
        if (compute == 0) refuse("a cluster computes nothing in one case of the loops");
        const int64_t width = hardware_.offchip_words_per_cycle;
        cycles = std::max({input_buffer / width / 2, cycles, output_buffer / width / 2});
        top->macs = plus(top->macs, times(count, products));
        top->input.l2_reads = plus(top->input.l2_reads, times(count, input));
        top->filter.l2_reads = plus(top->filter.l2_reads, times(count, weight));
        const int64_t words = std::max(ingress, egress);
        top->peak_words_per_cycle = std::max(top->peak_words_per_cycle, words / compute);
        average_words += static_cast<long double>(times(count, words) / compute);
      }
      out.cycles = plus(out.cycles, times(count, cycles));
      out.average_units += units * static_cast<double>(count);
      cases = plus(cases, count);
    }
    size_t i = states.size();
    while (i > 0 && ++at[i - 1] == states[i - 1].size()) at[--i] = 0;
    if (i == 0) break;
  }
  if (cases == 0) {
    if (top) refuse("no case of the loops computes anything");
    return out;  // the units beside it do
  }
  out.average_units /= static_cast<double>(cases);
  if (top) top->average_words_per_cycle = static_cast<double>(average_words / static_cast<long double>(cases));
  return out;
}

LayerCost LayerAnalysis::cost() {
  LayerCost out;
  const Inside all = level(0, levels_[0].size, &out);
  out.cycles = all.cycles;
  out.average_pes = all.average_units;
  for (TensorTraffic* t : {&out.input, &out.filter}) {
    t->l1_writes = t->l2_reads;
    t->l1_reads = out.macs;
  }
  return out;
}

double l2_energy(const LayerCost& cost) {
  double total = 0;
  for (int64_t words :
       {cost.input.l2_reads, cost.input.l2_writes, cost.filter.l2_reads, cost.filter.l2_writes, cost.output.l2_writes})
    total += static_cast<double>(words) * kL2Energy;
  return total;
}

double l1_energy(const LayerCost& cost) {
  double total = 0;
  for (const TensorTraffic* t : {&cost.input, &cost.filter, &cost.output})
    for (int64_t words : {t->l1_reads, t->l1_writes}) total += static_cast<double>(words) * kL1Energy;
  return total;
}

bool batched(const Layer& layer) { return layer.size[Dim::n] != 0; }

}  // namespace

std::vector<LayerCost> cost_of(const Network& network, const Hardware& hardware) {
  std::vector<LayerCost> costs;
  std::map<LayerType, Tensors> tensors;  // MAESTRO takes those of the first layer of a type for all of them
  for (const Layer& layer : network.layers) {
    auto it = tensors.find(layer.type);
    if (it == tensors.end()) it = tensors.emplace(layer.type, tensors_of(layer.type, batched(layer))).first;
    try {
      LayerAnalysis analysis(layer, it->second, hardware);
      LayerCost cost = analysis.cost();
      double l1 = 0;
      if (analysis.one_level())
        l1 = l1_energy(cost);
      else if (!costs.empty())
        l1 = l1_energy(costs.back());
      cost.energy_nj = (l2_energy(cost) + l1) * kMacEnergyNj;
      costs.push_back(cost);
    } catch (const Error& error) {  // arithmetic does not know whose it is
      Reason reason = error.reason;
      if (reason.where.empty()) reason.where = where_of(layer.place);
      fail(std::move(reason));
    }
  }
  return costs;
}

}  // namespace sator::formats::maestro
