#include "study/profile.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "arith/eval.h"
#include "base/error.h"
#include "base/figures.h"
#include "ir/visit.h"
#include "study/cost_program.h"
#include "study/host_comparison.h"
#include "study/words.h"

namespace sator::study {

namespace {

/// Counts do not depend on the chip; without one they are made on this one, whose figures nobody sees.
constexpr const char* kCountingChip = R"(
name = "counting"
description = "stands where no chip is asked for"
source = "no chip"
node_nm = 7
clock_hz = 1_000_000_000
[array]
rows = 16
columns = 16
interconnect = "multicast"
dataflow = "ws"
[[precision]]
weight_bits = 16
activation_bits = 16
accumulator_bits = 32
macs_per_pe_per_cycle = 1
energy_pj_per_mac = 1
energy_source = "no chip"
[[memory]]
name = "dram"
bytes_per_cycle = 32
energy_pj_per_bit = 1
energy_source = "no chip"
[[memory]]
name = "sram"
capacity_bytes = 1_048_576
bytes_per_cycle = 64
energy_pj_per_bit = 1
energy_source = "no chip"
[pe]
capacity_bytes = 16
energy_pj_per_bit = 1
energy_source = "no chip"
[vector]
lanes = 16
ops_per_lane_per_cycle = 1
does = ["elementwise", "reduce", "rescale", "quantize", "dequantize"]
energy_pj_per_op = 1
energy_source = "no chip"
)";

/// Size arithmetic between kernels is no work of the model.
bool is_model_kernel(const runtime::CallRecord& record) {
  return record.is_kernel && !record.function.starts_with("shape_func");
}

/// Bits that the kernel's statements touch of a tensor, each element once.
int64_t touched_bits(const dataflow::KernelCost& cost, const std::string& tensor) {
  int64_t bits = 0;
  for (const dataflow::StatementCost& s : cost.statements)
    for (size_t a = 0; s.counts && a < s.work.operands.size(); ++a)
      if (s.work.statement.accesses[a].tensor == tensor)
        bits = std::max(bits, s.counts->tensors[a].footprint * s.work.operands[a].bits);
  return bits;
}

std::vector<WorkOperand> operands_of(const llm::KernelCall& call, const dataflow::KernelCost& cost) {
  arith::Values sizes;
  for (const VarRef& v : vars_in(call.work))
    if (auto at = call.sizes.find(v->name); at != call.sizes.end()) sizes.emplace(v, at->second);
  std::vector<WorkOperand> out;
  for (const VarRef& param : call.work->params) {
    BufferRef buffer = call.work->buffer_of(param);
    if (!buffer) continue;
    const dataflow::ParamFacts facts =
        out.size() < call.params.size() ? call.params[out.size()] : dataflow::ParamFacts{};
    WorkOperand o{.name = buffer->name, .kind = std::string(name_of(facts.kind)), .dtype = buffer->dtype};
    o.bits = facts.bits > 0 ? facts.bits : buffer->dtype.bits;
    for (const Expr& e : buffer->shape) o.shape.push_back(arith::evaluate(e, sizes).value_or(1));
    o.bytes = (touched_bits(cost, buffer->name) + 7) / 8;
    out.push_back(std::move(o));
  }
  return out;
}

WorkloadRecord record_of(const std::string& phase, const llm::KernelCall& call, double duration_us,
                         dataflow::CostEngine& engine, bool with_cost) {
  WorkloadRecord r{.phase = phase, .function = call.function, .layer = call.layer, .sizes = call.sizes};
  const dataflow::TirWork work =
      dataflow::work_of(*call.work, {call.function, call.sizes, call.params}, &engine.chip());
  for (const dataflow::Work& w : work.kernel.work) {
    auto& [name, domain] = r.domains.emplace_back();
    name = w.statement.name;
    for (int x = 0; x < w.statement.domain.rank(); ++x)
      domain.emplace_back(w.statement.domain.names[static_cast<size_t>(x)],
                          w.statement.domain.extent[static_cast<size_t>(x)]);
  }
  const dataflow::KernelCost cost = engine.cost(work.kernel, work.placements);
  KernelRow row = kernel_row(
      {.function = call.function, .layer = call.layer, .duration_us = duration_us}, work.kernel, cost, engine.chip());
  r.batch = row.batch, r.i = row.i, r.j = row.j, r.k = row.k;
  r.macs = row.cost.macs;
  r.operands = operands_of(call, cost);
  r.duration_us = duration_us;
  if (with_cost) r.on_chip = std::move(row);
  return r;
}

using Columns = std::map<std::string, runtime::Metric>;

Columns columns_of(const WorkloadRecord& r) {
  using runtime::Metric;
  Columns out = {{"MACs", Metric::count(static_cast<double>(r.macs))}};
  if (r.k > 0) {
    out["i"] = Metric::of_text(r.batch > 1 ? text(r.batch, " x ", r.i) : text(r.i));
    out["j"] = Metric::of_text(text(r.j));
    out["k"] = Metric::of_text(text(r.k));
  }
  if (!r.on_chip) return out;
  const Cost& cost = r.on_chip->cost;
  char number[40];
  out["Est. Latency (us)"] = Metric::microseconds(cost.latency_s * 1e6);
  std::snprintf(number, sizeof number, "%.2f", cost.levels.empty() ? 0 : cost.levels[0].achieved_bytes_per_s / 1e9);
  out["Est. Bandwidth (GB/s)"] = Metric::of_text(number);
  if (r.on_chip->counts.unique > 0) {
    std::snprintf(number,
                  sizeof number,
                  "%.2f",
                  static_cast<double>(r.on_chip->counts.total) / static_cast<double>(r.on_chip->counts.unique));
    out["Reuse Factor"] = Metric::of_text(number);
  }
  return out;
}

/// Errors: InternalError where the run had other values of a symbolic size than the program states.
void require_sizes(const runtime::CallRecord& ran, const llm::KernelCall& stated) {
  for (const runtime::CallRecord::NamedValue& v : ran.values)
    if (auto at = stated.sizes.find(v.name); at != stated.sizes.end() && at->second != v.value)
      internal_error(text(
          "profile: ", ran.function, " ran with ", v.name, " = ", v.value, " where the program states ", at->second));
}

/// Joins a run's records with the calls that the program states, in order.
runtime::Profile joined(runtime::Profile profile, const std::string& phase, const std::vector<llm::KernelCall>& calls,
                        dataflow::CostEngine& engine, bool with_cost, std::vector<WorkloadRecord>& records) {
  auto rows = std::make_shared<std::vector<Columns>>(profile.records.size());
  size_t next = 0;
  for (size_t i = 0; i < profile.records.size(); ++i) {
    const runtime::CallRecord& record = profile.records[i];
    if (!is_model_kernel(record)) continue;
    if (next >= calls.size() || calls[next].function != record.function)
      internal_error(text("profile: ",
                          record.function,
                          " ran where the program states ",
                          next < calls.size() ? calls[next].function : "nothing"));
    require_sizes(record, calls[next]);
    records.push_back(record_of(phase, calls[next++], record.duration_us, engine, with_cost));
    (*rows)[i] = columns_of(records.back());
  }
  if (next != calls.size()) internal_error(text("profile: ", calls[next].function, " did not run"));
  profile.more_columns = [rows](const runtime::CallRecord&, size_t number) { return rows->at(number); };
  return profile;
}

}  // namespace

