#include "study/phase.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "dataflow/cost/array_cost.h"
#include "dataflow/cost/tenet_array.h"
#include "dataflow/mapping/precision.h"
#include "dataflow/tenet/metrics.h"
#include "dataflow/tenet/tenet_text.h"
#include "study/words.h"
#include "target/calibration.h"

namespace sator::study {

using dataflow::KernelCost;
using dataflow::OperandKind;
using dataflow::StatementCost;
using dataflow::width;

namespace {

int64_t& of_kind(OperandBits& bits, OperandKind kind) {
  switch (kind) {
    case OperandKind::weight: return bits.weight;
    case OperandKind::scale: return bits.scale;
    case OperandKind::kv: return bits.kv;
    case OperandKind::activation: break;
  }
  return bits.activation;
}

Component component_of(VectorWork work) {
  switch (work) {
    case VectorWork::dequantize: return Component::dequantize;
    case VectorWork::rescale: return Component::rescale;
    case VectorWork::quantize: return Component::quantize;
    case VectorWork::elementwise:
    case VectorWork::reduce: break;
  }
  return Component::vector;
}

using Weights = std::array<int64_t, kComponentCount>;

/// Adds `cycles` to the components in proportion to their weights; where all are zero, to `otherwise`.
void share_out(int64_t cycles, const Weights& weights, Component otherwise, Components& into) {
  __int128 whole = 0;
  for (int64_t w : weights) whole += w;
  if (whole == 0) {
    at(into, otherwise).latency_cycles += cycles;
    return;
  }
  struct Part {
    size_t component;
    __int128 remainder;
  };
  std::vector<Part> parts;
  int64_t left = cycles;
  for (size_t c = 0; c < kComponentCount; ++c) {
    const __int128 share = static_cast<__int128>(cycles) * weights[c];
    into[c].latency_cycles += static_cast<int64_t>(share / whole);
    left -= static_cast<int64_t>(share / whole);
    parts.push_back({c, share % whole});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.remainder > b.remainder; });
  for (size_t p = 0; left > 0; ++p, --left) ++into[parts[p].component].latency_cycles;
}

/// The memories' traffic, and what the vector unit does, by component.
struct Sums {
  std::vector<LevelCost> levels;
  Components vector{};  // vector_ops and vector_cycles alone
  bool touches_kv = false;
};

Sums sums_of(const KernelCost& cost) {
  Sums sums;
  for (const dataflow::MemoryCost& m : cost.memories)
    sums.levels.push_back({.name = m.name,
                           .compulsory_bytes = m.compulsory_bytes,
                           .required_bytes_per_s = m.required_bytes_per_s,
                           .achieved_bytes_per_s = m.achieved_bytes_per_s,
                           .available_bytes_per_s = m.available_bytes_per_s});
  for (const StatementCost& s : cost.statements) {
    for (const dataflow::Traffic& t : s.traffic) {
      LevelCost& level = sums.levels[t.memory];
      level.read_bits += t.read_bits;
      level.write_bits += t.write_bits;
      of_kind(level.by_kind, t.kind) += t.read_bits + t.write_bits;
      sums.touches_kv |= t.kind == OperandKind::kv;
    }
    ComponentCost& work = at(sums.vector, component_of(s.vector_work));
    work.vector_ops += s.vector_ops;
    work.vector_cycles += s.vector_cycles;
  }
  return sums;
}

Components components_of(const KernelCost& cost, const Sums& sums) {
  Components result{};
  if (sums.touches_kv) {
    ComponentCost& all = at(result, Component::attention);
    for (const ComponentCost& c : sums.vector) {
      all.vector_ops += c.vector_ops;
      all.vector_cycles += c.vector_cycles;
    }
    all.latency_cycles = cost.latency_cycles;
    return result;
  }
  result = sums.vector;
  Weights vector_weights{};
  for (size_t c = 0; c < kComponentCount; ++c) vector_weights[c] = sums.vector[c].vector_cycles;
  for (const dataflow::CyclePart& part : cost.latency_parts) {
    // "dram: first or last tile" belongs to the resource before the colon.
    const std::string resource = part.name.substr(0, part.name.find(':'));
    auto level =
        std::find_if(sums.levels.begin(), sums.levels.end(), [&](const LevelCost& l) { return l.name == resource; });
    if (resource == "vector") {
      share_out(part.cycles, vector_weights, Component::vector, result);
    } else if (level != sums.levels.end()) {
      Weights moved{};
      moved[static_cast<size_t>(Component::weights)] = level->by_kind.weight;
      moved[static_cast<size_t>(Component::scales)] = level->by_kind.scale;
      moved[static_cast<size_t>(Component::activations)] = level->by_kind.activation;
      share_out(part.cycles, moved, Component::activations, result);
    } else {
      at(result, resource == "launch" ? Component::launch : Component::array).latency_cycles += part.cycles;
    }
  }
  return result;
}

void describe_products(const KernelCost& cost, KernelRow& row) {
  bool first = true;
  for (const StatementCost& s : cost.statements) {
    if (!s.on_array()) continue;
    const size_t weight = weight_of(s.work, *s.product);
    const size_t input = weight == s.product->first ? s.product->second : s.product->first;
    const dataflow::Operand &w = s.work.operands[weight], &a = s.work.operands[input];
    const Precision& ran = *s.precision;
    row.cost.precisions.push_back(
        {.asked = text(width(w.bits, w.is_float), " x ", width(a.bits, a.is_float)),
         .ran = text(width(ran.weight_bits, ran.is_float), " x ", width(ran.activation_bits, ran.is_float)),
         .passes = s.passes,
         .macs = s.macs});
    row.accumulator_bits_needed = std::max<int64_t>(row.accumulator_bits_needed, s.accumulator_bits_needed);
    const ProductSize size = product_size(s);
    row.products.push_back({s.name, size.batch, size.i, size.j, size.k, s.placement->words, s.macs});
    if (!std::exchange(first, false)) continue;
    row.batch = size.batch, row.i = size.i, row.j = size.j, row.k = size.k;
    row.activation_bits = a.bits;
    row.output_bits = s.work.operands[s.product->output].bits;
    row.tile = s.placement->words;
    row.tile_steps = s.tiles;
  }
}

/// What TENET's formula is made of.
TenetTerms terms_of(const StatementCost& s, const dataflow::TenetHardware& hardware) {
  TenetTerms terms{.item_bits = dataflow::kTenetItemBits,
                   .bandwidth_bits = hardware.bandwidth_bits_per_cycle,
                   .wait_cycles = hardware.latency_cycles,
                   .macs = s.macs,
                   .pes = s.counts->space,
                   .delay_in = s.tenet->delay_in,
                   .delay_out = s.tenet->delay_out,
                   .delay_compute = s.tenet->delay_compute};
  for (size_t a = 0; a < s.counts->tensors.size(); ++a) {
    const dataflow::TensorCounts& t = s.counts->tensors[a];
    if (!s.work.operands[a].on_the_way) (t.role == dataflow::Role::read ? terms.items_in : terms.items_out) += t.unique;
  }
  return terms;
}

/// The products as they run at the PEs. TENET knows one scratchpad: the innermost memory.
void state_in_tenet_words(const KernelCost& cost, const Chip& chip, KernelRow& row) {
  const Memory& scratchpad = chip.memories.back();
  dataflow::TenetHardware hardware{
      .l1_size = chip.pe.capacity_bytes,
      .l2_size = scratchpad.capacity_bytes.value_or(0),
      .bandwidth_bits_per_cycle = std::max<int64_t>(1, std::llround(8 * scratchpad.read_bytes_per_cycle)),
      .latency_cycles = 1};  // TENET adds latency - 1
  if (chip.tenet) hardware = dataflow::tenet_array_of(chip).hardware;
  for (const StatementCost& s : cost.statements) {
    if (!s.on_array()) continue;
    const dataflow::Problem problem = moved_alone(s, problem_at_pes(s, chip));
    row.tenet.push_back({.pe_array = tenet_array_text(problem.array, hardware),
                         .mapping = tenet_mapping_text(problem),
                         .statement = tenet_statement_text(problem.statement)});
    if (s.tenet) row.tenet_terms.push_back(terms_of(s, hardware));
  }
}

/// Of all that takes a number of cycles: the outermost memory has a clock of its own, a measured overhead none.
double clock_elasticity(const KernelCost& cost, const Chip& chip) {
  if (chip.tenet && cost.latency_cycles > 0) return 1;  // all of TENET's formula is in cycles
  double sum = 0;
  for (const dataflow::ResourceCost& r : cost.resources)
    if (r.name != chip.memories.front().name) sum += r.elasticity;
  const auto launch = static_cast<double>(chip.launch_cycles);
  const double whole = launch + (chip.calibration ? chip.calibration->overhead_s * chip.clock_hz : 0);
  return whole > 0 ? sum + cost.launch_elasticity * launch / whole : sum;
}

void count_reuse(const KernelCost& cost, KernelRow& row) {
  for (const StatementCost& s : cost.statements) {
    if (!s.on_array()) continue;
    row.stream_cycles += s.stream_cycles;
    row.counts.space = std::max(row.counts.space, s.counts->space);
    row.counts.pe_array = s.counts->pe_array;
    row.counts.time += s.counts->time;
    row.counts.spacetime += s.counts->spacetime;
    for (size_t a = 0; a < s.counts->tensors.size(); ++a) {
      if (s.work.operands[a].on_the_way) continue;
      const dataflow::TensorCounts& t = s.counts->tensors[a];
      row.counts.total += t.total;
      row.counts.assigned += t.assigned;
      row.counts.unique += t.unique;
      row.counts.temporal_hits += t.temporal_hits;
      row.counts.spatial_hits += t.spatial_hits;
      row.counts.footprint += t.footprint;
    }
  }
}

/// The named item of a list, added if it is not there.
template <class T>
T& named(std::vector<T>& list, const std::string& name) {
  for (T& item : list)
    if (item.name == name) return item;
  list.push_back({.name = name});
  return list.back();
}

void add_energy(std::vector<EnergyShare>& into, const EnergyShare& e, double times) {
  for (EnergyShare& known : into)
    if (known.name == e.name && known.source == e.source) {
      known.joules += e.joules * times;
      return;
    }
  into.push_back({e.name, e.joules * times, e.source});
}

void add_precision(std::vector<PrecisionUse>& into, const PrecisionUse& p, int64_t times) {
  for (PrecisionUse& known : into)
    if (known.asked == p.asked && known.ran == p.ran && known.passes == p.passes) {
      known.macs += p.macs * times;
      return;
    }
  into.push_back(p);
  into.back().macs *= times;
}

/// "transformer.h.*.mlp.c_fc" of a layer and others that differ in their number alone.
std::string layer_family(const std::string& layer) {
  std::vector<std::string> words;
  for (std::string_view word : split(layer, '.'))
    words.emplace_back(
        !word.empty() && std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c); }) ? "*" : word);
  return join(words, ".");
}

