#pragma once

#include "ir/module.h"

namespace sator::test {

/// Runs the graph function `main` of both modules in the interpreter on the same random arguments, and says where the
/// results differ; nothing where they agree to 1e-5, or where they cannot be compared: no `main` over tensors alone in
/// `before`, other parameters in `after`, or calls of external functions.
std::optional<std::string> difference_of_runs(const ModuleRef& before, const ModuleRef& after);

}  // namespace sator::test
