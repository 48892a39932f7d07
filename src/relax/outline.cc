#include "relax/outline.h"

#include <algorithm>
#include <map>
#include <set>

#include "relax/bind.h"
#include "relax/builder.h"

namespace sator::relax {

RVarRef bound_var(const Binding& b) {
  return match(b, [](const VarBinding& v) { return v.var; }, [](const MatchCast& m) { return m.var; });
}
RExpr bound_value(const Binding& b) {
  return match(b, [](const VarBinding& v) { return v.value; }, [](const MatchCast& m) { return m.value; });
}

std::vector<RVarRef> rvars_in(const NodeRef& e) {
  std::vector<RVarRef> vars;
  walk(e, [&](const RVar& v) {
    vars.push_back(ref(v));
    return false;
  });
  return vars;
}

std::vector<RExpr> call_tir_inputs(const RCall& call) {
  if (const Tuple* t = call.args[1].as<Tuple>()) return t->items;
  return {call.args[1]};
}

std::vector<int64_t> overwritten_inputs(const RCall& call, size_t results) {
  std::vector<int64_t> out(results, -1);
  auto at = call.attrs.find("inplace_indices");
  const Array* list = at == call.attrs.end() ? nullptr : at->second.as<Array>();
  for (size_t i = 0; list && i < list->items.size() && i < results; ++i)
    out[i] = as_int(cast<ExprNode>(list->items[i])).value_or(-1);
  return out;
}

bool contains_impure_call(const RExpr& e, const std::string& own_name) {
  bool found = false;
  walk(
      e,
      [&](const LocalFunction&) { return false; },
      [&](const RCall& c) {
        const GlobalVar* callee = c.op.as<GlobalVar>();
        const bool is_own = callee && callee->name == own_name;
        found = found || (!is_own && is_impure_call(ref(c)));
        return true;
      });
  return found;
}

std::optional<std::string> called_prim_func(const Binding& binding) {
  const VarBinding* b = binding.as<VarBinding>();
  if (!b || !is_op(b->value, "call_tir")) return {};
  const GlobalVar* gv = b->value.as<RCall>()->args[0].as<GlobalVar>();
  return gv ? std::optional(gv->name) : std::nullopt;
}

BufferRef tensor_parameter(const tir::PrimFunc& func, size_t i) {
  for (const VarRef& p : func.params) {
    BufferRef b = func.buffer_of(p);
    if (b && i-- == 0) return b;
  }
  return nullptr;
}

ModuleRef rewrite_dataflow_blocks(
    const ModuleRef& module,
    const std::function<BindingBlockRef(const BindingBlockRef&, const std::vector<RVarRef>&)>& rewrite,
    Outliner* outliner) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const Function* f = func.as<Function>();
    if (!f || has_attr(f->attrs, "Primitive")) continue;
    if (outliner) outliner->set_module(out);
    // What a later block or the result uses is live after the block: gather from the end.
    FuncRef rewritten = transform(ref(*f), [&](const SeqExpr& seq) -> NodeRef {
      std::vector<BindingBlockRef> blocks = seq.blocks;
      std::vector<NodeRef> later = {seq.body};
      for (size_t i = blocks.size(); i-- > 0;) {
        if (blocks[i]->is_dataflow) {
          std::vector<RVarRef> live;
          for (const NodeRef& n : later) {
            for (const RVarRef& v : rvars_in(n)) live.push_back(v);
          }
          blocks[i] = rewrite(blocks[i], live);
        }
        later.push_back(blocks[i]);
      }
      // A block of which nothing is used may be left empty.
      return blocks == seq.blocks ? ref(seq) : with(seq, &SeqExpr::blocks, joined_blocks(blocks));
    });
    if (outliner) out = outliner->module();
    if (rewritten.get() != f) out = with_function(std::move(out), name, rewritten);
  }
  return out;
}

