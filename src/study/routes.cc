#include "study/routes.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "dataflow/cost/tensorized.h"
#include "driver/pipeline.h"
#include "passes/byoc.h"
#include "passes/run.h"

namespace sator::study {

std::vector<Route> routes_of(const Chip& chip) {
  std::vector<Route> routes = {Route::schedule, Route::tensorize, Route::pattern};
  if (!chip.keeps_between.empty()) routes.push_back(Route::merged);
  return routes;
}

ProgramAtPhase3 program_with_patterns(const fs::path& folder, const llm::OpenOptions& options, const Chip& chip,
                                      bool merged, int64_t prompt_len, std::vector<std::string>* notes) {
  llm::Program program = llm::program_of(folder, options);
  passes::PassContext ctx{.bounds = {{"seq_len", program.limits.prefill_chunk}}, .target = Target::parse("llvm")};
  passes::PassContext asked = ctx;
  asked.bounds["seq_len"] = std::min(prompt_len, program.limits.prefill_chunk);
  if (notes)
    asked.explain = [notes](const std::string& pass, const std::string& message) {
      const std::string note = text(pass, ": ", message);
      if (std::find(notes->begin(), notes->end(), note) == notes->end()) notes->push_back(note);
    };
  ModuleRef module = program.module;
  for (const driver::Phase& phase : driver::backend_of(*ctx.target).phases) {
    if (phase.number >= driver::kSchedulePhase) break;
    if (phase.number == 1) {
      module = passes::fuse_ops_by_pattern(module, asked, passes::patterns_of(chip));
      if (merged) module = passes::merge_composite_functions(module, asked, passes::room_between(chip));
      module = passes::run_pass(passes::pass_named("RunCodegen"), module, ctx);
    }
    module = driver::run_phase(phase, module, ctx);
  }
  return {std::move(program), std::move(module)};
}

namespace {

/// The host at the chip's outermost memory.
Chip beside(Chip host, const Chip& chip) {
  const double clock = chip.clock_hz / host.clock_hz;
  const std::string name = host.memories.front().name;
  Memory& memory = host.memories.front();
  memory = chip.memories.front();
  memory.name = name;
  memory.read_bytes_per_cycle *= clock;
  memory.write_bytes_per_cycle *= clock;
  return host;
}

}  // namespace

RouteCoster::RouteCoster(const Chip& chip, const Chip& host) : chip_(chip), host_(beside(host, chip)) {}

std::optional<dataflow::KernelCost> RouteCoster::on_chip(Route route, const PhaseKernel& kernel, RouteKernel& row) {
  const std::vector<dataflow::Work>& work = kernel.work.kernel.work;
  const bool any_product =
      std::any_of(work.begin(), work.end(), [](const dataflow::Work& w) { return product_of(w).has_value(); });
  if (chip_.chip().vector.lanes == 0 && !any_product) return {};
  dataflow::KernelCost cost = chip_.cost(kernel.work.kernel, kernel.work.placements);
  row.macs = cost.macs;
  const bool multiplies = cost.macs > 0;
  if (route == Route::schedule || (route == Route::tensorize && !multiplies)) return cost;
  if (route != Route::tensorize) {
    if (has_attr(kernel.func->attrs, "Codegen")) return cost;
    const auto& params = kernel.facts.params;
    const bool of_cache =
        std::any_of(params.begin(), params.end(), [](const auto& p) { return p.kind == dataflow::OperandKind::kv; });
    if (multiplies)
      row.why = of_cache ? text("no pattern takes ", row.function, ", which is no op of the graph: the cache calls it")
                         : text("no pattern of ", chip_.chip().name, " takes the product of ", row.function);
    return {};
  }
  try {
    // An intrinsic has one shape: rows that a mask ties to columns are not called in blocks.
    dataflow::Kernel whole = kernel.work.kernel;
    whole.one_pass = false;
    cost = chip_.cost(whole, kernel.work.placements);
    const auto result = tensorize_as_costed(kernel.func, kernel.facts, cost, chip_.chip());
    if (const Reason* reason = std::get_if<Reason>(&result)) {
      row.why = reason->what;
      return {};
    }
    const auto& called = std::get<dataflow::ScheduledFunction>(result);
    const dataflow::TirWork again = work_of(*called.func, kernel.facts, &chip_.chip());
    cost = chip_.cost(again.kernel, again.placements);
    row.padded = called.padded;
    return cost;
  } catch (const Error& error) {
    row.why = text("the tensorized program of ", row.function, " has no cost: ", error.reason.what);
    return {};
  }
}

RouteStep RouteCoster::cost(Route route, std::vector<llm::KernelCall> calls) {
  for (llm::KernelCall& call : calls) call.layer.clear();  // equal work is costed once, whoever asks for it
  const std::vector<PhaseKernel> here = kernels_of(calls, chip_.chip()), there = kernels_of(calls, host_.chip());
  RouteStep step;
  for (size_t k = 0; k < here.size(); ++k) {
    const PhaseKernel& kernel = here[k];
    for (const PhaseKernel* p : {&kernel, &there.at(k)})
      if (!p->refused.empty()) fail({.what = text(p->calls.function, " has no cost: ", p->refused)});
    const auto count = static_cast<double>(kernel.calls.count);
    auto bytes = [](const dataflow::KernelCost& c) {
      return static_cast<double>(c.memories.front().read_bytes + c.memories.front().write_bytes);
    };
    RouteKernel row{.function = kernel.calls.function, .count = kernel.calls.count, .why = {}, .padded = {}};
    if (const auto cost = on_chip(route, kernel, row)) {
      row.on_chip = true;
      for (const dataflow::StatementCost& s : cost->statements) row.macs_issued += s.on_array() ? s.instances : s.macs;
      row.latency_s = cost->latency_s;
      step.macs += row.macs * row.count;
      step.macs_on_chip += row.macs * row.count;
      step.macs_issued += row.macs_issued * row.count;
      step.launches_on_chip += row.count;
      step.chip_s += cost->latency_s * count;
      step.outside_bytes += bytes(*cost) * count;
    } else {
      const dataflow::KernelCost host = host_.cost(there[k].work.kernel, there[k].work.placements);
      row.macs = host.macs;
      row.latency_s = host.latency_s;
      step.macs += row.macs * row.count;
      step.launches_on_host += row.count;
      step.host_s += host.latency_s * count;
      step.outside_bytes += bytes(host) * count;
    }
    step.kernels.push_back(std::move(row));
  }
  return step;
}

namespace {

std::vector<llm::KernelCall> calls_of(const llm::Workload& workload, const std::vector<llm::StepSize>& steps) {
  std::vector<llm::KernelCall> all;
  for (const llm::StepSize& step : steps) {
    std::vector<llm::KernelCall> calls = workload.calls(step);
    all.insert(all.end(), std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end()));
  }
  return all;
}

}  // namespace

std::vector<RouteCosts> RouteCoster::by_every_route(const fs::path& folder, const llm::Scheme& scheme,
                                                    const ProgramAtPhase3& at, const RouteLengths& lengths,
                                                    const Progress& progress, std::vector<std::string>& notes) {
  std::vector<RouteCosts> out;
  auto add = [&](Route route, const ProgramAtPhase3& program) {
    const llm::Workload workload(program.module, program.program);
    const auto prompt = prefill_steps(lengths.prompt_len, program.program.limits.prefill_chunk);
    out.push_back({.route = route,
                   .scheme = scheme.name,
                   .prefill = cost(route, calls_of(workload, prompt)),
                   .decode = cost(route, calls_of(workload, {{.tokens = 1, .context = lengths.context}}))});
  };
  for (const Route route : routes_of(chip_.chip())) {
    progress(text(scheme.name, ": by ", name_of(route)), true);
    if (route == Route::schedule || route == Route::tensorize)
      add(route, at);
    else
      add(route,
          program_with_patterns(
              folder, {.scheme = scheme}, chip_.chip(), route == Route::merged, lengths.prompt_len, &notes));
  }
  return out;
}

}  // namespace sator::study
