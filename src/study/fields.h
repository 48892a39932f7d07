// What the files of a study hold: each figure once, with its name. study.json and the CSVs are written and read by these
// descriptions (json.cc, csv.cc, kernels_csv.cc).
#pragma once

#include "base/text.h"
#include "study/result.h"
#include "study/words.h"

namespace sator::study {

/// A field's names: its key in JSON and its column in CSV, the same unless said. Units are part of them.
struct Key {
  std::string_view json, column;  // empty: that file has no such field
  Key(const char* name) : json(name), column(name) {}
  Key(std::string_view name) : json(name), column(name) {}
  Key(std::string_view in_json, std::string_view in_csv) : json(in_json), column(in_csv) {}
};
inline Key json_only(std::string_view name) { return {name, ""}; }
inline Key csv_only(std::string_view name) { return {"", name}; }

// `describe(a, x)` names the fields of x to an archive `a`, which writes or reads one file:
//   A::writes               else it reads, and x gets the values
//   A::is_csv               one line, in which the fields of parts stand side by side
//   a(key, v)               a field: a number, text, bool, or several; an optional one is null in JSON, empty in CSV
//   a.later(key, v)         one that files of earlier versions lack
//   a.maybe(key, v, known)  a number that is null where it is not known, and then reads back as 0
//   a.bytes(key, bits)      bits under a key in bytes, the eighths exact; with `known` as above
//   a.derived(key, v)       what follows from other fields: written, never read
//   a.list(key, all)        a list of described items; in CSV "name value; name value"
//   a.later_list(key, all)
//   a.part(key, x)          a described item
//   a.later_part(key, x)
//   a.prefixed(key, x)      the same; in CSV its columns begin with the key
//   a.optional_part(key, x) of a std::optional
//   a.levels(key, all)      memories; in CSV the columns of each end in its name

template <class A>
void describe(A& a, ComponentCost& x, bool on_vector_unit = true) {
  a("latency_cycles", x.latency_cycles);
  a.later(on_vector_unit ? Key("vector_ops") : json_only("vector_ops"), x.vector_ops);
  a.later(on_vector_unit ? Key("vector_cycles") : json_only("vector_cycles"), x.vector_cycles);
}

template <class A>
void describe(A& a, Components& x) {
  for (const ComponentName& c : components()) a.prefixed(c.key, at(x, c.component), c.on_vector_unit);
}

template <class A>
void describe(A& a, LevelCost& x) {
  a(json_only("name"), x.name);
  a.bytes("read_bytes", x.read_bits);
  a.bytes("write_bytes", x.write_bits);
  a.later("compulsory_bytes", x.compulsory_bytes);
  a.bytes(json_only("weight_bytes"), x.by_kind.weight);
  a.bytes(json_only("scale_bytes"), x.by_kind.scale);
  a.bytes(json_only("activation_bytes"), x.by_kind.activation);
  a.bytes(json_only("kv_bytes"), x.by_kind.kv);
  a("required_bytes_per_s", x.required_bytes_per_s);
  a("achieved_bytes_per_s", x.achieved_bytes_per_s);
  a("available_bytes_per_s", x.available_bytes_per_s);
}

template <class A>
void describe(A& a, ResourceCycles& x) {
  a("name", x.name);
  a("cycles", x.cycles);
}

template <class A>
void describe(A& a, Elasticity& x) {
  a("name", x.name);
  a("value", x.value);
}

template <class A>
void describe(A& a, PeakRate& x) {
  a("precision", x.precision);
  a("macs_per_s", x.macs_per_s);
}

template <class A>
void describe(A& a, EnergyShare& x) {
  a("name", x.name);
  a("energy_j", x.joules);
  a("source", x.source);
}

template <class A>
void describe(A& a, PrecisionUse& x) {
  a("asked", x.asked);
  a("ran", x.ran);
  a("passes", x.passes);
  a("macs", x.macs);
}

/// null where the chip is not calibrated
template <class A>
void describe_interval(A& a, std::optional<dataflow::LatencyInterval>& x) {
  std::optional<double> low, high;
  if (A::writes && x) low = x->low_s, high = x->high_s;
  a("latency_low_s", low);
  a("latency_high_s", high);
  if (!A::writes && low && high) x = {*low, *high};
}

/// In CSV the widths of all products are two columns, in the same order: as the program asks, and as the chip runs them.
template <class A>
void describe_widths(A& a, Cost& x) {
  a.list(json_only("precisions"), x.precisions);
  if constexpr (A::is_csv) {
    std::string asked, ran;
    for (const PrecisionUse& p : x.precisions) {
      asked += text(asked.empty() ? "" : "; ", p.asked);
      ran += text(ran.empty() ? "" : "; ", p.ran, p.passes > 1 ? text(" in ", p.passes, " passes") : "");
    }
    a("computes", asked);
    a("runs_as", ran);
    if (!A::writes && x.macs > 0 && !ran.empty()) x.precisions = {{.asked = asked, .ran = ran, .macs = x.macs}};
  }
}

template <class A>
void describe(A& a, Cost& x) {
  a("latency_s", x.latency_s);
  describe_interval(a, x.latency_interval);
  a("latency_cycles", x.latency_cycles);
  a("macs", x.macs);
  a("mac_units_used", x.mac_units_used);
  a("utilization", x.utilization);
  a("bound", x.bound);
  a.list("elasticities", x.elasticities);
  a.maybe("energy_j", x.energy_j, knows_energy(x));
  a.maybe("energy_node_nm", x.energy_node_nm, x.energy_node_nm > 0);
  a.list(json_only("energy_parts"), x.energy);
  describe_widths(a, x);
  a("clock_elasticity", x.clock_elasticity);
  // Of the outermost memory CSV says what was moved; JSON does for each.
  const bool any = !x.levels.empty();
  OperandBits moved = any ? x.levels.front().by_kind : OperandBits{};
  a.bytes(csv_only("weight_bytes_moved"), moved.weight, any);
  a.bytes(csv_only("scale_bytes_moved"), moved.scale, any);
  a.bytes(csv_only("activation_bytes_moved"), moved.activation, any);
  a.bytes(csv_only("kv_bytes_moved"), moved.kv, any);
  a.part("components", x.components);
  a.list({"resources", "resource_cycles"}, x.resources);
  a.list({"latency_parts", "latency_parts_cycles"}, x.latency_parts);
  a.levels("levels", x.levels);
  if (A::is_csv && !A::writes && !x.levels.empty()) x.levels.front().by_kind = moved;
}

template <class A>
void describe(A& a, ReuseCounts& x) {
  a("space", x.space);
  a({"time", "time_stamps"}, x.time);
  a("spacetime", x.spacetime);
  a("pe_array", x.pe_array);
  a("total_volume", x.total);
  a(json_only("assigned"), x.assigned);
  a("unique_volume", x.unique);
  a(json_only("temporal_hits"), x.temporal_hits);
  a(json_only("spatial_hits"), x.spatial_hits);
  a("footprint", x.footprint);
  a({"checked", "counts_checked"}, x.checked);
}

template <class A>
void describe(A& a, TenetTexts& x) {
  a("pe_array", x.pe_array);
  a("mapping", x.mapping);
  a("statement", x.statement);
}

template <class A>
void describe(A& a, TenetTerms& x) {
  for (const TenetTermName& t : kTenetTerms) a(t.name, x.*t.value);
}

template <class A>
void describe(A& a, LargerMemory& x) {
  a("name", x.name);
  a("capacity_bytes", x.capacity_bytes);
  a("latency_s", x.latency_s);
}

template <class A>
void describe(A& a, ProductUse& x) {
  a("name", x.name);
  a("batch", x.batch);
  a("i", x.i);
  a("j", x.j);
  a("k", x.k);
  a("tile", x.tile);
  a("macs", x.macs);
}

template <class A>
void describe(A& a, Matmul& x) {
  a("function", x.function);
  a("layer", x.layer);
  a("count", x.count);
  a.list("products", x.products);
  a("latency_cycles", x.latency_cycles);
  a("latency_s", x.latency_s);
  a("bound", x.bound);
  a.bytes("outer_bytes", x.outer_bits);
  a("outer_bytes_per_s", x.outer_bytes_per_s);
  a("energy_j", x.energy_j);
}

/// Schedules and TENET's texts are files of their own beside the CSV, which names them (csv.cc).
template <class A>
void describe(A& a, KernelRow& x) {
  a("function", x.function);
  a("layer", x.layer);
  a("count", x.count);
  a("batch", x.batch);
  a("i", x.i);
  a("j", x.j);
  a("k", x.k);
  a("tile", x.tile);
  a("tile_steps", x.tile_steps);
  a.later_list(json_only("products"), x.products);
  a(json_only("schedule"), x.schedule);
  a.list(json_only("tenet"), x.tenet);
  a.later_list("tenet_terms", x.tenet_terms);
  a("weight_bits", x.weight_bits);
  a("scale_bits", x.scale_bits);
  a("activation_bits", x.activation_bits);
  a("output_bits", x.output_bits);
  a("accumulator_bits_needed", x.accumulator_bits_needed);
  a({"duration_us", "host_duration_us"}, x.duration_us);
  a("costed", x.costed);
  a.part("cost", x.cost);
  a.part("counts", x.counts);
  a({"stream_cycles", "array_stamps"}, x.stream_cycles);
  a("notes", x.notes);
}

/// Without its kernels.
template <class A>
void describe(A& a, PhaseResult& x) {
  describe(a, x.cost);
  a("launches", x.launches);
  a({"kernels_run", "kernels"}, x.kernels);
  a("kernels_costed", x.kernels_costed);
  a("kernels_checked", x.kernels_checked);
  a.later_list(json_only("matmuls"), x.matmuls);
  a.later_list(json_only("larger_memories"), x.larger);
  a("notes", x.notes);
}

///   tokens   of the step, for what CSV says per token
template <class A>
void describe(A& a, SweepCost& x, double tokens = 0) {
  const bool knows_joules = x.energy_j > 0;
  a("latency_s", x.latency_s);
  a("latency_cycles", x.latency_cycles);
  a.derived(csv_only("tokens_per_s"), x.latency_s > 0 ? std::optional(tokens / x.latency_s) : std::nullopt);
  a("macs", x.macs);
  a("utilization", x.utilization);
  a.maybe("energy_j", x.energy_j, knows_joules);
  a.derived(csv_only("energy_j_per_token"), knows_joules ? std::optional(x.energy_j / tokens) : std::nullopt);
  a("outer_bytes", x.outer_bytes);
  a("bound", x.bound);
  a("kernels_without_cost", x.kernels_without_cost);
  a.later_part(json_only("components"), x.components);
}

/// Where it stands in the sweep.
template <class A>
void describe_place(A& a, SweepPoint& x) {
  a("batch", x.batch);
  a("context", x.context);
}

template <class A>
void describe(A& a, SweepPoint& x) {
  describe_place(a, x);
  a.part("prefill", x.prefill);
  a.part("decode", x.decode);
}

template <class A>
void describe(A& a, HostCall& x) {
  a("phase", x.phase);
  a("function", x.function);
  a("duration_us", x.duration_us);
}

template <class A>
void describe(A& a, RouteKernel& x) {
  a({"function", "kernel"}, x.function);
  a("count", x.count);
  a("on_chip", x.on_chip);
  a("macs", x.macs);
  a("macs_issued", x.macs_issued);
  a("latency_s", x.latency_s);
  a("why", x.why);
  a("padded", x.padded);
}

template <class A>
void describe(A& a, RouteStep& x) {
  a("macs", x.macs);
  a("macs_on_chip", x.macs_on_chip);
  a("macs_issued", x.macs_issued);
  a.derived("latency_s", x.latency_s());
  a("chip_s", x.chip_s);
  a("host_s", x.host_s);
  a("outside_bytes", x.outside_bytes);
  a.derived("bandwidth_bytes_per_s", x.bytes_per_s());
  a("launches_on_chip", x.launches_on_chip);
  a("launches_on_host", x.launches_on_host);
  a.list("kernels", x.kernels);
}

template <class A>
void describe(A& a, RouteLengths& x) {
  a("prompt_len", x.prompt_len);
  a("context", x.context);
}

template <class A>
void describe(A& a, MemoryNeed& x) {
  a(json_only("memory"), x.memory);
  a(json_only("weights_bytes"), x.weights_bytes);  // of one chip; beside it CSV has the scheme's weight_bytes
  a("cache_bytes", x.cache_bytes);
  a("activation_bytes", x.activation_bytes);
  a("capacity_bytes", x.capacity_bytes);
  a.derived("fits", x.capacity_bytes ? std::optional(x.fits()) : std::nullopt);
  a(json_only("chips_with_room"), x.chips_with_room);
}

/// The median under the name that it has had, its limits beside it; null where it was not measured.
template <class A>
void describe_speed(A& a, const std::string& median_key, std::string_view steadiness_key, std::optional<HostSpeed>& x) {
  std::optional<double> median, least, most;
  if (A::writes && x) median = x->median, least = x->least, most = x->most;
  a(Key(median_key), median);
  a.later(Key(median_key + "_min"), least);
  a.later(Key(median_key + "_max"), most);
  a.derived(json_only(steadiness_key), std::optional(x && x->is_unsteady()));
  if (!A::writes && median) x = HostSpeed{*median, least.value_or(*median), most.value_or(*median)};
}

template <class A>
void describe_compared(A& a, std::optional<Compared>& x) {
  std::optional<double> difference, difference_error, kl, kl_error, same_top;
  if (A::writes && x) {
    difference = x->perplexity.value, difference_error = x->perplexity.error;
    kl = x->kl.value, kl_error = x->kl.error;
    same_top = x->same_top;
  }
  a.later("perplexity_difference", difference);
  a.later("perplexity_difference_error", difference_error);
  a.later("kl_divergence", kl);
  a.later("kl_divergence_error", kl_error);
  a.later("same_top_share", same_top);
  if (!A::writes && difference && kl && same_top)
    x = Compared{{*difference, difference_error}, {*kl, kl_error}, *same_top};
}

/// Without its windows, calls and chips.
template <class A>
void describe(A& a, SchemeResult& x) {
  a(json_only("scheme"), x.name);
  a(json_only("description"), x.description);
  a("perplexity", x.perplexity);
  a("standard_error", x.standard_error);
  describe_compared(a, x.compared);
  a("windows", x.windows);
  a(json_only("predictions"), x.predictions);
  a("weight_bytes", x.weight_bytes);
  a(json_only("parameters"), x.parameters);
  a("bits_per_weight", x.bits_per_weight);
  describe_speed(a, "host_prefill_tokens_per_s", "host_prefill_is_unsteady", x.host_prefill);
  describe_speed(a, "host_decode_tokens_per_s", "host_decode_is_unsteady", x.host_decode);
  a({"load_s", "host_load_s"}, x.load_s);
}

template <class A>
void describe(A& a, ChipFacts& x) {
  a("name", x.name);
  a("description", x.description);
  a("source", x.source);
  a("file", x.file);
  a("dataflow", x.dataflow);
  a("rows", x.rows);
  a("columns", x.columns);
  a.maybe("node_nm", x.node_nm, x.node_nm > 0);
  a("clock_hz", x.clock_hz);
  a("outer_bytes_per_s", x.outer_bytes_per_s);
  a("calibration", x.calibration);
  a.later("is_host", x.is_host);
  a.list("peaks", x.peaks);
  a.later("patterns", x.patterns);
  a.later("keeps_between", x.keeps_between);
  a.later("is_16_bit", x.is_16_bit);
}

template <class A>
void describe(A& a, ModelFacts& x) {
  a({"name", "model"}, x.name);
  a(json_only("folder"), x.folder);
  a(json_only("type"), x.type);
  a(json_only("layers"), x.layers);
  a(json_only("vocab_size"), x.vocab_size);
  a(json_only("max_positions"), x.max_positions);
  a(json_only("parameters"), x.parameters);
}

template <class A>
void describe(A& a, Protocol& x) {
  a(json_only("shapes_only"), x.shapes_only);
  a(json_only("text"), x.text);
  a(json_only("calibration"), x.calibration);
  a(json_only("windows"), x.windows);  // at most; beside it CSV has the scheme's
  a(json_only("window_tokens"), x.window_tokens);
  a("prompt_len", x.prompt_len);
  a("gen_len", x.gen_len);
  a("decode_context", x.decode_context);
  a(json_only("threads"), x.threads);
  a(json_only("parallel"), x.parallel);
  a.later("objective", x.objective);
  a.later(json_only("reference"), x.reference);
  a.later({"speeds_measured_at", "host_speeds_measured_at"}, x.measured_at);
  a.later(json_only("speed_rounds"), x.rounds);
  a(json_only("host"), x.host);
  a(json_only("version"), x.version);
  a(json_only("remarks"), x.remarks);
}

}  // namespace sator::study
