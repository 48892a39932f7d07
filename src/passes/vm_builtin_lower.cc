#include "passes/to_vm.h"
#include "relax/outline.h"
#include "relax/rebind.h"

namespace sator::passes {

using namespace relax;

namespace {

/// The index of a virtual device on the machine: of the `number`-th of its kind that the module lists, or of one that no
/// list describes the number itself.
int64_t device_index(const ModuleRef& module, const std::string& kind, int64_t number) {
  auto at = module->global_infos.find("vdevice");
  const Array* listed = at == module->global_infos.end() ? nullptr : at->second.as<Array>();
  if (!listed) return number;
  int64_t seen = 0;
  for (const NodeRef& item : listed->items) {
    const VDevice* device = item.as<VDevice>();
    const TargetConfig* target = device ? device->target.as<TargetConfig>() : nullptr;
    if (target && string_attr(target->config, "kind") == kind && seen++ == number) return device->index;
  }
  return number;
}

/// R.to_vdevice(x, "cuda:1") as the runtime takes it: the tensor, DLPack's number of the kind of device, the index.
RExpr to_device(const RCall& call, const ModuleRef& module) {
  const std::string name = string_attr(call.attrs, "dst_vdevice").value_or("");
  const size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  int64_t dlpack_kind = kind == "llvm" || kind == "cpu" ? 1 : kind == "cuda" ? 2 : 0;
  if (dlpack_kind == 0)
    fail(
        {.what = text("R.to_vdevice names the device ", string_literal(name), ", whose kind the runtime does not know"),
         .needs = "a device of kind llvm, cpu or cuda",
         .hint = "to_vdevice(x, \"llvm\") keeps the tensor in the memory of the CPU"});
  const int64_t number = colon == name.npos ? 0 : std::stoll(name.substr(colon + 1));
  return packed_call("vm.builtin.to_device",
                     {call.args[0], prim_value(dlpack_kind), prim_value(device_index(module, kind, number))},
                     call.sinfo);
}

/// The function, then the items of the tuple that it is called with.
std::vector<RExpr> opened(const RCall& call) {
  const relax::Tuple* tuple = call.args[1].as<relax::Tuple>();
  if (!tuple)
    fail({.what = text("R.", call.op.as<Op>()->name, " is given a tuple by name"),
          .needs = "a tuple that is written out: (x, y)",
          .hint = "name its items there, as t[0], t[1]"});
  std::vector<RExpr> out = {call.args[0]};
  out.insert(out.end(), tuple->items.begin(), tuple->items.end());
  return out;
}

RExpr lowered(const RCall& call, const ModuleRef& module) {
  const Op* op = call.op.as<Op>();
  if (!op) return ref(call);
  StructInfo sinfo = call.sinfo;
  const auto& a = call.args;
  // A storage holds tensors of any dtype: its size counts bytes.
  if (op->name == "memory.alloc_storage")
    return op_call("vm.alloc_storage", {a[0], a[1], dtype_value(u8), a[2]}, sinfo);
  if (op->name == "memory.alloc_tensor") return op_call("vm.alloc_tensor", {a[0], a[1], a[2], a[3]}, sinfo);
  if (op->name == "memory.kill_tensor" || op->name == "memory.kill_storage")
    return op_call("vm.kill_object", {a[0]}, sinfo);
  if (op->name == "reshape") return packed_call("vm.builtin.reshape", a, sinfo);
  if (op->name == "memory.view") return packed_call("vm.builtin.view", a, sinfo);
  if (op->name == "shape_of") return packed_call("vm.builtin.shape_of", a, sinfo);
  constexpr std::string_view kInspect = "inspect.tensor_";
  if (op->name.starts_with(kInspect)) {
    std::vector<RExpr> args = {a[0], string_value(op->name.substr(kInspect.size()))};
    if (a.size() > 1) args.push_back(a[1]);
    return packed_call("vm.builtin.tensor_property", args, sinfo);
  }
  if (op->name == "tensor_to_shape" || op->name == "shape_to_tensor" || op->name == "print" || op->name == "assert_op")
    return packed_call("vm.builtin." + op->name, a, sinfo);
  if (op->name == "to_vdevice") return to_device(call, module);
  if (op->name == "make_closure") return packed_call("vm.builtin.make_closure", opened(call), sinfo);
  if (op->name == "invoke_closure") return packed_call("vm.builtin.invoke_closure", opened(call), sinfo);
  return ref(call);
}

}  // namespace

ModuleRef vm_builtin_lower(const ModuleRef& module, const PassContext&) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    FuncRef f = cast<Function>(func);
    if (!f) continue;
    FuncRef rewritten = transform(f, [&](const RCall& call) -> NodeRef { return lowered(call, module); });
    if (rewritten != f) out = with_function(std::move(out), name, rewritten);
  }
  return out;
}

}  // namespace sator::passes
