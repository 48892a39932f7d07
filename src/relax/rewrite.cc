#include "relax/rewrite.h"

#include "relax/outline.h"
#include "relax/rebind.h"
#include "relax/struct_info.h"

namespace sator::relax {

FuncRef GraphRewriter::function(const Function& f) {
  builder_.begin_scope(f.params);
  RExpr body = sequence(f.body);
  builder_.end_scope();
  if (body == f.body) return ref(f);
  FuncRef out = with(f, &Function::body, body);
  // A body that tells less than what was declared leaves the declaration; one that tells something else replaces it.
  if (out->ret && body->sinfo && !is_base_of(body->sinfo, out->ret, builder_.arith()))
    out = with(out, &Function::ret, body->sinfo);
  return out;
}

RExpr GraphRewriter::sequence(const RExpr& e) {
  const SeqExpr* seq = e.as<SeqExpr>();
  if (!seq) return current(e);
  std::vector<BindingBlockRef> blocks;
  for (const BindingBlockRef& block : seq->blocks) {
    builder_.begin_block(block->is_dataflow);
    begin_block(*block);
    for (const Binding& b : block->bindings) {
      binding(b);
      after(bound_var(b));
    }
    end_block(*block);
    BindingBlockRef out = builder_.end_block();
    blocks.push_back(out->bindings == block->bindings ? block : out);
  }
  builder_.begin_block(false);
  RExpr body = result(current(seq->body));
  if (BindingBlockRef last = builder_.end_block(); !last->bindings.empty()) blocks.push_back(last);
  if (blocks == seq->blocks && body == seq->body) return e;
  return builder_.normalize(make<SeqExpr>(joined_blocks(blocks), renewed(builder_, body), StructInfo()));
}

RExpr GraphRewriter::inner_scope(const RExpr& branch) {
  begin_inner(/*is_function=*/false);
  builder_.begin_scope();
  RExpr out = sequence(branch);
  builder_.end_scope();
  end_inner();
  return out;
}

RExpr GraphRewriter::reinferred_value(const RExpr& value) { return renewed(builder_, value); }

RExpr GraphRewriter::local_function(const RVarRef&, const LocalFunction& local) {
  begin_inner(/*is_function=*/true);
  FuncRef f = function(*local.function);
  end_inner();
  return f == local.function ? RExpr(&local) : make<LocalFunction>(f, info_of(*f));
}

void GraphRewriter::binding(const Binding& b) {
  if (drops(bound_var(b))) return;
  if (const MatchCast* m = b.as<MatchCast>()) {
    if (!is_leaf(m->value) && !m->value.as<Tuple>()) {  // a call gets a variable, so that it is rewritten as others are
      std::string name = builder_.fresh_name(builder_.in_dataflow() ? "lv" : "gv");
      const StructInfo& sinfo = m->value->sinfo;
      RVarRef held =
          builder_.in_dataflow() ? make_dataflow_var(std::move(name), sinfo) : make_rvar(std::move(name), sinfo);
      binding(bind_value(held, m->value));
      binding(bind_match_cast(m->var, held, m->sinfo));
      return;
    }
    RExpr from = current(m->value);
    RVarRef var = variable(m->var);
    if (var != m->var) replace(m->var, var);
    Binding out = match_cast(var, from, m->sinfo);
    const MatchCast* same = out.as<MatchCast>();
    const bool kept = same && same->var == m->var && same->value == m->value && same->sinfo == m->sinfo;
    builder_.emit_binding(kept ? b : out);
    return;
  }
  const VarBinding& v = *b.as<VarBinding>();
  RExpr out = v.value;
  if (const If* branch = out.as<If>()) {
    RExpr condition = current(branch->condition);
    RExpr then_branch = inner_scope(branch->true_branch), else_branch = inner_scope(branch->false_branch);
    if (condition != branch->condition || then_branch != branch->true_branch || else_branch != branch->false_branch)
      out = builder_.normalize(make<If>(condition, then_branch, else_branch, StructInfo()));
  } else if (const LocalFunction* inner = out.as<LocalFunction>()) {
    out = local_function(v.var, *inner);
    if (!out) return;
  } else {
    out = current(out);
    if (out != v.value) out = reinferred_value(out);
  }
  RExpr kept = value(v.var, out);
  // What is seen outside of the block stays, as a name of what is not.
  if (auto at = replaced_.find(v.var); !kept && !v.var->is_dataflow && at != replaced_.end() &&
                                       std::ranges::any_of(rvars_in(at->second), &RVar::is_dataflow)) {
    kept = cast<RelaxExprNode>(at->second);
    replaced_.erase(at);
  }
  if (kept) bind(v, kept);
}

void GraphRewriter::bind(const VarBinding& b, const RExpr& value) {
  RVarRef var = variable(b.var);
  RExpr normal = value == b.value ? value : builder_.normalize(value);
  if (normal != b.value && normal->sinfo && !equal(normal->sinfo, var->sinfo))
    var = with(var, &RVar::sinfo, normal->sinfo);
  if (var != b.var) {
    if (RVarRef given = variable(b.var); given != b.var && given != var) replace(given, var);
    if (!replaced_.contains(b.var)) replace(b.var, var);
  }
  builder_.emit_binding(normal == b.value && var == b.var ? ref(b) : bind_value(var, normal));
}

ModuleRef rewrite_functions(const ModuleRef& module,
                            const std::function<FuncRef(const FuncRef& func, BlockBuilder& builder)>& rewrite) {
  BlockBuilder builder(module);
  for (const auto& [name, func] : module->functions) {
    FuncRef f = cast<Function>(func);
    if (!f) continue;
    if (FuncRef out = rewrite(f, builder); out != f) builder.update_function(name, out);
  }
  return builder.module();
}

}  // namespace sator::relax
