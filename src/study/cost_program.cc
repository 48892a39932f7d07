#include "study/cost_program.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "driver/compile.h"
#include "frontend/hf_config.h"
#include "llm/open.h"
#include "study/capacity.h"
#include "study/sweep.h"

namespace sator::study {

ProgramAtPhase3 program_at_phase3(const fs::path& folder, const llm::OpenOptions& options) {
  llm::Program program = llm::program_of(folder, options);
  driver::CompileOptions compile{.bounds = {{"seq_len", program.limits.prefill_chunk}}};
  ModuleRef module = driver::to_phase3(program.module, compile);
  return {std::move(program), std::move(module)};
}

std::vector<PhaseKernel> kernels_of(const std::vector<llm::KernelCall>& calls, const Chip& chip) {
  struct Entry {
    const llm::KernelCall* call;
    PhaseKernel kernel;
  };
  std::vector<Entry> entries;
  auto same_work = [](const llm::KernelCall& a, const llm::KernelCall& b) {
    return a.function == b.function && a.work == b.work && a.sizes == b.sizes && a.params == b.params &&
           a.sequences == b.sequences;
  };
  for (const llm::KernelCall& call : calls) {
    const Entry* twin = nullptr;
    bool counted = false;
    for (Entry& e : entries) {
      if (!same_work(*e.call, call)) continue;
      twin = &e;
      if (e.call->layer != call.layer) continue;
      ++e.kernel.calls.count;
      counted = true;
      break;
    }
    if (counted) continue;
    PhaseKernel kernel{.calls = {.function = call.function, .layer = call.layer},
                       .work = {},
                       .func = call.work,
                       .facts = {call.function, call.sizes, call.params, call.sequences},
                       .refused = {}};
    if (twin) {
      kernel.work = twin->kernel.work;
      kernel.refused = twin->kernel.refused;
    } else {
      try {
        kernel.work = dataflow::work_of(*call.work, kernel.facts, &chip);
      } catch (const Error& error) {
        kernel.refused = error.reason.what;
      }
    }
    entries.push_back({&call, std::move(kernel)});
  }
  std::vector<PhaseKernel> out;
  for (Entry& e : entries) out.push_back(std::move(e.kernel));
  return out;
}

std::vector<llm::StepSize> prefill_steps(int64_t prompt_len, int64_t chunk) {
  std::vector<llm::StepSize> steps;
  for (int64_t done = 0; done < prompt_len;) {
    const int64_t tokens = std::min(chunk, prompt_len - done);
    done += tokens;
    steps.push_back({.tokens = tokens, .context = done});
  }
  return steps;
}

/// What the chip has to hold for the job's sequence; where that is too much, with how many chips it is not. Their activations
/// are taken as large as one chip's.
static MemoryNeed need_on(const SchemeJob& job, const llm::Program& program, const std::vector<llm::KernelCall>& calls,
                          const Chip& chip) {
  const int64_t positions = job.options.prompt_len + job.options.gen_len;
  MemoryNeed need = memory_need(program, positions, calls, chip);
  if (need.fits()) return need;
  auto shared = [&](int64_t chips) -> std::optional<MemoryNeed> {
    try {
      const llm::Program part =
          llm::program_of(job.options.model, {.scheme = job.scheme, .program = {.alike_once = true, .chips = chips}});
      return memory_need(part, positions, calls, chip);
    } catch (const Error&) {  // heads that so many cannot share
      return {};
    }
  };
  need.chips_with_room = chips_with_room(chip, job.options.changes.chips, shared);
  return need;
}

std::vector<ChipResult> ProgramCoster::cost(const SchemeJob& job, std::span<const Chip> chips,
                                            const Progress& progress) {
  progress("building the program", true);
  const int64_t shared_by = job.options.changes.chips;
  const ProgramAtPhase3 at =
      program_at_phase3(job.options.model, {.scheme = job.scheme, .program = {.alike_once = true, .chips = shared_by}});
  const llm::Workload workload(at.module, at.program);
  Links links{.chips = shared_by, .layers = at.program.summed_layers};
  if (links.any()) {
    const ModelConfig config = read_model_config(job.options.model);
    links.width = config.hidden_size;
  }
  Steps steps(workload, at.program.repeats);
  std::vector<llm::KernelCall> prefill;
  std::vector<int64_t> prefill_tokens;
  for (const llm::StepSize& step : prefill_steps(job.options.prompt_len, at.program.limits.prefill_chunk)) {
    prefill_tokens.push_back(step.tokens);
    std::vector<llm::KernelCall> calls = workload.calls(step);
    prefill.insert(prefill.end(), std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end()));
  }
  const std::vector<llm::KernelCall> decode = workload.calls({.tokens = 1, .context = job.decode_context});
  std::vector<ChipResult> results;
  for (const Chip& chip : chips) {
    progress(text("costing on ", chip.name), true);
    std::unique_ptr<ChipCoster>& coster = coster_of_[text(chip.name, " ", chip.file, " ", name_of(job.options.goal))];
    if (!coster) coster = std::make_unique<ChipCoster>(chip, job.options.goal);
    auto complete = [&](const std::vector<int64_t>& tokens) {
      return [&, tokens](std::vector<KernelRow>& rows) {
        at.program.repeats.expand(rows, &KernelRow::layer);
        add_all_reduces(rows, links, tokens, chip);
      };
    };
    ChipResult& result = results.emplace_back();
    result.chip = chip.name;
    auto cost = [&](const std::vector<llm::KernelCall>& calls, const std::vector<int64_t>& tokens) {
      std::vector<PhaseKernel> kernels = kernels_of(calls, chip);
      PhaseResult phase = coster->cost(kernels, complete(tokens));
      for (PhaseKernel& k : kernels) k.calls.count *= at.program.repeats.times(k.calls.layer);
      phase.larger = coster->larger_memories(kernels, phase);
      return phase;
    };
    std::vector<llm::KernelCall> all = prefill;
    all.insert(all.end(), decode.begin(), decode.end());
    result.need = need_on(job, at.program, all, chip);
    result.prefill = cost(prefill, prefill_tokens);
    result.decode = cost(decode, {1});
    if (job.options.sweep.empty()) continue;
    progress(text("sweep on ", chip.name), true);
    result.sweep = sweep_of(steps, at.program.limits.prefill_chunk, job.options.sweep, *coster, links);
  }
  return results;
}

}  // namespace sator::study