std::string comparison_table(const ModelProfile& profile) {
  struct Sum {
    std::string phase, function;
    int64_t calls = 0;
    double measured_us = 0, estimated_us = 0;
    std::optional<dataflow::LatencyInterval> expected;  // of all of them
    void add(const Sum& o) {
      calls += o.calls, measured_us += o.measured_us, estimated_us += o.estimated_us;
      if (!o.expected) return;
      if (!expected) expected.emplace();
      expected->low_s += o.expected->low_s, expected->high_s += o.expected->high_s;
    }
  };
  std::vector<Sum> rows;
  for (const WorkloadRecord& r : profile.records) {
    if (!r.on_chip) return "";
    const Cost& c = r.on_chip->cost;
    auto at = std::find_if(
        rows.begin(), rows.end(), [&](const Sum& s) { return s.phase == r.phase && s.function == r.function; });
    if (at == rows.end()) at = rows.insert(rows.end(), {.phase = r.phase, .function = r.function});
    at->add({"", "", 1, r.duration_us, c.latency_s * 1e6, c.latency_interval});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Sum& a, const Sum& b) {
    return a.phase != b.phase ? a.phase > b.phase : a.measured_us > b.measured_us;
  });
  constexpr size_t kName = 52;
  auto line = [&](const std::string& name,
                  const std::string& calls,
                  const std::string& measured,
                  const std::string& estimated,
                  const std::string& between,
                  const std::string& error) {
    return text(pad_right(name, kName),
                pad_left(calls, 6),
                pad_left(measured, 13),
                pad_left(estimated, 14),
                pad_left(between, 22),
                pad_left(error, 10),
                "\n");
  };
  std::string out = line("kernel", "calls", "measured us", "estimated us", "between", "error");
  auto add = [&](const std::string& name, const Sum& s) {
    out += line(name,
                text(s.calls),
                fixed(s.measured_us, 1),
                fixed(s.estimated_us, 1),
                s.expected ? text(fixed(s.expected->low_s * 1e6, 1), " .. ", fixed(s.expected->high_s * 1e6, 1)) : "-",
                error_words(s.estimated_us, s.measured_us));
  };
  for (const char* phase : {"prefill", "decode"}) {
    Sum all;
    for (const Sum& s : rows)
      if (s.phase == phase) all.add(s), add(text(phase, ": ", s.function), s);
    if (all.calls > 0) add(text(phase, ": all"), all);
  }
  return out;
}

