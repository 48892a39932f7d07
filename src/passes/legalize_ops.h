#pragma once

#include "passes/pass.h"

namespace sator::passes {

/// Ops become calls of tensor functions: the op's formula as a private function of the module, called by R.call_tir. Equal
/// functions are shared; a second, different one of the same name is matmul1. An op whose shapes are not known stays.
ModuleRef legalize_ops(const ModuleRef& module, const PassContext& ctx);

}  // namespace sator::passes