std::vector<Matmul> matmuls_of(const std::vector<KernelRow>& rows) {
  std::vector<Matmul> all;
  for (const KernelRow& row : rows) {
    if (row.products.empty()) continue;
    const LevelCost& outside = row.cost.levels.front();
    Matmul m{.function = row.function,
             .layer = layer_family(row.layer),
             .count = 0,
             .products = row.products,
             .latency_cycles = row.cost.latency_cycles,
             .latency_s = row.cost.latency_s,
             .bound = row.cost.bound,
             .outer_bits = outside.bits(),
             .outer_bytes_per_s = outside.achieved_bytes_per_s,
             .energy_j = knows_energy(row.cost) ? std::optional(row.cost.energy_j) : std::nullopt};
    auto known = std::ranges::find_if(all, [&](Matmul other) {
      other.count = 0;
      return other == m;
    });
    if (known == all.end()) known = all.insert(all.end(), std::move(m));
    known->count += row.count;
  }
  return all;
}

}  // namespace

Components components_of(const KernelCost& cost) { return components_of(cost, sums_of(cost)); }

ProductSize product_size(const StatementCost& s) {
  ProductSize size;
  const size_t weight = weight_of(s.work, *s.product);
  const size_t input = weight == s.product->first ? s.product->second : s.product->first;
  for (size_t x = 0; x < s.product->uses.size(); ++x) {
    const bool in_weight = s.product->in(x, weight), in_input = s.product->in(x, input),
               in_output = s.product->uses[x].output;
    int64_t& extent = !in_output ? size.k : in_weight && in_input ? size.batch : in_weight ? size.j : size.i;
    extent *= s.work.statement.domain.extent[x];
  }
  return size;
}