int64_t longest_prompt(const ModelLimits& limits) { return std::min(limits.prefill_chunk, limits.context_window - 1); }

ModelProfile profile_model(const fs::path& folder, const llm::OpenModel& model, const ProfileOptions& options) {
  const int64_t most = longest_prompt(model.limits);
  if (most < 1)
    fail({.what = text("a context of ", counted(model.limits.context_window, "token")),
          .needs = "two at least: a prompt and a token behind it"});
  if (options.prompt_len < 1 || options.prompt_len > most)
    fail({.what = text("a prompt of ", counted(options.prompt_len, "token")),
          .needs = text("1 to ", counted(most, "token"), ", one step"),
          .hint = "use another --prompt-len"});
  const ProgramAtPhase3 at = program_at_phase3(folder, {.scheme = model.scheme, .program = model.program});
  const llm::Workload workload(at.module, at.program);
  dataflow::CostEngine engine(options.chip ? *options.chip : parse_chip(kCountingChip, "the chip of counts"));

  std::minstd_rand random(1);
  std::vector<int32_t> ids(static_cast<size_t>(options.prompt_len));
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint64_t>(model.limits.vocab_size));
  const int32_t one[] = {ids[0]};
  Session session = model.session();
  session.append(ids);
  session.append(one);
  session.reset();

  if (options.rounds < 1)
    fail({.what = text(options.rounds, " rounds"), .needs = "at least 1", .hint = "leave --rounds out"});
  std::vector<runtime::Profile> prefills, decodes;
  for (int64_t round = 0; round < options.rounds; ++round) {
    session.reset();
    runtime::Profiler profiler(session.vm());
    profiler.time([&] { session.append(ids); });
    prefills.push_back(profiler.take());
    profiler.time([&] { session.append(one); });
    decodes.push_back(profiler.take());
  }
  runtime::Profile prefill = median_of(prefills), decode = median_of(decodes);

  ModelProfile out;
  out.prefill = joined(std::move(prefill),
                       "prefill",
                       workload.calls({.tokens = options.prompt_len, .context = options.prompt_len}),
                       engine,
                       options.chip.has_value(),
                       out.records);
  out.decode = joined(std::move(decode),
                      "decode",
                      workload.calls({.tokens = 1, .context = options.prompt_len + 1}),
                      engine,
                      options.chip.has_value(),
                      out.records);
  return out;
}

std::string json_lines(const std::vector<WorkloadRecord>& records) {
  using Json = nlohmann::ordered_json;
  std::string out;
  for (const WorkloadRecord& r : records) {
    Json j = {{"phase", r.phase}, {"function", r.function}, {"layer", r.layer}, {"sizes", r.sizes}};
    int64_t bytes = 0;
    for (const auto& [name, domain] : r.domains) {
      Json iterators = Json::object();
      for (const auto& [iterator, extent] : domain) iterators[iterator] = extent;
      j["statements"].push_back({{"name", name}, {"domain", iterators}});
    }
    if (r.k > 0) j["batch"] = r.batch, j["i"] = r.i, j["j"] = r.j, j["k"] = r.k;
    j["macs"] = r.macs;
    for (const WorkOperand& o : r.operands) {
      j["operands"].push_back({{"name", o.name},
                               {"kind", o.kind},
                               {"dtype", o.dtype.name()},
                               {"bits", o.bits},
                               {"shape", o.shape},
                               {"bytes", o.bytes}});
      bytes += o.bytes;
    }
    j["bytes"] = bytes;
    j["duration_us"] = r.duration_us;
    if (r.on_chip) {
      const Cost& c = r.on_chip->cost;
      const auto& interval = c.latency_interval;
      j["chip"] = {{"latency_s", c.latency_s},
                   {"latency_low_s", interval ? nlohmann::json(interval->low_s) : nlohmann::json()},
                   {"latency_high_s", interval ? nlohmann::json(interval->high_s) : nlohmann::json()},
                   {"latency_cycles", c.latency_cycles},
                   {"energy_j", knows_energy(c) ? nlohmann::json(c.energy_j) : nlohmann::json()},
                   {"bound", c.bound},
                   {"tile", r.on_chip->tile}};
    }
    out += j.dump() + "\n";
  }
  return out;
}

}  // namespace sator::study
