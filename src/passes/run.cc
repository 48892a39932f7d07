#include "passes/run.h"

#include "base/interrupt.h"
#include "relax/verify.h"
#include "tir/verify.h"

namespace sator::passes {

std::vector<Reason> verify(const Module& module, const Module* before) {
  std::vector<Reason> out = relax::verify(module);
  for (const auto& [name, func] : module.functions) {
    const tir::PrimFunc* program = func.as<tir::PrimFunc>();
    if (!program) continue;
    if (before) {
      auto at = before->functions.find(name);
      if (at != before->functions.end() && at->second == func) continue;
    }
    for (Reason& reason : tir::verify(*program)) {
      if (reason.where.empty()) reason.where = text("in func ", name);
      out.push_back(std::move(reason));
    }
  }
  return out;
}

void require_well_formed(const std::string& step, const Module& after, const Module& before) {
  if (&after == &before) return;
  std::vector<Reason> mistakes = verify(after, &before);
  if (mistakes.empty()) return;
  // A module that was wrong before is its author's mistake.
  if (std::vector<Reason> given = verify(before); !given.empty()) {
    given.front().what = text(step, " is given a program that breaks the rules: ", given.front().what);
    fail(std::move(given.front()));
  }
  const std::string count = text("the first of ", mistakes.size(), " mistakes");
  internal_error(text(step, " leaves a program that breaks the rules (", count, ")\n", mistakes.front().render()));
}

namespace {

/// Errors: a condition does not hold of the module.
void require(const Pass& pass, const Module& module) {
  for (const Condition* condition : pass.needs) {
    std::optional<Reason> broken = condition->broken(module);
    if (!broken) continue;
    const Pass* before = pass_leaving(*condition);
    broken->what = text(pass.name, ": ", broken->what);
    broken->needs = condition->holds;
    broken->hint = before ? text("run ", before->name, " before") : "write the graph in that form";
    fail(std::move(*broken));
  }
}

}  // namespace

ModuleRef run_pass(const Pass& pass, const ModuleRef& module, const PassContext& ctx) {
  check_interrupt();
  require(pass, *module);
  ModuleRef out = pass.run(module, ctx);
  for (const Condition* condition : pass.leaves) {
    if (auto broken = condition->broken(*out))
      internal_error(text("the pass ", pass.name, " does not leave ", condition->holds, ": ", broken->what));
  }
  require_well_formed("the pass " + pass.name, *out, *module);
  return out;
}

}  // namespace sator::passes
