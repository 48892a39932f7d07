#pragma once

#include "ir/module.h"

namespace sator::test {

/// Runs the graph function `main` of both modules in the interpreter on the same random arguments, and says where the
/// results differ; nothing where they agree to `tolerance`, or where they cannot be compared: no `main` over tensors alone in
/// `after` (whose sizes may be numbers where those of `before` are symbolic), other parameters in
/// `before`, or calls of external functions. Where `before` refuses the arguments, `after` has to.
std::optional<std::string> difference_of_runs(const ModuleRef& before, const ModuleRef& after, double tolerance);

}  // namespace sator::test
