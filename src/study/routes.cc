#include "study/routes.h"

#include <algorithm>

#include "base/error.h"
#include "dataflow/tensorized.h"
#include "driver/pipeline.h"
#include "passes/run.h"

namespace sator::study {

std::string_view name_of(Route route) {
  static constexpr std::string_view names[] = {"schedule", "tensorize", "pattern"};
  return names[static_cast<size_t>(route)];
}

ProgramAtPhase3 program_with_patterns(const fs::path& folder, const llm::OpenOptions& options, bool shapes_only) {
  llm::Program program = llm::program_of(folder, options, shapes_only);
  const passes::PassContext ctx{.bounds = {{"seq_len", program.limits.prefill_chunk}}, .target = "llvm"};
  ModuleRef module = program.module;
  for (const driver::Phase& phase : driver::phases()) {
    if (phase.number > 3) break;
    if (phase.number == 1)
      for (const char* pass : {"FuseOpsByPattern", "RunCodegen"})
        module = passes::run_pass(passes::pass_named(pass), module, ctx);
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

std::optional<dataflow::KernelCost> RouteCoster::on_chip(Route route, const PhaseKernel& kernel, std::string& why) {
  const std::vector<dataflow::Work>& work = kernel.work.kernel.work;
  const bool any_product =
      std::any_of(work.begin(), work.end(), [](const dataflow::Work& w) { return product_of(w).has_value(); });
  if (chip_.chip().vector.lanes == 0 && !any_product) return {};
  dataflow::KernelCost cost = chip_.cost(kernel.work.kernel, kernel.work.placements);
  const bool multiplies = cost.macs > 0;
  if (route == Route::schedule || (route == Route::tensorize && !multiplies)) return cost;
  if (route == Route::pattern) {
    if (has_attr(kernel.func->attrs, "Codegen")) return cost;
    if (multiplies) why = text("no pattern takes ", kernel.calls.function, ", which is no op of the graph");
    return {};
  }
  const auto result = tensorize_as_costed(kernel.func, kernel.facts, cost, chip_.chip());
  if (const Reason* reason = std::get_if<Reason>(&result)) {
    why = reason->what;
    return {};
  }
  const auto& called = std::get<dataflow::ScheduledFunction>(result);
  const dataflow::TirWork again = work_of(*called.func, kernel.facts, &chip_.chip());
  return chip_.cost(again.kernel, again.placements);
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
    std::string why;
    if (const auto cost = on_chip(route, kernel, why)) {
      step.macs += cost->macs * kernel.calls.count;
      step.macs_on_chip += cost->macs * kernel.calls.count;
      step.launches_on_chip += kernel.calls.count;
      step.chip_s += cost->latency_s * count;
      step.outside_bytes += bytes(*cost) * count;
    } else {
      const dataflow::KernelCost host = host_.cost(there[k].work.kernel, there[k].work.placements);
      step.macs += host.macs * kernel.calls.count;
      step.launches_on_host += kernel.calls.count;
      step.host_s += host.latency_s * count;
      step.outside_bytes += bytes(host) * count;
      if (!why.empty() && std::find(step.left_over.begin(), step.left_over.end(), why) == step.left_over.end())
        step.left_over.push_back(why);
    }
  }
  return step;
}

}  // namespace sator::study
