// What is built for a target, as one page: the phases under the names that MLC-LLM's users know, the rules, the lowering.
#pragma once

#include <functional>
#include <span>

#include "passes/lower/lower.h"
#include "passes/pass.h"
#include "target/target.h"

namespace sator::driver {

/// One pass of a phase, or one that MLC-LLM has there and this target skips, with the reason.
struct Step {
  std::string name;
  std::string skipped = {};  ///< empty: it runs
  bool per_level = false;    ///< from here on the program of each instruction-set level by itself
  /// It changes which parameters functions take: for models, whose weights are transformed when they are loaded, not for a program
  /// whose functions somebody calls as he wrote them.
  bool changes_parameters = false;
};
struct Phase {
  int number;
  std::string does;
  std::vector<Step> steps;
};

/// A rule that schedules tensor functions.
struct RuleName {
  std::string_view name, does;
};

/// What is built for one kind of target.
struct Backend {
  std::string_view kind;        ///< of the target: "llvm"
  std::vector<Phase> phases;    ///< in order
  std::vector<RuleName> rules;  ///< in the order in which they are tried
  std::span<const passes::LowerPass> lowering;
  std::string_view emitter;  ///< what makes code, or figures, of lowered functions
};

/// Null where nothing is built for targets of this kind.
const Backend* find_backend(const Target& target);
/// Errors: nothing is built for targets of this kind; the message says for which something is.
const Backend& backend_of(const Target& target);

/// All passes that a page may name: those of passes/ and the schedules of rules/. What `sator opt` runs.
const std::vector<passes::Pass>& all_passes();
/// Errors: no such pass; lists the nearest names.
const passes::Pass& step_named(const std::string& name);

/// The phase in which tensor functions are scheduled. Before it the program is what the cost engine reads.
inline constexpr int kSchedulePhase = 4;

/// Hears of each pass that ran.
using AfterPass = std::function<void(const std::string& pass, const ModuleRef& after)>;

/// Runs the passes of one phase.
/// Errors: those of the passes; InternalError names the pass after which the module breaks the rules of the IRs.
ModuleRef run_phase(const Phase& phase, ModuleRef module, const passes::PassContext& ctx, const AfterPass& after = {});

}  // namespace sator::driver
