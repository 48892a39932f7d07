#pragma once

#include "passes/pass.h"

namespace sator::passes {

/// Calls of pure ops and tensor functions whose arguments are all known become constants, computed by the interpreter;
/// later bindings read the constant itself. A call without arguments (R.zeros, R.arange) is folded only if it gives at most
/// 1024 elements, so that a module does not grow; one that takes too long stays.
ModuleRef fold_constant(const ModuleRef& module, const PassContext& ctx);

}  // namespace sator::passes
