#include "passes/outline.h"
#include "passes/rebind.h"
#include "passes/to_vm.h"

namespace sator::passes {

using namespace relax;

namespace {

RExpr lowered(const RCall& call) {
  const Op* op = call.op.as<Op>();
  if (!op) return ref(call);
  StructInfo sinfo = call.sinfo;
  const auto& a = call.args;
  if (op->name == "memory.alloc_storage") return op_call("vm.alloc_storage", {a[0], a[1], a[3], a[2]}, sinfo);
  if (op->name == "memory.alloc_tensor") return op_call("vm.alloc_tensor", {a[0], a[1], a[2], a[3]}, sinfo);
  if (op->name == "memory.kill_tensor" || op->name == "memory.kill_storage")
    return op_call("vm.kill_object", {a[0]}, sinfo);
  if (op->name == "reshape") return packed_call("vm.builtin.reshape", a, sinfo);
  if (op->name == "shape_of") return packed_call("vm.builtin.shape_of", a, sinfo);
  if (op->name == "tensor_to_shape") return packed_call("vm.builtin.tensor_to_shape", a, sinfo);
  if (op->name == "call_py_func" || op->name == "print") return ref(call);
  if (op->name == "to_vdevice") return packed_call("vm.builtin.to_device", a, sinfo);
  if (op->name == "make_closure") return packed_call("vm.builtin.make_closure", a, sinfo);
  if (op->name == "invoke_closure") return packed_call("vm.builtin.invoke_closure", a, sinfo);
  return ref(call);
}

}  // namespace

ModuleRef vm_builtin_lower(const ModuleRef& module, const PassContext&) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    FuncRef f = cast<Function>(func);
    if (!f) continue;
    FuncRef rewritten = transform(f, [](const RCall& call) -> NodeRef { return lowered(call); });
    if (rewritten != f) out = with_function(out, name, rewritten);
  }
  return out;
}

}  // namespace sator::passes
