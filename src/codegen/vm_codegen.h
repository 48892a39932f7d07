#pragma once

#include "ir/module.h"
#include "runtime/bytecode.h"

namespace sator::codegen {

/// The bytecode of a module's graph functions, which VMShapeLower has left. Each becomes a VM function of its name; each
/// tensor function becomes a kernel with the signature of kernel_signature(). A binding's variable, where
/// it has a name of its own, becomes the annotation of its call: "h_3_mlp_c_proj".
/// Errors: something that only an earlier phase may hold (R.call_tir, an op, a symbolic shape).
Ref<runtime::Executable> vm_codegen(const ModuleRef& module);

}  // namespace sator::codegen
