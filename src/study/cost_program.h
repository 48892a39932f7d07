// The half of a study that costs: a model's program under a scheme, step by step, on described chips.
#pragma once

#include <map>
#include <memory>

#include "llm/open.h"
#include "llm/workload.h"
#include "study/costing.h"
#include "study/study.h"

namespace sator::study {

/// A model's program under a scheme up to phase 3, with what a study asks of it.
struct ProgramAtPhase3 {
  llm::Program program;
  ModuleRef module;
};

/// llm::program_of a folder, taken through the passes. Nothing is run or compiled to machine code. Errors: as there.
ProgramAtPhase3 program_at_phase3(const fs::path& folder, const llm::OpenOptions& options);

/// The kernels of one call of a step function, one entry per function, sizes and layer, in the order of first sight.
std::vector<PhaseKernel> kernels_of(const std::vector<llm::KernelCall>& calls, const Chip& chip);

/// The steps that take a prompt in: chunks of at most `chunk` tokens. A last chunk of one token is a decode step, as in Session.
std::vector<llm::StepSize> prefill_steps(int64_t prompt_len, int64_t chunk);

/// Costs schemes one after the other and remembers, per chip, what it has counted.
class ProgramCoster {
 public:
  /// prefill: the whole prompt; decode: one token at job.decode_context. In the order of `chips`.
  std::vector<ChipResult> cost(const SchemeJob& job, std::span<const Chip> chips, const Progress& progress);

 private:
  std::map<std::string, std::unique_ptr<ChipCoster>> coster_of_;  // by the chip's name and file, and the goal
};

}  // namespace sator::study