BindingBlockRef Outliner::outline(const BindingBlockRef& block, const std::vector<Group>& groups,
                                  const std::vector<RVarRef>& live_out) {
  if (groups.empty()) return block;
  const size_t n = block->bindings.size();
  std::vector<int> group_of(n, -1);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (size_t b : groups[g].bindings) group_of[b] = static_cast<int>(g);
  }
  // A variable leaves its group when a binding outside of it, or something after the block, uses it.
  std::map<RVarRef, size_t> binder;
  for (size_t b = 0; b < n; ++b) binder[bound_var(block->bindings[b])] = b;
  std::vector<std::vector<RVarRef>> outputs(groups.size());
  std::vector<bool> in_order(groups.size(), true);
  auto leaves = [&](size_t b) {
    auto& out = outputs[static_cast<size_t>(group_of[b])];
    RVarRef var = bound_var(block->bindings[b]);
    if (std::find(out.begin(), out.end(), var) == out.end()) out.push_back(var);
  };
  for (size_t user = 0; user < n; ++user) {
    for (const RVarRef& v : rvars_in(bound_value(block->bindings[user]))) {
      auto at = binder.find(v);
      if (at == binder.end()) continue;
      int g = group_of[at->second];
      if (g < 0 || g == group_of[user]) continue;
      leaves(at->second);
      if (user < groups[static_cast<size_t>(g)].bindings.back()) in_order[static_cast<size_t>(g)] = false;
    }
  }
  for (const RVarRef& v : live_out) {
    if (auto at = binder.find(v); at != binder.end() && group_of[at->second] >= 0) leaves(at->second);
  }

  auto is_outlined = [&](size_t b) {
    if (group_of[b] < 0) return false;
    const auto g = static_cast<size_t>(group_of[b]);
    return in_order[g] || groups[g].moves_readers;
  };
  // A binding that reads what is not there yet waits for it; in order, none does.
  std::vector<bool> done(n, false);
  auto is_ready = [&](size_t b) {
    const std::vector<size_t> members =
        is_outlined(b) ? groups[static_cast<size_t>(group_of[b])].bindings : std::vector<size_t>{b};
    for (size_t member : members) {
      for (const RVarRef& v : rvars_in(bound_value(block->bindings[member]))) {
        auto at = binder.find(v);
        if (at != binder.end() && !done[at->second] && std::ranges::find(members, at->second) == members.end())
          return false;
      }
    }
    return true;
  };
  std::vector<Binding> bindings;
  auto place = [&](size_t b) {
    if (!is_outlined(b)) {
      bindings.push_back(block->bindings[b]);
      done[b] = true;
      return;
    }
    const auto g = static_cast<size_t>(group_of[b]);
    // What nobody reads has no effect either, and goes.
    if (!outputs[g].empty()) {
      std::vector<Binding> after;
      bindings.push_back(outlined(block, groups[g], outputs[g], after));
      bindings.insert(bindings.end(), after.begin(), after.end());
    }
    for (size_t member : groups[g].bindings) done[member] = true;
  };
  std::vector<size_t> waiting;
  for (size_t b = 0; b < n; ++b) {
    if (is_outlined(b) && b != groups[static_cast<size_t>(group_of[b])].bindings.back()) continue;
    waiting.push_back(b);
    for (size_t i = 0; i < waiting.size();) {
      if (!is_ready(waiting[i])) {
        ++i;
        continue;
      }
      place(waiting[i]);
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;
    }
  }
  if (!waiting.empty()) internal_error("groups of bindings that wait for each other");
  return with(block, &BindingBlock::bindings, std::move(bindings));
}

namespace {

/// Variables (index expressions) that tensors among `params` bind by standing alone as an extent.
std::set<const Var*> sizes_bound_by(const std::vector<RVarRef>& params) {
  std::set<const Var*> bound;
  auto visit = [&](auto& self, const StructInfo& info) -> void {
    if (const TensorInfo* t = info.as<TensorInfo>()) {
      if (auto shape = shape_of(*t)) {
        for (const Expr& e : *shape) {
          if (const Var* v = e.as<Var>()) bound.insert(v);
        }
      }
    } else if (const ShapeInfo* s = info.as<ShapeInfo>()) {
      for (const Expr& e : s->values.value_or(std::vector<Expr>{})) {
        if (const Var* v = e.as<Var>()) bound.insert(v);
      }
    } else if (const TupleInfo* t = info.as<TupleInfo>()) {
      for (const StructInfo& item : t->items) self(self, item);
    } else if (const PrimInfo* p = info.as<PrimInfo>()) {
      if (p->value && p->value.as<Var>()) bound.insert(p->value.as<Var>());
    }
  };
  for (const RVarRef& p : params) visit(visit, p->sinfo);
  return bound;
}

}  // namespace

