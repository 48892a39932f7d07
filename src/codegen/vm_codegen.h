#pragma once

#include "ir/module.h"
#include "runtime/bytecode.h"

namespace sator::codegen {

/// The bytecode of a module in its final phase: each graph function becomes a VM function of the same name, each tensor
/// program a kernel with its signature.
///
/// In the final phase (after VMShapeLower) a binding's value is a call, a constant, an `if`, a tuple access, or another
/// variable; every shape is constant or was made by vm.builtin.make_shape. A call may carry the attribute "annotation",
/// a text that says where in the model it is.
/// Errors: a value that belongs to an earlier phase, with the name of the pass that removes it.
Ref<runtime::Executable> vm_codegen(const ModuleRef& module);

}  // namespace sator::codegen