KernelRow kernel_row(const KernelCalls& calls, const dataflow::Kernel& kernel, const KernelCost& cost, const Chip& chip,
                     bool checked) {
  KernelRow row{
      .function = calls.function, .layer = calls.layer, .count = calls.count, .duration_us = calls.duration_us};
  for (const dataflow::Work& work : kernel.work)
    for (const dataflow::Operand& o : work.operands) {
      // Of several weights of a kernel (codes beside a bias) the narrowest is the packed one.
      if (o.internal || o.on_the_way) continue;
      int64_t& bits = o.kind == OperandKind::scale ? row.scale_bits : row.weight_bits;
      if (o.kind == OperandKind::weight || o.kind == OperandKind::scale)
        bits = bits ? std::min<int64_t>(bits, o.bits) : o.bits;
    }
  describe_products(cost, row);
  state_in_tenet_words(cost, chip, row);
  count_reuse(cost, row);
  row.counts.checked = checked;
  Sums sums = sums_of(cost);
  row.cost.components = components_of(cost, sums);
  row.cost.levels = std::move(sums.levels);
  row.cost.latency_cycles = cost.latency_cycles;
  row.cost.latency_s = cost.latency_s;
  row.cost.latency_interval = cost.latency_interval;
  row.cost.macs = cost.macs;
  row.cost.mac_units_used = cost.mac_units_used;
  row.cost.utilization = cost.utilization;
  row.cost.bound = cost.bound;
  for (const dataflow::ResourceCost& r : cost.resources) {
    row.cost.resources.push_back({r.name, r.cycles});
    row.cost.elasticities.push_back({r.name, r.elasticity});
  }
  row.cost.elasticities.push_back({"launch", cost.launch_elasticity});
  row.cost.clock_elasticity = clock_elasticity(cost, chip);
  for (const dataflow::CyclePart& p : cost.latency_parts) row.cost.latency_parts.push_back({p.name, p.cycles});
  for (const dataflow::EnergyPart& e : cost.energy_parts) row.cost.energy.push_back({e.name, e.joules, e.source});
  row.cost.energy_j = cost.energy_j;
  row.cost.energy_node_nm = chip.node_nm;
  row.notes = cost.notes;
  return row;
}

