#include "passes/run.h"

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

ModuleRef run_pass(const Pass& pass, const ModuleRef& module, const PassContext& ctx) {
  ModuleRef out = pass.run(module, ctx);
  if (out == module) return out;
  std::vector<Reason> mistakes = verify(*out, module.get());
  if (!mistakes.empty())
    internal_error(text("the pass ",
                        pass.name,
                        " leaves a program that breaks the rules (the first of ",
                        mistakes.size(),
                        " mistakes)\n",
                        mistakes.front().render()));
  return out;
}

}  // namespace sator::passes
