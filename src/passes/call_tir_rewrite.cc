#include "passes/to_vm.h"
#include "relax/outline.h"
#include "relax/rebind.h"

namespace sator::passes {

using namespace relax;

namespace {

RExpr allocation(const TensorInfo& info) {
  auto shape = shape_of(info);
  if (!shape)
    fail({.what = "the result of call_tir has an unknown shape",
          .needs = "out_sinfo with a shape",
          .hint = "match_cast the arguments so that the shape can be stated"});
  return op_call("builtin.alloc_tensor",
                 {shape_expr(*shape), dtype_value(info.dtype), prim_value(int64_t{0}), string_value("global")},
                 ref(info));
}

/// What is called: args[0] of call_tir and its kin.
bool is_destination_passing(const std::string& op) {
  return op == "call_tir" || op == "call_dps_packed" || op == "call_tir_inplace" || op == "call_tir_with_grad";
}

}  // namespace

ModuleRef call_tir_rewrite(const ModuleRef& module, const PassContext&) {
  return rewrite_bindings(module, [](const Binding& b, Bindings& out) {
    const VarBinding* binding = b.as<VarBinding>();
    const RCall* call = binding ? binding->value.as<RCall>() : nullptr;
    const std::string& op = binding ? op_name(binding->value) : op_name(nullptr);
    if (!call || !is_destination_passing(op)) {
      out.keep(b);
      return;
    }
    std::vector<StructInfo> results = {call->sinfo_args.front()};
    const TupleInfo* several = call->sinfo_args.front().as<TupleInfo>();
    if (several) results = several->items;
    std::vector<RExpr> inputs = call_tir_inputs(*call);

    // In place: result i is the input that `inplace_indices` names (-1: a fresh one).
    std::vector<int64_t> in_place = overwritten_inputs(*call, results.size());
    std::vector<RExpr> args = inputs, outputs;
    for (size_t i = 0; i < results.size(); ++i) {
      if (in_place[i] >= 0) {
        outputs.push_back(inputs.at(static_cast<size_t>(in_place[i])));
        continue;
      }
      const TensorInfo* info = results[i].as<TensorInfo>();
      if (!info)
        fail({.what = text("result ", i, " of ", op, " bound to ", binding->var->name, " is no tensor"),
              .needs = "one tensor of known shape and dtype per result",
              .hint = "state R.Tensor(shape, dtype), or a tuple of those, as the call's out_sinfo"});
      RVarRef alloc = out.emit("alloc", allocation(*info));
      args.push_back(alloc);
      outputs.push_back(alloc);
    }
    if (call->args.size() > 2) {
      std::vector<Expr> extents = *shape_values(call->args[2]);
      for (const Expr& size : extents) args.push_back(prim_value(size));
    }
    // The call keeps the name of what it computes: it tells where in the model it is, up to the profiler.
    std::vector<StructInfo> nothing;  // of an external function only its call tells what it gives
    if (call->args[0].as<ExternFunc>()) nothing = {tuple_info({})};
    out.emit(binding->var->name, with_sinfo(relax::call(call->args[0], args, {}, nothing), tuple_info({})));
    RExpr result = several ? RExpr(relax::tuple(outputs)) : outputs.front();
    out.bind(binding->var, result);
  });
}

}  // namespace sator::passes
