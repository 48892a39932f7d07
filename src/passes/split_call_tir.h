#pragma once

#include "passes/pass.h"

namespace sator::passes {

/// A program that begins as one of the patterns does is split: an outer function computes that part, a program the rest.
///   config  "SplitCallTIRByPattern.patterns": tensor programs, or names of those of the module. Their symbolic sizes stand
///           for any extents; of several that fit the one with the most statements is taken
///           "SplitCallTIRByPattern.fcodegen": before the names of the outer functions, NAME.PATTERN ("library")
ModuleRef split_call_tir_by_pattern(const ModuleRef& module, const PassContext& ctx);

}  // namespace sator::passes
