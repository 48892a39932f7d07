#include "study/csv.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <tuple>

#include "base/text.h"
#include "study/compare.h"
#include "study/file_names.h"
#include "study/tenet_files.h"
#include "study/words.h"

namespace sator::study {

namespace {

/// What a line is about. In study.csv there is no kernel, and `cost` is the phase's.
struct Line {
  const Study& study;
  const SchemeResult& scheme;
  size_t chip;
  const PhaseName& phase;
  const PhaseResult& result;
  const Cost& cost;
  const KernelRow* kernel = nullptr;
};

struct Column {
  std::string name;
  std::function<std::string(const Line&)> value;
};

std::string of(double v) { return text(v); }
std::string of(int64_t v) { return text(v); }
std::string of(const std::optional<double>& v) { return v ? text(*v) : ""; }
std::string bytes(int64_t bits) { return bits % 8 == 0 ? text(bits / 8) : text(static_cast<double>(bits) / 8); }

const LevelCost* level_of(const Cost& cost, const std::string& name) {
  for (const LevelCost& l : cost.levels)
    if (l.name == name) return &l;
  return nullptr;
}

/// Names of all memories of all chips, outermost first, each once.
std::vector<std::string> level_names(const Study& study) {
  std::vector<std::string> names;
  for (const SchemeResult& scheme : study.schemes)
    for (const ChipResult& chip : scheme.chips)
      for (const PhaseName& phase : kPhases)
        for (const LevelCost& l : (chip.*phase.result).cost.levels)
          if (std::find(names.begin(), names.end(), l.name) == names.end()) names.push_back(l.name);
  return names;
}

std::string energy_sources(const Cost& cost) {
  std::vector<std::string> parts;
  for (const EnergyShare& e : cost.energy)
    if (!e.source.empty()) parts.push_back(text(e.name, ": ", e.source));
  return join(parts, "; ");
}

std::string precisions(const Cost& cost, bool ran) {
  std::vector<std::string> parts;
  for (const PrecisionUse& p : cost.precisions)
    parts.push_back(ran && p.passes > 1 ? text(p.ran, " in ", p.passes, " passes") : ran ? p.ran : p.asked);
  return join(parts, "; ");
}

const Cost& baseline_cost(const Line& l) {
  return (l.study.schemes[baseline_of(l.study, l.chip)].chips[l.chip].*l.phase.result).cost;
}

double outer_bytes(const Cost& cost) { return cost.levels.empty() ? 0 : cost.levels.front().bytes(); }

void add_key_columns(std::vector<Column>& columns) {
  columns.push_back({"model", [](const Line& l) { return l.study.model.name; }});
  columns.push_back({"scheme", [](const Line& l) { return l.scheme.name; }});
  columns.push_back({"chip", [](const Line& l) { return l.study.chips[l.chip].name; }});
  columns.push_back({"phase", [](const Line& l) { return std::string(l.phase.name); }});
}

void add_cost_columns(std::vector<Column>& columns) {
  columns.push_back({"latency_s", [](const Line& l) { return of(l.cost.latency_s); }});
  columns.push_back({"latency_low_s",
                     [](const Line& l) { return l.cost.latency_interval ? of(l.cost.latency_interval->low_s) : ""; }});
  columns.push_back({"latency_high_s",
                     [](const Line& l) { return l.cost.latency_interval ? of(l.cost.latency_interval->high_s) : ""; }});
  columns.push_back({"latency_cycles", [](const Line& l) { return of(l.cost.latency_cycles); }});
  columns.push_back({"macs", [](const Line& l) { return of(l.cost.macs); }});
  columns.push_back({"mac_units_used", [](const Line& l) { return of(l.cost.mac_units_used); }});
  columns.push_back({"utilization", [](const Line& l) { return of(l.cost.utilization); }});
  columns.push_back({"bound", [](const Line& l) { return l.cost.bound; }});
  columns.push_back({"elasticities", [](const Line& l) {
                       std::vector<std::string> parts;
                       for (const Elasticity& e : l.cost.elasticities) parts.push_back(text(e.name, " ", e.value));
                       return join(parts, "; ");
                     }});
  columns.push_back({"energy_j", [](const Line& l) { return knows_energy(l.cost) ? of(l.cost.energy_j) : ""; }});
  columns.push_back(
      {"energy_node_nm", [](const Line& l) { return l.cost.energy_node_nm > 0 ? of(l.cost.energy_node_nm) : ""; }});
  columns.push_back({"computes", [](const Line& l) { return precisions(l.cost, false); }});
  columns.push_back({"runs_as", [](const Line& l) { return precisions(l.cost, true); }});
  columns.push_back({"clock_elasticity", [](const Line& l) { return of(l.cost.clock_elasticity); }});
  // Bytes of the outermost memory by what they are.
  struct Kind {
    const char* name;
    int64_t OperandBits::* bits;
  };
  for (const Kind& kind : {Kind{"weight_bytes_moved", &OperandBits::weight},
                           Kind{"scale_bytes_moved", &OperandBits::scale},
                           Kind{"activation_bytes_moved", &OperandBits::activation},
                           Kind{"kv_bytes_moved", &OperandBits::kv}})
    columns.push_back({kind.name, [bits = kind.bits](const Line& l) {
                         return l.cost.levels.empty() ? "" : bytes(l.cost.levels.front().by_kind.*bits);
                       }});
  for (const ComponentName& c : components()) {
    const Component component = c.component;
    const std::string key(c.key);
    columns.push_back({key + "_latency_cycles",
                       [component](const Line& l) { return of(at(l.cost.components, component).latency_cycles); }});
  }
  for (const ComponentName& c : components()) {
    const Component component = c.component;
    if (component == Component::array || component == Component::weights || component == Component::scales ||
        component == Component::activations || component == Component::launch || component == Component::links)
      continue;  // they have no work on the vector unit
    const std::string key(c.key);
    columns.push_back(
        {key + "_vector_ops", [component](const Line& l) { return of(at(l.cost.components, component).vector_ops); }});
    columns.push_back({key + "_vector_cycles",
                       [component](const Line& l) { return of(at(l.cost.components, component).vector_cycles); }});
  }
}

void add_level_columns(std::vector<Column>& columns, const Study& study) {
  for (const std::string& name : level_names(study)) {
    auto add = [&](const std::string& prefix, std::function<std::string(const LevelCost&)> value) {
      columns.push_back({text(prefix, "_", name), [name, value](const Line& l) {
                           const LevelCost* level = level_of(l.cost, name);
                           return level ? value(*level) : "";
                         }});
    };
    add("read_bytes", [](const LevelCost& l) { return bytes(l.read_bits); });
    add("write_bytes", [](const LevelCost& l) { return bytes(l.write_bits); });
    add("compulsory_bytes", [](const LevelCost& l) { return of(l.compulsory_bytes); });
    add("required_bytes_per_s", [](const LevelCost& l) { return of(l.required_bytes_per_s); });
    add("achieved_bytes_per_s", [](const LevelCost& l) { return of(l.achieved_bytes_per_s); });
    add("available_bytes_per_s", [](const LevelCost& l) { return of(l.available_bytes_per_s); });
  }
}

std::vector<Column> study_columns(const Study& study) {
  std::vector<Column> columns;
  add_key_columns(columns);
  columns.push_back({"prompt_len", [](const Line& l) { return of(l.study.protocol.prompt_len); }});
  columns.push_back({"gen_len", [](const Line& l) { return of(l.study.protocol.gen_len); }});
  columns.push_back({"decode_context", [](const Line& l) { return of(l.study.protocol.decode_context); }});
  columns.push_back({"objective", [](const Line& l) { return l.study.protocol.objective; }});
  columns.push_back({"perplexity", [](const Line& l) { return of(l.scheme.perplexity); }});
  columns.push_back({"standard_error", [](const Line& l) { return of(l.scheme.standard_error); }});
  auto compared = [&](const char* name, std::optional<double> (*value)(const Compared&)) {
    columns.push_back(
        {name, [value](const Line& l) { return of(l.scheme.compared ? value(*l.scheme.compared) : std::nullopt); }});
  };
  compared("perplexity_difference", [](const Compared& c) { return std::optional(c.perplexity.value); });
  compared("perplexity_difference_error", [](const Compared& c) { return c.perplexity.error; });
  compared("kl_divergence", [](const Compared& c) { return std::optional(c.kl.value); });
  compared("kl_divergence_error", [](const Compared& c) { return c.kl.error; });
  compared("same_top_share", [](const Compared& c) { return std::optional(c.same_top); });
  columns.push_back({"windows", [](const Line& l) { return of(l.scheme.windows); }});
  columns.push_back({"weight_bytes", [](const Line& l) { return of(l.scheme.weight_bytes); }});
  columns.push_back({"bits_per_weight", [](const Line& l) { return of(l.scheme.bits_per_weight); }});
  auto speed = [&](const std::string& name, std::optional<HostSpeed> SchemeResult::* figure) {
    auto add = [&](const std::string& end, double HostSpeed::* part) {
      columns.push_back({name + end, [figure, part](const Line& l) {
                           const std::optional<HostSpeed>& s = l.scheme.*figure;
                           return of(s ? std::optional((*s).*part) : std::nullopt);
                         }});
    };
    add("", &HostSpeed::median);
    add("_min", &HostSpeed::least);
    add("_max", &HostSpeed::most);
  };
  speed("host_prefill_tokens_per_s", &SchemeResult::host_prefill);
  speed("host_decode_tokens_per_s", &SchemeResult::host_decode);
  columns.push_back({"host_speeds_measured_at", [](const Line& l) { return l.study.protocol.measured_at; }});
  columns.push_back({"host_load_s", [](const Line& l) { return of(l.scheme.load_s); }});
  auto need = [&](const char* name, std::optional<int64_t> (*value)(const MemoryNeed&)) {
    columns.push_back({name, [value](const Line& l) {
                         const std::optional<MemoryNeed>& n = l.scheme.chips[l.chip].need;
                         const std::optional<int64_t> v = n ? value(*n) : std::nullopt;
                         return v ? of(*v) : "";
                       }});
  };
  need("cache_bytes", [](const MemoryNeed& n) { return std::optional(n.cache_bytes); });
  need("activation_bytes", [](const MemoryNeed& n) { return std::optional(n.activation_bytes); });
  need("capacity_bytes", [](const MemoryNeed& n) { return n.capacity_bytes; });
  need("fits", [](const MemoryNeed& n) { return n.capacity_bytes ? std::optional<int64_t>(n.fits()) : std::nullopt; });
  add_cost_columns(columns);
  columns.push_back(
      {"ratio_latency", [](const Line& l) { return of(ratio(baseline_cost(l).latency_s, l.cost.latency_s)); }});
  columns.push_back({"ratio_energy", [](const Line& l) {
                       return knows_energy(l.cost) ? of(ratio(baseline_cost(l).energy_j, l.cost.energy_j)) : "";
                     }});
  columns.push_back(
      {"ratio_bytes", [](const Line& l) { return of(ratio(outer_bytes(baseline_cost(l)), outer_bytes(l.cost))); }});
  columns.push_back(
      {"ratio_baseline", [](const Line& l) { return l.study.schemes[baseline_of(l.study, l.chip)].name; }});
  columns.push_back({"launches", [](const Line& l) { return of(l.result.launches); }});
  columns.push_back({"kernels", [](const Line& l) { return of(l.result.kernels); }});
  columns.push_back({"kernels_costed", [](const Line& l) { return of(l.result.kernels_costed); }});
  columns.push_back({"kernels_checked", [](const Line& l) { return of(l.result.kernels_checked); }});
  columns.push_back({"energy_sources", [](const Line& l) { return energy_sources(l.cost); }});
  columns.push_back({"notes", [](const Line& l) { return join(l.result.notes, "; "); }});
  add_level_columns(columns, study);
  return columns;
}

/// A column of a kernel's own figures.
Column kernel_column(std::string name, std::function<std::string(const KernelRow&)> value) {
  return {std::move(name), [value = std::move(value)](const Line& l) { return value(*l.kernel); }};
}

/// Per MAC, as TENET has it; empty without MACs on the array.
std::string per(int64_t value, int64_t whole) {
  return whole > 0 ? text(static_cast<double>(value) / static_cast<double>(whole)) : "";
}

/// Files of schedules by chip, function and text.
using ScheduleNames = std::map<std::tuple<std::string, std::string, std::string>, std::string>;

ScheduleNames schedule_names(const Study& study) {
  ScheduleNames names;
  FileNames files;
  for (const SchemeResult& scheme : study.schemes)
    for (size_t c = 0; c < scheme.chips.size(); ++c)
      for (const PhaseName& phase : kPhases)
        for (const KernelRow& k : (scheme.chips[c].*phase.result).rows) {
          if (k.schedule.empty()) continue;
          auto [at, fresh] = names.try_emplace({study.chips[c].name, k.function, k.schedule});
          if (!fresh) continue;
          at->second = files.unused(text("schedules/", study.chips[c].name, "/", k.function.substr(0, 100))) + ".py";
        }
  return names;
}

std::vector<Column> kernel_columns(const Study& study) {
  std::vector<Column> columns;
  add_key_columns(columns);
  auto add = [&](std::string name, std::function<std::string(const KernelRow&)> value) {
    columns.push_back(kernel_column(std::move(name), std::move(value)));
  };
  add("function", [](const KernelRow& k) { return k.function; });
  add("layer", [](const KernelRow& k) { return k.layer; });
  add("count", [](const KernelRow& k) { return of(k.count); });
  add("batch", [](const KernelRow& k) { return of(k.batch); });
  add("i", [](const KernelRow& k) { return of(k.i); });
  add("j", [](const KernelRow& k) { return of(k.j); });
  add("k", [](const KernelRow& k) { return of(k.k); });
  add("tile", [](const KernelRow& k) { return k.tile; });
  add("tile_steps", [](const KernelRow& k) { return of(k.tile_steps); });
  auto files = std::make_shared<ScheduleNames>(schedule_names(study));
  columns.push_back({"schedule", [files](const Line& l) {
                       auto at = files->find({l.study.chips[l.chip].name, l.kernel->function, l.kernel->schedule});
                       return at == files->end() ? "" : at->second;
                     }});
  auto tenet = std::make_shared<TenetNames>(study);
  columns.push_back({"tenet", [tenet](const Line& l) { return tenet->of(l.study.chips[l.chip].name, *l.kernel); }});
  add("tenet_terms", [](const KernelRow& k) {
    std::vector<std::string> parts;
    for (const TenetTerms& terms : k.tenet_terms)
      for (const TenetTermName& t : kTenetTerms) parts.push_back(text(t.name, " ", terms.*t.value));
    return join(parts, "; ");
  });
  add("weight_bits", [](const KernelRow& k) { return of(k.weight_bits); });
  add("scale_bits", [](const KernelRow& k) { return of(k.scale_bits); });
  add("activation_bits", [](const KernelRow& k) { return of(k.activation_bits); });
  add("output_bits", [](const KernelRow& k) { return of(k.output_bits); });
  add("accumulator_bits_needed", [](const KernelRow& k) { return of(k.accumulator_bits_needed); });
  add("host_duration_us", [](const KernelRow& k) { return of(k.duration_us); });
  columns.push_back({"host_error", [](const Line& l) {  // of the estimate, where the chip is this machine
                       const std::optional<double>& us = l.kernel->duration_us;
                       if (!l.study.chips[l.chip].is_host || !l.kernel->costed || !us || *us <= 0) return std::string();
                       return of(l.kernel->cost.latency_s * 1e6 / *us - 1);
                     }});
  add("costed", [](const KernelRow& k) { return k.costed ? "1" : "0"; });
  add_cost_columns(columns);
  // TENET's counts and metrics of the kernel's products, over all tensors.
  add("space", [](const KernelRow& k) { return of(k.counts.space); });
  add("time_stamps", [](const KernelRow& k) { return of(k.counts.time); });
  add("spacetime", [](const KernelRow& k) { return of(k.counts.spacetime); });
  add("pe_array", [](const KernelRow& k) { return of(k.counts.pe_array); });
  add("average_active_pes", [](const KernelRow& k) { return per(k.counts.spacetime, k.counts.time); });
  add("total_volume", [](const KernelRow& k) { return of(k.counts.total); });
  add("unique_volume", [](const KernelRow& k) { return of(k.counts.unique); });
  add("footprint", [](const KernelRow& k) { return of(k.counts.footprint); });
  add("reuse_factor", [](const KernelRow& k) { return per(k.counts.total, k.counts.unique); });
  add("temporal_reuse_per_mac",
      [](const KernelRow& k) { return per(k.counts.total - k.counts.assigned + k.counts.temporal_hits, k.cost.macs); });
  add("spatial_reuse_per_mac", [](const KernelRow& k) { return per(k.counts.spatial_hits, k.cost.macs); });
  add("array_stamps", [](const KernelRow& k) { return of(k.stream_cycles); });
  add("counts_checked", [](const KernelRow& k) { return k.counts.checked ? "1" : "0"; });
  auto list = [](const std::vector<ResourceCycles>& all) {
    std::vector<std::string> parts;
    for (const ResourceCycles& r : all) parts.push_back(text(r.name, " ", r.cycles));
    return join(parts, "; ");
  };
  add("resource_cycles", [list](const KernelRow& k) { return list(k.cost.resources); });
  add("latency_parts_cycles", [list](const KernelRow& k) { return list(k.cost.latency_parts); });
  add("notes", [](const KernelRow& k) { return join(k.notes, "; "); });
  add_level_columns(columns, study);
  return columns;
}

void append_head(std::string& out, const std::vector<Column>& columns) {
  for (size_t c = 0; c < columns.size(); ++c) out += (c ? "," : "") + csv_field(columns[c].name);
  out += "\n";
}

void append_line(std::string& out, const std::vector<Column>& columns, const Line& line) {
  for (size_t c = 0; c < columns.size(); ++c) out += (c ? "," : "") + csv_field(columns[c].value(line));
  out += "\n";
}

/// Calls visit(line) for each phase of each scheme on each chip.
void each_phase(const Study& study, const std::function<void(const Line&)>& visit) {
  for (const SchemeResult& scheme : study.schemes)
    for (size_t chip = 0; chip < scheme.chips.size(); ++chip)
      for (const PhaseName& phase : kPhases) {
        const PhaseResult& result = scheme.chips[chip].*phase.result;
        visit({study, scheme, chip, phase, result, result.cost});
      }
}

}  // namespace

std::string csv_field(std::string_view value) {
  if (value.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(value);
  std::string quoted_value = "\"";
  for (char c : value) {
    if (c == '"') quoted_value += '"';
    quoted_value += c;
  }
  return quoted_value + "\"";
}

std::string study_csv(const Study& study) {
  const std::vector<Column> columns = study_columns(study);
  std::string out;
  append_head(out, columns);
  each_phase(study, [&](const Line& line) { append_line(out, columns, line); });
  return out;
}

std::string kernels_csv(const Study& study) {
  const std::vector<Column> columns = kernel_columns(study);
  std::string out;
  append_head(out, columns);
  each_phase(study, [&](const Line& line) {
    for (const KernelRow& kernel : line.result.rows)
      append_line(out, columns, {line.study, line.scheme, line.chip, line.phase, line.result, kernel.cost, &kernel});
  });
  return out;
}

std::vector<std::pair<std::string, std::string>> schedule_files(const Study& study) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& [key, name] : schedule_names(study))
    files.emplace_back(name, text("# ", std::get<1>(key), " on ", std::get<0>(key), "\n", std::get<2>(key)));
  return files;
}

}  // namespace sator::study
