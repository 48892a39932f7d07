#pragma once

#include "passes/pass.h"
#include "relax/nodes.h"

namespace sator::passes {

/// Takes out pure bindings that nobody uses, and functions that no entry reaches. Entries are the functions with a
/// `global_symbol`, and those that are named; `main` where there is none.
///   config  "DeadCodeElimination.entry_functions"
ModuleRef dead_code_elimination(const ModuleRef& module, const PassContext& ctx);
/// The function without pure bindings that nobody uses.
relax::FuncRef without_unused(const relax::FuncRef& func);
/// Takes out the functions alone.
ModuleRef without_unused_functions(const ModuleRef& module, const std::vector<std::string>& entries = {});

}  // namespace sator::passes
