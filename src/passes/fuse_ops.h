#pragma once

#include "passes/pass.h"

namespace sator::passes {

/// Groups calls of tensor functions that one kernel can do, by their `op_pattern`: each group becomes a private function
/// with the attribute `Primitive`, called `fused_` and the names of its parts.
/// Source: Chen et al., "TVM: An Automated End-to-End Optimizing Compiler for Deep Learning", 2018, section 3.
ModuleRef fuse_ops(const ModuleRef& module, const PassContext& ctx);

/// Turns each function with the attribute `Primitive` into one tensor function: buffers between its calls become
/// allocations of the root block.
ModuleRef fuse_tir(const ModuleRef& module, const PassContext& ctx);

}  // namespace sator::passes
