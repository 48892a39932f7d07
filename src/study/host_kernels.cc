#include "study/host_kernels.h"

#include <algorithm>
#include <map>
#include <random>

#include "base/error.h"
#include "llm/open.h"
#include "llm/workload.h"
#include "runtime/profiler.h"
#include "study/cost_program.h"
#include "study/profile.h"
#include "target/calibration.h"

namespace sator::study {

namespace {

struct RunStep {
  std::string phase;
  llm::StepSize size;
};

/// One scheme of a model, ready to run, with the durations of each step's calls so far.
struct Runner {
  std::string scheme;
  llm::OpenModel model;
  std::unique_ptr<ProgramAtPhase3> program;
  std::unique_ptr<llm::Workload> workload;
  std::unique_ptr<Session> session;
  std::vector<RunStep> steps;
  std::vector<std::vector<llm::KernelCall>> calls;             // per step
  std::vector<std::vector<std::vector<double>>> durations_us;  // per step and call: of each round
};

std::vector<double> kernel_times(Session& session, const std::function<void()>& step) {
  runtime::Profiler profiler(session.vm());
  profiler.time(step);
  std::vector<double> times;
  for (const runtime::CallRecord& record : profiler.take().records)
    if (record.is_kernel && !record.function.starts_with("shape_func")) times.push_back(record.duration_us);
  return times;
}

void run_once(Runner& r, size_t step, std::span<const int32_t> ids, bool keep) {
  const llm::StepSize& size = r.steps[step].size;
  // The scheme before had other threads: these wake up on a token of their own.
  r.session->reset();
  r.session->append(ids.first(1));
  r.session->reset();
  const auto before = static_cast<size_t>(size.context - size.tokens);
  if (before > 0) r.session->append(ids.first(before));
  const std::vector<double> times =
      kernel_times(*r.session, [&] { r.session->append(ids.first(static_cast<size_t>(size.tokens))); });
  if (!keep) return;
  auto& durations = r.durations_us[step];
  durations.resize(r.calls[step].size());
  if (times.size() != durations.size())
    internal_error(
        text(r.steps[step].phase, " ran ", times.size(), " kernels where the program states ", durations.size()));
  for (size_t c = 0; c < times.size(); ++c) durations[c].push_back(times[c]);
}

Runner open_runner(const HostRuns& runs, const std::string& scheme,
                   const std::function<void(const std::string&)>& progress) {
  llm::OpenOptions options{.scheme = llm::parse_scheme(scheme), .threads = runs.threads};
  if (fs::is_regular_file(runs.model / "calibration.txt")) options.calibration = runs.model / "calibration.txt";
  options.progress = progress;
  Runner r{.scheme = options.scheme.name, .model = llm::open_model(runs.model, options)};
  r.program = std::make_unique<ProgramAtPhase3>(
      program_at_phase3(runs.model, {.scheme = r.model.scheme, .program = r.model.program}));
  r.workload = std::make_unique<llm::Workload>(r.program->module, r.program->program);
  r.session = std::make_unique<Session>(r.model.session());
  const ModelLimits& limits = r.model.limits;
  for (int64_t tokens : runs.prefills)
    if (tokens <= longest_prompt(limits)) r.steps.push_back({"prefill", {.tokens = tokens, .context = tokens}});
  for (int64_t context : runs.contexts)
    if (context <= limits.context_window && context > 1)
      r.steps.push_back({"decode", {.tokens = 1, .context = context}});
  for (const RunStep& s : r.steps) r.calls.push_back(r.workload->calls(s.size));
  r.durations_us.resize(r.steps.size());
  return r;
}

/// What a kernel is held out by, and the sizes of its first product.
void describe(HostKernel& kernel) {
  const dataflow::StatementCost* product = nullptr;
  for (const dataflow::StatementCost& s : kernel.cost.statements)
    if (s.on_array() && !product) product = &s;
  if (product) {
    const ProductSize size = product_size(*product);
    kernel.batch = size.batch, kernel.i = size.i, kernel.j = size.j, kernel.k = size.k;
    const ProductClass c = class_of(product->work, *product->product);
    kernel.kind = kKernelKinds[static_cast<size_t>(c)];
    kernel.shape = c == ProductClass::batched ? text(kernel.phase, " of ", kernel.tokens, " at ", kernel.context)
                                              : text("weight ", size.j, " x ", size.k);
    return;
  }
  kernel.kind = "other";
  std::vector<int64_t> longest;
  double most = 0;
  for (const dataflow::StatementCost& s : kernel.cost.statements) {
    double volume = 1;
    for (int64_t e : s.work.statement.domain.extent) volume *= static_cast<double>(e);
    if (volume > most) most = volume, longest = s.work.statement.domain.extent;
  }
  kernel.shape = text("extents ", join(longest, " x "));
}

/// Calls of a step that are the same function at the same sizes, as one kernel each.
void add_kernels(const HostRuns& runs, const Runner& r, size_t step, dataflow::CostEngine& engine,
                 std::vector<HostKernel>& out) {
  std::map<std::string, std::vector<size_t>> same;
  std::vector<std::string> order;
  for (size_t c = 0; c < r.calls[step].size(); ++c) {
    std::string key = r.calls[step][c].function;
    for (const auto& [name, value] : r.calls[step][c].sizes) key += text(" ", name, "=", value);
    auto& calls = same[key];
    if (calls.empty()) order.push_back(key);
    calls.push_back(c);
  }
  for (const std::string& key : order) {
    const std::vector<size_t>& calls = same[key];
    const llm::KernelCall& first = r.calls[step][calls.front()];
    std::vector<double> all;
    for (size_t c : calls) all.insert(all.end(), r.durations_us[step][c].begin(), r.durations_us[step][c].end());
    std::sort(all.begin(), all.end());
    const dataflow::TirWork work =
        dataflow::work_of(*first.work, {first.function, first.sizes, first.params}, &engine.chip());
    HostKernel kernel{.model = runs.model.filename().string(),
                      .scheme = r.scheme,
                      .phase = r.steps[step].phase,
                      .function = first.function,
                      .kind = "",
                      .shape = "",
                      .tokens = r.steps[step].size.tokens,
                      .context = r.steps[step].size.context,
                      .calls = static_cast<int64_t>(calls.size()),
                      .least_us = all.front(),
                      .median_us = all[all.size() / 2],
                      .cost = engine.cost(work.kernel, work.placements)};
    describe(kernel);
    if (kernel.median_us < kLeastCompared_us) continue;
    out.push_back(std::move(kernel));
  }
}

}  // namespace

HostRuns default_runs(const fs::path& model) {
  return {.model = model,
          .schemes = {"f32", "int8-channel", "int8-channel+a8", "int4-group32"},
          .prefills = {8, 32, 64, 128, 256},
          .contexts = {16, 64, 128, 256, 448}};
}

double noise_of(const std::vector<HostKernel>& kernels) {
  if (kernels.empty()) return 1;
  std::vector<double> ratios;
  for (const HostKernel& k : kernels) ratios.push_back(k.median_us / std::max(k.least_us, 1e-3));
  std::sort(ratios.begin(), ratios.end());
  return ratios[ratios.size() / 2];
}

std::vector<HostKernel> run_kernels(const HostRuns& runs, const Chip& chip,
                                    const std::function<void(const std::string&)>& progress) {
  std::vector<Runner> runners;
  for (const std::string& scheme : runs.schemes) runners.push_back(open_runner(runs, scheme, progress));
  int64_t longest = 1;
  for (const Runner& r : runners)
    for (const RunStep& s : r.steps) longest = std::max(longest, s.size.context);
  std::minstd_rand random(1);
  std::vector<int32_t> ids(static_cast<size_t>(longest));
  for (int32_t& id : ids)
    id = static_cast<int32_t>(random() % static_cast<uint64_t>(runners.front().model.limits.vocab_size));
  for (int64_t round = -1; round < runs.rounds; ++round) {  // the first one warms up
    if (round >= 0) progress(text("running kernels, round ", round + 1, " of ", runs.rounds));
    for (Runner& r : runners)
      for (size_t s = 0; s < r.steps.size(); ++s) run_once(r, s, ids, round >= 0);
  }
  std::vector<HostKernel> kernels;
  dataflow::CostEngine engine(chip);
  for (const Runner& r : runners)
    for (size_t s = 0; s < r.steps.size(); ++s) add_kernels(runs, r, s, engine, kernels);
  return kernels;
}

}  // namespace sator::study
