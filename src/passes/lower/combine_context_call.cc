// for i: f(T.tvm_thread_context(c))   =>   ctx_cache_ = c; for i: f(ctx_cache_)
#include <algorithm>

#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// The statement with each context asked for once, before it.
Stmt hoisted(const Stmt& body, const std::vector<VarRef>& params) {
  std::vector<std::pair<Expr, VarRef>> contexts;
  Stmt out = transform(body, [&](const Call& call) -> Expr {
    if (call.op != "tir.tvm_thread_context" || call.args.size() != 1) return ref(call);
    const Expr& context = call.args[0];
    const bool is_known = std::ranges::all_of(
        vars_in(context), [&](const VarRef& v) { return std::ranges::find(params, v) != params.end(); });
    if (!is_known) return ref(call);
    auto at = std::ranges::find_if(contexts, [&](const auto& known) { return equal(known.first, context); });
    if (at != contexts.end()) return at->second;
    contexts.emplace_back(context, make_var("ctx_cache_", call.dtype));
    return contexts.back().second;
  });
  for (size_t i = contexts.size(); i-- > 0;) out = make<LetStmt>(contexts[i].first, contexts[i].second, out);
  return out;
}

}  // namespace

PrimFuncRef combine_context_call(const PrimFuncRef& func, const LowerOptions& options) {
  const TargetConfigRef target = options.target_of(*func);
  if (!target || device_of(target).name != "cpu") return func;
  // The threads of a parallel loop ask for their own.
  Stmt body = transform(func->body, [&](const For& loop) -> Stmt {
    return loop.kind == LoopKind::parallel ? with(loop, &For::body, hoisted(loop.body, func->params)) : ref(loop);
  });
  return with_body(func, hoisted(body, func->params));
}

}  // namespace sator::passes
