// The half of a study that costs kernels on a described chip.
#pragma once

#include <span>

#include "dataflow/from_tir.h"
#include "study/check.h"
#include "study/phase.h"

namespace sator::study {

/// A kernel of a phase: who calls it, and its work at the sizes of the phase.
struct PhaseKernel {
  KernelCalls calls;
  dataflow::TirWork work;
  std::string refused;  // why there is no work: the program says something that the engine does not count
};

/// Costs phases on one chip. Equal structures are counted, mapped and checked once, over all schemes of a study.
class ChipCoster {
 public:
  explicit ChipCoster(const Chip& chip) : engine_(chip), checker_(chip) {}
  const Chip& chip() const { return engine_.chip(); }

  /// A kernel that the engine refuses stays in the list without a cost, with its words.
  PhaseResult cost(std::span<const PhaseKernel> kernels);

 private:
  dataflow::CostEngine engine_;
  CountChecker checker_;
};

}  // namespace sator::study