KernelRow uncosted_row(const KernelCalls& calls, std::string why) {
  KernelRow row{
      .function = calls.function, .layer = calls.layer, .count = calls.count, .duration_us = calls.duration_us};
  row.costed = false;
  row.notes.push_back(std::move(why));
  return row;
}

PhaseResult sum_of(std::vector<KernelRow> rows, const Chip& chip) {
  PhaseResult phase;
  Cost& sum = phase.cost;
  sum.energy_node_nm = chip.node_nm;
  for (const Memory& m : chip.memories) {
    LevelCost& level = named(sum.levels, m.name);
    level.available_bytes_per_s = dataflow::available_bytes_per_s(m, chip);
  }
  double slots_used = 0, pes_at_work = 0, stamps = 0, working_cycles = 0;
  std::map<std::string, int64_t> bound_cycles;
  for (const KernelRow& row : rows) {
    phase.launches += row.count;
    ++phase.kernels;
    phase.kernels_costed += row.costed;
    phase.kernels_checked += row.counts.checked;
    for (const std::string& note : row.notes)
      if (std::find(phase.notes.begin(), phase.notes.end(), note) == phase.notes.end()) phase.notes.push_back(note);
    const Cost& cost = row.cost;
    const auto times = static_cast<double>(row.count);
    const auto cycles = static_cast<double>(cost.latency_cycles) * times;
    sum.latency_cycles += cost.latency_cycles * row.count;
    if (const auto& range = cost.latency_interval) {
      if (!sum.latency_interval) sum.latency_interval.emplace();
      sum.latency_interval->low_s += range->low_s * times;
      sum.latency_interval->high_s += range->high_s * times;
    }
    for (const Elasticity& e : cost.elasticities) named(sum.elasticities, e.name).value += e.value * cycles;
    sum.clock_elasticity += cost.clock_elasticity * cycles;
    sum.macs += cost.macs * row.count;
    bound_cycles[cost.bound] += cost.latency_cycles * row.count;
    slots_used += cost.utilization * static_cast<double>(cost.latency_cycles) * times;
    pes_at_work += cost.mac_units_used * static_cast<double>(row.stream_cycles) * times;
    stamps += static_cast<double>(row.stream_cycles) * times;
    for (size_t c = 0; c < kComponentCount; ++c) {
      sum.components[c].latency_cycles += cost.components[c].latency_cycles * row.count;
      sum.components[c].vector_ops += cost.components[c].vector_ops * row.count;
      sum.components[c].vector_cycles += cost.components[c].vector_cycles * row.count;
    }
    for (const LevelCost& l : cost.levels) {
      LevelCost& level = named(sum.levels, l.name);
      level.read_bits += l.read_bits * row.count;
      level.write_bits += l.write_bits * row.count;
      level.compulsory_bytes += l.compulsory_bytes * row.count;
      level.by_kind.weight += l.by_kind.weight * row.count;
      level.by_kind.scale += l.by_kind.scale * row.count;
      level.by_kind.activation += l.by_kind.activation * row.count;
      level.by_kind.kv += l.by_kind.kv * row.count;
    }
    int64_t working = 0;  // of array or vector unit, which stand first
    for (size_t r = 0; r < cost.resources.size(); ++r) {
      named(sum.resources, cost.resources[r].name).cycles += cost.resources[r].cycles * row.count;
      if (r < 2) working = std::max(working, cost.resources[r].cycles);
    }
    working_cycles += static_cast<double>(working) * times;
    for (const EnergyShare& e : cost.energy) add_energy(sum.energy, e, times);
    for (const PrecisionUse& p : cost.precisions) add_precision(sum.precisions, p, row.count);
  }
  sum.latency_s = static_cast<double>(sum.latency_cycles) / chip.clock_hz;
  for (const EnergyShare& e : sum.energy) sum.energy_j += e.joules;
  if (sum.latency_cycles > 0) {
    const auto cycles = static_cast<double>(sum.latency_cycles);
    sum.utilization = slots_used / cycles;
    for (Elasticity& e : sum.elasticities) e.value /= cycles;
    sum.clock_elasticity /= cycles;
  }
  if (stamps > 0) sum.mac_units_used = pes_at_work / stamps;
  for (LevelCost& level : sum.levels) {
    if (working_cycles > 0) level.required_bytes_per_s = level.bytes() / working_cycles * chip.clock_hz;
    if (sum.latency_s > 0) level.achieved_bytes_per_s = level.bytes() / sum.latency_s;
  }
  if (chip.tenet) {
    // TENET's scratchpad counts items: in bytes it can do what its kernels' items have.
    LevelCost& scratchpad = sum.levels.back();
    double at_full_rate_s = 0;
    for (const KernelRow& row : rows)
      for (const LevelCost& l : row.cost.levels)
        if (l.name == scratchpad.name && l.available_bytes_per_s > 0)
          at_full_rate_s += l.bytes() / l.available_bytes_per_s * static_cast<double>(row.count);
    if (at_full_rate_s > 0) scratchpad.available_bytes_per_s = scratchpad.bytes() / at_full_rate_s;
  }
  int64_t longest = 0;
  for (const auto& [name, cycles] : bound_cycles)
    if (cycles > longest) longest = cycles, sum.bound = name;
  phase.matmuls = matmuls_of(rows);
  phase.rows = std::move(rows);
  return phase;
}

