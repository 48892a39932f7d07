// The compilation of a model in phases 0 to 5, under the names that MLC-LLM's users know.
#pragma once

#include "passes/pass.h"

namespace sator::driver {

/// One pass of a phase, or one that MLC-LLM has there and this target skips, with the reason.
struct Step {
  std::string name;
  std::string skipped;     ///< empty: it runs
  bool per_level = false;  ///< for each instruction set by itself: rules::schedule_for_cpu does it, after the others
};
struct Phase {
  int number;
  std::string does;
  std::vector<Step> steps;
};

/// The phases for CPUs, in order. Phase 4 (default schedules) and the last step of phase 5 (bytecode) are the driver's.
const std::vector<Phase>& phases();

/// Runs the passes of one phase.
/// Errors: those of the passes; InternalError names the pass after which the module breaks the rules of the IRs.
ModuleRef run_phase(const Phase& phase, ModuleRef module, const passes::PassContext& ctx);

}  // namespace sator::driver
