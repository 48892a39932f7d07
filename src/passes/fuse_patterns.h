// Fusions that look for one shape of computation, where fuse_ops looks at patterns of access. Roles are attributes of
// the tensor functions (`role: dequantize`), or are read off their accesses; names decide nothing.
#pragma once

#include "passes/pass.h"

namespace sator::passes {

/// matmul(x, permute_dims(w)), w a matrix   =>   one tensor function NT_matmul over x and w as they lie.
ModuleRef fuse_transpose_matmul(const ModuleRef& module, const PassContext& ctx);
/// matmul(x, permute_dims(call_tir(f, ...))), x of one row   =>   f without the transposition that it ends with.
ModuleRef fuse_dequantize_transpose(const ModuleRef& module, const PassContext& ctx);
/// sum = add(a, b); rms_norm(sum, w)   =>   one function with both results.
ModuleRef fuse_add_rms_norm(const ModuleRef& module, const PassContext& ctx);
/// A weight's dequantize function and the product that alone reads it (with what has been fused to it) become one.
ModuleRef fuse_dequantize_matmul_ewise(const ModuleRef& module, const PassContext& ctx);
/// The same for a table whose rows are gathered: only the gathered rows are dequantized.
ModuleRef fuse_dequantize_take(const ModuleRef& module, const PassContext& ctx);

}  // namespace sator::passes
