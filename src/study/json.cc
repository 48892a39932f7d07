#include "study/json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "study/compare.h"
#include "study/words.h"

namespace sator::study {

namespace {

/// Both directions of one description: `describe(archive, x)` names each field once.
struct Writer {
  static constexpr bool writes = true;
  Json& json;

  static Json of(double v) {
    if (std::isfinite(v)) return v;
    return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
  }
  void operator()(const char* key, double v) { json[key] = of(v); }
  void operator()(const char* key, int64_t v) { json[key] = v; }
  void operator()(const char* key, bool v) { json[key] = v; }
  void operator()(const char* key, const std::string& v) { json[key] = v; }
  void operator()(const char* key, const std::optional<double>& v) { json[key] = v ? of(*v) : Json(nullptr); }
  void operator()(const char* key, const std::vector<std::string>& v) { json[key] = v; }
  void operator()(const char* key, const std::vector<double>& v) {
    Json& all = json[key] = Json::array();
    for (double each : v) all.push_back(of(each));
  }
  /// What files of earlier versions lack.
  template <class T>
  void later(const char* key, const T& v) {
    (*this)(key, v);
  }
  /// A figure, null where it is not known.
  template <class T>
  void maybe(const char* key, T v, bool known) {
    if (known)
      (*this)(key, v);
    else
      json[key] = nullptr;
  }
  /// Bits under a key in bytes; the eighths are exact.
  void bytes(const char* key, int64_t bits) {
    if (bits % 8 == 0)
      json[key] = bits / 8;
    else
      json[key] = static_cast<double>(bits) / 8;
  }
  template <class T>
  void list(const char* key, std::vector<T>& items) {
    Json& all = json[key] = Json::array();
    for (T& item : items) {
      Writer inner{all.emplace_back(Json::object())};
      describe(inner, item);
    }
  }
  template <class T>
  void part(const char* key, T& item) {
    Writer inner{json[key] = Json::object()};
    describe(inner, item);
  }
};

struct Reader {
  static constexpr bool writes = false;
  JsonAt json;

