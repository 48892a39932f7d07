#pragma once

#include "passes/pass.h"
#include "relax/nodes.h"

namespace sator::passes {

/// Calls of pure ops and tensor functions whose arguments are all known become constants, computed by the interpreter;
/// later bindings read the constant itself. A call without arguments (R.zeros, R.arange) is folded only if it gives at most
/// 1024 elements, so that a module does not grow; one that takes too long stays.
ModuleRef fold_constant(const ModuleRef& module, const PassContext& ctx);

/// What an op gives for arguments that are all known, as a constant or a shape; null where one is not known.
/// Errors: the interpreter refuses the call, or it takes more than about a second.
relax::RExpr constant_of(const ModuleRef& module, const relax::RCallRef& call);

}  // namespace sator::passes
