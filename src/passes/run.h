// Runs passes, and holds what each leaves against the rules of both IRs.
#pragma once

#include "base/error.h"
#include "passes/pass.h"

namespace sator::passes {

/// Every mistake of a module's graphs and tensor programs, with the function it is in.
///   before   (may be null) a module that is known to be right: tensor programs that it shares are not read again
std::vector<Reason> verify(const Module& module, const Module* before = nullptr);

/// Does nothing where `after`, made from the module `before` by `step`, is right.
/// Errors: the first mistake of `before`, if that is not right; else InternalError that names the step and the first mistake.
void require_well_formed(const std::string& step, const Module& after, const Module& before);

/// The module after the pass. Errors: what the pass needs does not hold of the module (the hint names the pass that has to
/// run before); those of the pass; InternalError with the pass's name if it leaves a module that
/// breaks the rules of relax/verify.h or tir/verify.h, and `module` does not.
ModuleRef run_pass(const Pass& pass, const ModuleRef& module, const PassContext& ctx);

}  // namespace sator::passes