  static double number(const JsonAt& at) {
    if (!at.is_string()) return at.number();
    if (at.string() == "inf") return std::numeric_limits<double>::infinity();
    if (at.string() == "-inf") return -std::numeric_limits<double>::infinity();
    if (at.string() == "nan") return std::numeric_limits<double>::quiet_NaN();
    at.fail("is no number", "a number, or \"inf\", \"-inf\", \"nan\"");
  }
  void operator()(const char* key, double& v) { v = number(json.at(key)); }
  void operator()(const char* key, int64_t& v) { v = json.at(key).integer(); }
  void operator()(const char* key, bool& v) { v = json.at(key).boolean(); }
  void operator()(const char* key, std::string& v) { v = json.at(key).string(); }
  void operator()(const char* key, std::optional<double>& v) {
    v.reset();
    if (auto at = json.find(key)) v = number(*at);
  }
  template <class T>
  void maybe(const char* key, T& v, bool) {
    v = 0;
    if (!json.json().contains(key) || json.find(key)) (*this)(key, v);  // a member that is missing is an error
  }
  void operator()(const char* key, std::vector<std::string>& v) {
    v.clear();
    json.at(key).each([&](const JsonAt& e) { v.push_back(e.string()); });
  }
  void operator()(const char* key, std::vector<double>& v) {
    v.clear();
    if (auto at = json.find(key)) at->each([&](const JsonAt& e) { v.push_back(number(e)); });
  }
  template <class T>
  void later(const char* key, T& v) {
    if (json.find(key)) (*this)(key, v);
  }
  void bytes(const char* key, int64_t& bits) {
    const JsonAt at = json.at(key);
    const double value = at.number() * 8;
    if (!(value >= 0 && value < 9e18)) at.fail("is out of range", "bytes, from 0 to 2^60");
    bits = at.is_integer() ? at.integer() * 8 : static_cast<int64_t>(value);
  }
  template <class T>
  void list(const char* key, std::vector<T>& items) {
    items.clear();
    json.at(key).each([&](const JsonAt& e) {
      Reader inner{e};
      describe(inner, items.emplace_back());
    });
  }
  template <class T>
  void part(const char* key, T& item) {
    Reader inner{json.at(key)};
    describe(inner, item);
  }
};

template <class A>
void describe(A& a, ComponentCost& x) {
  a("latency_cycles", x.latency_cycles);
  a("vector_ops", x.vector_ops);
  a("vector_cycles", x.vector_cycles);
}

template <class A>
void describe(A& a, LevelCost& x) {
  a("name", x.name);
  a.bytes("read_bytes", x.read_bits);
  a.bytes("write_bytes", x.write_bits);
  a.later("compulsory_bytes", x.compulsory_bytes);
  a.bytes("weight_bytes", x.by_kind.weight);
  a.bytes("scale_bytes", x.by_kind.scale);
  a.bytes("activation_bytes", x.by_kind.activation);
  a.bytes("kv_bytes", x.by_kind.kv);
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

template <class A>
void describe(A& a, Components& x) {
  for (const ComponentName& c : components()) a.part(std::string(c.key).c_str(), at(x, c.component));
}

template <class A>
void describe(A& a, Cost& x) {
  a("latency_s", x.latency_s);
  std::optional<double> low, high;  // null where the chip is not calibrated
  if (A::writes && x.latency_interval) low = x.latency_interval->low_s, high = x.latency_interval->high_s;
  a("latency_low_s", low);
  a("latency_high_s", high);
  if constexpr (!A::writes)
    if (low && high) x.latency_interval = {*low, *high};
  a("latency_cycles", x.latency_cycles);
  a("macs", x.macs);
  a("mac_units_used", x.mac_units_used);
  a("utilization", x.utilization);
  a("bound", x.bound);
  a.maybe("energy_j", x.energy_j, knows_energy(x));
  a.maybe("energy_node_nm", x.energy_node_nm, x.energy_node_nm > 0);
  a.part("components", x.components);
  a.list("levels", x.levels);
  a.list("resources", x.resources);
  a.list("latency_parts", x.latency_parts);
  a.list("elasticities", x.elasticities);
  a("clock_elasticity", x.clock_elasticity);
  a.list("energy_parts", x.energy);
  a.list("precisions", x.precisions);
  if constexpr (A::writes) {  // the same as `levels`, by name
    Json& bytes = a.json["bytes"] = Json::object();
    Json& bandwidth = a.json["bandwidth"] = Json::object();
    for (const LevelCost& l : x.levels) {
      Writer(bytes).bytes(l.name.c_str(), l.bits());
      bandwidth[l.name] = {{"required", Writer::of(l.required_bytes_per_s)},
                           {"achieved", Writer::of(l.achieved_bytes_per_s)},
                           {"available", Writer::of(l.available_bytes_per_s)}};
    }
  }
}

template <class A>
void describe(A& a, ReuseCounts& x) {
  a("space", x.space);
  a("time", x.time);
  a("spacetime", x.spacetime);
  a("pe_array", x.pe_array);
  a("total_volume", x.total);
  a("assigned", x.assigned);
  a("unique_volume", x.unique);
  a("temporal_hits", x.temporal_hits);
  a("spatial_hits", x.spatial_hits);
  a("footprint", x.footprint);
  a("checked", x.checked);
}

template <class A>
void describe(A& a, TenetTexts& x) {
  a("pe_array", x.pe_array);
  a("mapping", x.mapping);
  a("statement", x.statement);
}

template <class A>
void describe(A& a, TenetTerms& x) {
  for (const TenetTermName& t : kTenetTerms) a(std::string(t.name).c_str(), x.*t.value);
}

template <class A>
void describe(A& a, LargerMemory& x) {
  a("name", x.name);
  a("capacity_bytes", x.capacity_bytes);
  a("latency_s", x.latency_s);
}

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
  a("schedule", x.schedule);
  a.list("tenet", x.tenet);
  if constexpr (A::writes)
    a.list("tenet_terms", x.tenet_terms);
  else if (a.json.find("tenet_terms"))
    a.list("tenet_terms", x.tenet_terms);
  a("weight_bits", x.weight_bits);
  a("scale_bits", x.scale_bits);
  a("activation_bits", x.activation_bits);
  a("output_bits", x.output_bits);
  a("accumulator_bits_needed", x.accumulator_bits_needed);
  a("duration_us", x.duration_us);
  a("costed", x.costed);
  a.part("cost", x.cost);
  a.part("counts", x.counts);
  a("stream_cycles", x.stream_cycles);
  a("notes", x.notes);
}

/// A phase with its kernels where the archive has them.
template <class A>
struct PhaseArchive {
  A& a;
  bool kernels;
  void operator()(const char* key, PhaseResult& x) {
    if constexpr (A::writes) {
      Writer inner{a.json[key] = Json::object()};
      describe_phase(inner, x);
      if (kernels) inner.list("kernels", x.rows);
    } else {
      Reader inner{a.json.at(key)};
      describe_phase(inner, x);
      if (inner.json.find("kernels")) inner.list("kernels", x.rows);
    }
  }
  template <class B>
  static void describe_phase(B& b, PhaseResult& x) {
    describe(b, x.cost);
    b("launches", x.launches);
    b("kernels_run", x.kernels);
    b("kernels_costed", x.kernels_costed);
    b("kernels_checked", x.kernels_checked);
    if constexpr (B::writes)
      b.list("larger_memories", x.larger);
    else if (b.json.find("larger_memories"))
      b.list("larger_memories", x.larger);
    b("notes", x.notes);
  }
};

template <class A>
void describe(A& a, SweepCost& x) {
  a("latency_s", x.latency_s);
  a("latency_cycles", x.latency_cycles);
  a("macs", x.macs);
  a("utilization", x.utilization);
  a("bound", x.bound);
  a.maybe("energy_j", x.energy_j, x.energy_j > 0);
  a("outer_bytes", x.outer_bytes);
  a("kernels_without_cost", x.kernels_without_cost);
}

template <class A>
void describe(A& a, SweepPoint& x) {
  a("batch", x.batch);
  a("context", x.context);
  a.part("prefill", x.prefill);
  a.part("decode", x.decode);
}

template <class A>
void describe(A& a, HostCall& x) {
  a("phase", x.phase);
  a("function", x.function);
  a("duration_us", x.duration_us);
}

/// A speed's median under the name that it has had, its limits beside it; null where it was not measured.
template <class A>
void describe_speed(A& a, const std::string& prefix, std::optional<HostSpeed>& x) {
  std::optional<double> median, least, most;
  if (A::writes && x) median = x->median, least = x->least, most = x->most;
  a((prefix + "tokens_per_s").c_str(), median);
  a((prefix + "tokens_per_s_min").c_str(), least);
  a((prefix + "tokens_per_s_max").c_str(), most);
  if constexpr (A::writes)
    a.json[prefix + "is_unsteady"] = x && x->is_unsteady();
  else if (median)
    x = HostSpeed{*median, least.value_or(*median), most.value_or(*median)};
}

template <class A>
void describe_compared(A& a, std::optional<Compared>& x) {
  std::optional<double> difference, difference_error, kl, kl_error, same_top;
  if (A::writes && x) {
    difference = x->perplexity.value, difference_error = x->perplexity.error;
    kl = x->kl.value, kl_error = x->kl.error;
    same_top = x->same_top;
  }
  a("perplexity_difference", difference);
  a("perplexity_difference_error", difference_error);
  a("kl_divergence", kl);
  a("kl_divergence_error", kl_error);
  a("same_top_share", same_top);
  if (!A::writes && difference && kl && same_top)
    x = Compared{{*difference, difference_error}, {*kl, kl_error}, *same_top};
}

/// What a scheme's row shares with the others of the scheme.
template <class A>
void describe(A& a, SchemeResult& x) {
  a("scheme", x.name);
  a("description", x.description);
  a("perplexity", x.perplexity);
  a("standard_error", x.standard_error);
  a("windows", x.windows);
  a("predictions", x.predictions);
  describe_compared(a, x.compared);
  a("weight_bytes", x.weight_bytes);
  a("parameters", x.parameters);
  a("bits_per_weight", x.bits_per_weight);
  describe_speed(a, "host_prefill_", x.host_prefill);
  describe_speed(a, "host_decode_", x.host_decode);
  a("load_s", x.load_s);
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
  if constexpr (A::writes) {
    a("is_host", x.is_host);
  } else if (a.json.find("is_host")) {  // studies of earlier versions lack it
    a("is_host", x.is_host);
  }
  a.list("peaks", x.peaks);
  a.later("is_16_bit", x.is_16_bit);
}

template <class A>
void describe(A& a, ModelFacts& x) {
  a("name", x.name);
  a("folder", x.folder);
  a("type", x.type);
  a("layers", x.layers);
  a("vocab_size", x.vocab_size);
  a("max_positions", x.max_positions);
  a("parameters", x.parameters);
}

template <class A>
void describe(A& a, Protocol& x) {
  a("shapes_only", x.shapes_only);
  a("text", x.text);
  a("calibration", x.calibration);
  a("windows", x.windows);
  a("window_tokens", x.window_tokens);
  a("prompt_len", x.prompt_len);
  a("gen_len", x.gen_len);
  a("decode_context", x.decode_context);
  a("threads", x.threads);
  a("parallel", x.parallel);
  a.later("objective", x.objective);
  a.later("reference", x.reference);
  a.later("speeds_measured_at", x.measured_at);
  a.later("speed_rounds", x.rounds);
  a("host", x.host);
  a("version", x.version);
  a("remarks", x.remarks);
}

void write_need(Writer& row, const std::optional<MemoryNeed>& need) {
  if (!need) return;
  auto or_null = [](const std::optional<int64_t>& v) { return v ? Json(*v) : Json(); };
  row.json["memory_need"] = {{"memory", need->memory},
                             {"weights_bytes", need->weights_bytes},
                             {"cache_bytes", need->cache_bytes},
                             {"activation_bytes", need->activation_bytes},
                             {"capacity_bytes", or_null(need->capacity_bytes)},
                             {"fits", need->capacity_bytes ? Json(need->fits()) : Json()},
                             {"chips_with_room", or_null(need->chips_with_room)}};
}

/// Studies of earlier versions lack it.
void read_need(const JsonAt& row, std::optional<MemoryNeed>& need) {
  const auto at = row.find("memory_need");
  if (!at) return;
  Reader r{*at};
  MemoryNeed& n = need.emplace();
  r("memory", n.memory);
  r("weights_bytes", n.weights_bytes);
  r("cache_bytes", n.cache_bytes);
  r("activation_bytes", n.activation_bytes);
  if (const auto capacity = at->find("capacity_bytes")) n.capacity_bytes = capacity->integer();
  if (const auto chips = at->find("chips_with_room")) n.chips_with_room = chips->integer();
}

}  // namespace

Json to_json(const Study& given, Kernels kernels) {
  Study study = given;  // the descriptions take fields to read and to write
  Json json = Json::object();
  Writer w{json};
  w("schema_version", kSchemaVersion);
  w("model", study.model.name);
  w.part("model_facts", study.model);
  w.part("protocol", study.protocol);
  w.list("chips", study.chips);
  for (size_t c = 0; c < study.chips.size() && !study.schemes.empty(); ++c)
    json["chips"][c]["ratio_baseline"] = study.schemes[baseline_of(study, c)].name;
  w.list("schemes", study.schemes);
  for (size_t s = 0; s < study.schemes.size(); ++s)
    Writer{json["schemes"][s]}("window_nats", study.schemes[s].window_nats);
  if (kernels == Kernels::included)
    for (size_t s = 0; s < study.schemes.size(); ++s)
      Writer{json["schemes"][s]}.list("host_calls", study.schemes[s].host_calls);
  Json& rows = json["rows"] = Json::array();
  for (SchemeResult& scheme : study.schemes)
    for (ChipResult& chip : scheme.chips) {
      Writer row{rows.emplace_back(Json::object())};
      describe(row, scheme);
      row("chip", chip.chip);
      write_need(row, chip.need);
      PhaseArchive<Writer> phases{row, kernels == Kernels::included};
      phases("prefill", chip.prefill);
      phases("decode", chip.decode);
    }
  Json& sweep = json["sweep"] = Json::array();
  for (SchemeResult& scheme : study.schemes)
    for (ChipResult& chip : scheme.chips)
      for (SweepPoint& point : chip.sweep) {
        Writer row{sweep.emplace_back(Json::object())};
        row("scheme", scheme.name);
        row("chip", chip.chip);
        describe(row, point);
      }
  return json;
}

Study from_json(const Json& json, std::string_view source, Extent extent) {
  const JsonAt root(json, source);
  if (const JsonAt version = root.at("schema_version"); version.integer() != kSchemaVersion)
    version.fail(text("is ", version.integer()), text("schema version ", kSchemaVersion));
  Study study;
  Reader r{root};
  r.part("model_facts", study.model);
  r.part("protocol", study.protocol);
  r.list("chips", study.chips);
  r.list("schemes", study.schemes);
  size_t next = 0;
  root.at("schemes").each([&](const JsonAt& at) {
    SchemeResult& scheme = study.schemes[next++];
    Reader{at}("window_nats", scheme.window_nats);
    if (at.find("host_calls")) Reader{at}.list("host_calls", scheme.host_calls);
  });
  root.at("rows").each([&](const JsonAt& at) {
    Reader row{at};
    std::string name;
    row("scheme", name);
    for (SchemeResult& scheme : study.schemes) {
      if (scheme.name != name) continue;
      const size_t next = scheme.chips.size();
      ChipResult& chip = scheme.chips.emplace_back();
      row("chip", chip.chip);
      if (extent == Extent::whole && (next >= study.chips.size() || study.chips[next].name != chip.chip))
        at.at("chip").fail(text("is ", string_literal(chip.chip), " in row ", next + 1, " of scheme ", name),
                           "one row for each scheme and chip, a scheme's chips in the order of `chips`",
                           "run the study again");
      read_need(at, chip.need);
      PhaseArchive<Reader> phases{row, true};
      phases("prefill", chip.prefill);
      phases("decode", chip.decode);
      return;
    }
    at.at("scheme").fail(text("is ", string_literal(name), ", which `schemes` does not list"), "a scheme of the study");
  });
  for (const SchemeResult& scheme : study.schemes)
    if (extent == Extent::whole && scheme.chips.size() != study.chips.size())
      root.at("rows").fail(text("has ", scheme.chips.size(), " rows of scheme ", scheme.name),
                           text("one for each of the ", study.chips.size(), " chips"),
                           "run the study again");
  root.at("sweep").each([&](const JsonAt& at) {
    Reader row{at};
    std::string name, chip_name;
    row("scheme", name);
    row("chip", chip_name);
    for (SchemeResult& scheme : study.schemes)
      for (ChipResult& chip : scheme.chips)
        if (scheme.name == name && chip.chip == chip_name) return describe(row, chip.sweep.emplace_back());
    at.at("chip").fail(text("is ", string_literal(chip_name), ", which `rows` does not list for ", name),
                       "a scheme and a chip of the study");
  });
  return study;
}

}  // namespace sator::study