Binding Outliner::outlined(const BindingBlockRef& block, const Group& group, const std::vector<RVarRef>& outputs,
                           std::vector<Binding>& after) {
  std::vector<Binding> inside;
  std::set<RVarRef> inner;
  for (size_t b : group.bindings) {
    inside.push_back(block->bindings[b]);
    inner.insert(bound_var(block->bindings[b]));
  }
  // Parameters: what comes from outside, then constants, then sizes that no tensor binds.
  std::vector<RVarRef> params;
  std::vector<RExpr> args;
  for (const Binding& b : inside) {
    for (const RVarRef& v : rvars_in(bound_value(b))) {
      if (inner.count(v) || std::find(params.begin(), params.end(), v) != params.end()) continue;
      params.push_back(v);
      args.push_back(v);
    }
  }
  std::map<ConstantRef, RVarRef> constants;
  for (Binding& b : inside) {
    if (group.keeps_constants) break;
    b = transform(b, [&](const Constant& c) -> NodeRef {
      auto [at, fresh] = constants.emplace(ref(c), nullptr);
      if (fresh) {
        at->second = make_rvar(text("param_", params.size()), c.sinfo);
        params.push_back(at->second);
        args.push_back(ref(c));
      }
      return at->second;
    });
  }
  std::set<const Var*> bound = sizes_bound_by(params);
  std::vector<Expr> free_sizes;
  for (const Binding& b : inside) {
    for (const VarRef& v : sizes_in(b)) {
      if (!bound.insert(v.get()).second) continue;
      free_sizes.push_back(v);
    }
  }
  if (!free_sizes.empty()) {
    params.push_back(make_rvar("s", shape_info(free_sizes)));
    args.push_back(shape_expr(free_sizes));
  }

  RExpr result = outputs.size() == 1 ? RExpr(outputs.front()) : tuple({outputs.begin(), outputs.end()});
  // One result leaves by its own variable; several by one more binding.
  RVarRef output = outputs.size() == 1 ? outputs.front() : make_rvar("gv", result->sinfo);
  if (outputs.size() != 1) inside.push_back(make<VarBinding>(result, output));
  BindingBlockRef body = make<BindingBlock>(inside, true);
  RExpr seq = make<SeqExpr>(std::vector<BindingBlockRef>{body}, RExpr(output), output->sinfo);
  Attrs attrs = group.attrs;
  Ref<const Function> func = make<Function>(params, seq, output->sinfo, true, attrs);
  // Its variables are its own: first those of the graph, then the sizes.
  std::map<RVarRef, RVarRef> own;
  auto renew = [&](const RVarRef& v, bool is_dataflow) {
    RVar* copy = new RVar(*v);
    copy->is_dataflow = is_dataflow;
    own.emplace(v, RVarRef(copy));
  };
  for (const RVarRef& p : params) renew(p, false);
  renew(output, false);
  for (const RVarRef& v : inner) renew(v, true);
  func = transform(func, [&](const RVar& v) -> NodeRef {
    auto at = own.find(ref(v));
    return at == own.end() ? NodeRef(&v) : NodeRef(at->second);
  });
  func = transform(func, [&](const Var& v) -> NodeRef { return NodeRef(new Var(v)); });
  // An equal function that is there already serves as well.
  std::string name;
  for (const auto& [known, other] : module_->functions) {
    if (known.starts_with(group.name) && equal(other, func)) name = known;
  }
  if (name.empty()) {
    name = fresh_name(module_, group.name);
    module_ = with_function(std::move(module_), name, func);
  }
  RExpr callee = global_var(name, info_of(*func));
  if (outputs.size() == 1)
    return make<VarBinding>(with_sinfo(call(callee, args), outputs.front()->sinfo), outputs.front());
  RVarRef all = make_dataflow_var("lv", result->sinfo);
  for (size_t i = 0; i < outputs.size(); ++i)
    after.push_back(make<VarBinding>(with_sinfo(tuple_get(all, static_cast<int>(i)), outputs[i]->sinfo), outputs[i]));
  return make<VarBinding>(with_sinfo(call(callee, args), result->sinfo), all);
}

}  // namespace sator::relax
