#include "passes/to_vm.h"
#include "relax/rebind.h"

namespace sator::passes {

using namespace relax;

namespace {

FuncRef taken_for_pure(const FuncRef& f) {
  if (!f->is_pure || has_attr(f->attrs, "relax.force_pure")) return f;
  Attrs attrs = f->attrs;
  attrs["relax.force_pure"] = bool_imm(true);
  return with(f, &Function::attrs, std::move(attrs));
}

}  // namespace

ModuleRef remove_purity_checking(const ModuleRef& module, const PassContext&) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    FuncRef f = cast<Function>(func);
    if (!f) continue;
    f = taken_for_pure(f);
    f = transform(
        f,
        [](const LocalFunction& inner) -> NodeRef {
          return with(inner, &LocalFunction::function, taken_for_pure(inner.function));
        },
        [](const RCall& call) -> NodeRef {
          const Op* op = call.op.as<Op>();
          if (!op) return ref(call);
          std::vector<RExpr> args(call.args.empty() ? call.args.end() : call.args.begin() + 1, call.args.end());
          if (op->name == "call_inplace_packed")
            return with_sinfo(relax::call(call.args[0], std::move(args), Attrs(), call.sinfo_args), call.sinfo);
          if (op->name != "call_pure_packed" && op->name != "invoke_pure_closure") return ref(call);
          if (op->name == "call_pure_packed")
            return with_sinfo(relax::call(call.args[0], std::move(args), call.attrs, call.sinfo_args), call.sinfo);
          return with_sinfo(relax::call(op_ref("invoke_closure"), call.args, call.attrs, call.sinfo_args), call.sinfo);
        });
    if (f != cast<Function>(func)) out = with_function(std::move(out), name, f);
  }
  return out;
}

}  // namespace sator::passes
