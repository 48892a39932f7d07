// Sorts go to the runtime: as a tensor program each element is compared with each other one.
#include "passes/dispatch_sort_scan.h"

#include "relax/builder.h"
#include "relax/ops/table.h"

namespace sator::passes {

using namespace relax;

namespace {

/// The call of a builtin in the place of a sort; null where it stays.
RExpr dispatched(const RCall& call) {
  const Op* op = call.op.as<Op>();
  const bool sorts = op && (op->name == "sort" || op->name == "argsort"), selects = op && op->name == "topk";
  if (!sorts && !selects) return nullptr;
  const TensorInfo* x = call.args.at(0)->sinfo.as<TensorInfo>();
  if (!x || x->ndim < 0 || x->dtype.is_void() || x->dtype.is_bool()) return nullptr;
  const int64_t axis = int_attr(call.attrs, "axis").value_or(-1);
  const int64_t descending = int_attr(call.attrs, selects ? "largest" : "descending").value_or(selects);
  std::vector<StructInfo> results = {call.sinfo};
  if (const TupleInfo* both = call.sinfo.as<TupleInfo>()) results = both->items;
  for (const StructInfo& r : results)
    if (!r.as<TensorInfo>() || !shape_of(*r.as<TensorInfo>())) return nullptr;
  // One result of topk is the first elements of a sort.
  const bool values = op->name == "sort" || string_attr(call.attrs, "ret_type") == "values";
  const char* builtin = results.size() == 2 ? "vm.builtin.topk" : values ? "vm.builtin.sort" : "vm.builtin.argsort";
  const DType indices = results.back().as<TensorInfo>()->dtype;
  if ((results.size() == 2 || !values) && indices != i32 && indices != i64) return nullptr;
  const std::vector<RExpr> args = {call.args[0], prim_value(axis < 0 ? axis + x->ndim : axis), prim_value(descending)};
  return with_sinfo(
      relax::call(op_ref("call_dps_packed"), {extern_func(builtin), relax::tuple(args)}, {}, {call.sinfo}), call.sinfo);
}

}  // namespace

ModuleRef dispatch_sort_scan(const ModuleRef& module, const PassContext& ctx) {
  if (ctx.target && !ctx.target->is_cpu()) return module;
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const FuncRef f = cast<Function>(func);
    if (!f) continue;
    const FuncRef after = transform(f, [](const RCall& call) -> NodeRef {
      const RExpr builtin = dispatched(call);
      return builtin ? NodeRef(builtin) : NodeRef(ref(call));
    });
    if (after != f) out = with_function(out, name, after);
  }
  return out;
}

}  // namespace sator::passes