ChipFacts facts_of(const Chip& chip) {
  static constexpr const char* kDataflows[] = {
      "output-stationary", "weight-stationary", "input-stationary", "as scheduled", "row-stationary"};
  std::vector<PeakRate> peaks;
  for (const Precision& p : chip.precisions)
    peaks.push_back({text(width(p.weight_bits, p.is_float), " x ", width(p.activation_bits, p.is_float)),
                     static_cast<double>(chip.pes()) * p.macs_per_pe_per_cycle * chip.clock_hz});
  std::stable_sort(
      peaks.begin(), peaks.end(), [](const PeakRate& a, const PeakRate& b) { return a.macs_per_s > b.macs_per_s; });
  std::vector<std::string> patterns;
  for (const ChipPattern& p : chip.patterns) patterns.push_back(p.name);
  return {.name = chip.name,
          .description = chip.description,
          .source = chip.source,
          .file = fs::path(chip.file).filename().string(),
          .dataflow = text(kDataflows[static_cast<size_t>(chip.dataflow)],
                           chip.cores > 1 ? text(" on each of ", chip.cores, " cores") : ""),
          .rows = chip.rows,
          .columns = chip.columns,
          .node_nm = chip.node_nm,
          .clock_hz = chip.clock_hz,
          .outer_bytes_per_s = dataflow::available_bytes_per_s(chip.memories.front(), chip),
          .calibration = chip.calibration ? calibration_words(chip) : "",
          .peaks = std::move(peaks),
          .patterns = std::move(patterns),
          .keeps_between = chip.keeps_between,
          .is_16_bit = dataflow::multiplies_16_bits_at_speed(chip)};
}

}  // namespace sator::study
