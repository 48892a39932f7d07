#include "relax/rebind.h"

namespace sator::relax {

RVarRef Bindings::emit(const std::string& name, const RExpr& value) {
  RVarRef var = make_rvar(name, value->sinfo);
  bind(var, value);
  return var;
}

FuncRef rewrite_bindings(const FuncRef& func, sator::FunctionRef<void(const Binding&, Bindings&)> rewrite) {
  return transform(func, [&](const BindingBlock& block) -> NodeRef {
    Bindings out;
    for (const Binding& b : block.bindings) rewrite(b, out);
    if (out.list() == block.bindings) return ref(block);
    return with(block, &BindingBlock::bindings, std::move(out.list()));
  });
}

ModuleRef rewrite_bindings(const ModuleRef& module, sator::FunctionRef<void(const Binding&, Bindings&)> rewrite) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    FuncRef f = cast<Function>(func);
    if (!f) continue;
    FuncRef rewritten = rewrite_bindings(f, rewrite);
    if (rewritten != f) out = with_function(std::move(out), name, rewritten);
  }
  return out;
}

RExpr renewed(BlockBuilder& builder, const RExpr& value) {
  if (!value.as<RCall>() && !value.as<Tuple>() && !value.as<TupleGetItem>()) return value;
  return builder.normalize(with_sinfo(value, nullptr));
}

RExpr packed_call(const std::string& name, std::vector<RExpr> args, StructInfo sinfo) {
  return with_sinfo(call(extern_func(name), std::move(args), {}, {sinfo}), sinfo);
}

}  // namespace sator::relax
