#include "relax/bind.h"

#include <algorithm>
#include <set>

#include "relax/outline.h"
#include "relax/rebind.h"
#include "relax/rewrite.h"
#include "relax/struct_info.h"

namespace sator::relax {

namespace {

void add_once(std::vector<VarRef>& list, const VarRef& v) {
  if (std::ranges::find(list, v) == list.end()) list.push_back(v);
}

/// The size expressions that stand in a graph, each as a whole.
template <class F>
void walk_sizes(const NodeRef& root, F&& f) {
  walk(
      root,
      [&](const ShapeExpr& n) { std::ranges::for_each(n.values, f); },
      [&](const PrimValue& n) { f(n.value); },
      [&](const PrimInfo& n) {
        if (n.value) f(n.value);
      },
      [&](const ShapeInfo& n) {
        if (n.values) std::ranges::for_each(*n.values, f);
      });
}

NodeMap replacements(const NodeRef& root, const NodeMap& values, const VarMap& sizes) {
  NodeMap map = substitutions(sizes);
  map.insert(values.begin(), values.end());
  if (sizes.empty()) return map;
  arith::Analyzer arith;
  walk_sizes(root, [&](const Expr& e) {
    if (e.as<Var>() || map.contains(e)) return;
    Expr replaced = substitute(e, sizes);
    if (replaced != e) map[e] = arith.simplify(replaced);
  });
  return map;
}

class Reinference final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 private:
  RExpr value(const RVarRef& var, const RExpr& value) override {
    RExpr again = renewed(builder(), value);
    // What is known of a replaced value, its variable does not know yet.
    if (again->sinfo && var->sinfo && !equal(again->sinfo, var->sinfo) &&
        is_base_of(var->sinfo, again->sinfo, builder().arith()))
      return with_sinfo(again, again->sinfo);
    return again != value && again->sinfo && value->sinfo && equal(again->sinfo, value->sinfo) ? value : again;
  }
};

/// What the values name, resolved: each key once.
template <class Key>
std::vector<std::pair<Key, NodeRef>> resolved(const NamedValues& values, const std::vector<Key>& known,
                                              const char* kind) {
  std::vector<std::string> names;
  for (const Key& k : known) names.push_back(k->name);
  std::vector<std::pair<Key, NodeRef>> out;
  for (const auto& [key, value] : values) {
    Key found = nullptr;
    if (const StringImm* name = key.as<StringImm>()) {
      const auto count = std::ranges::count(names, name->value);
      if (count > 1)
        fail({.what = text("the function has ", count, " ", kind, "s named ", name->value),
              .needs = "a name that says which one is meant",
              .hint = "give the variable itself"});
      if (count == 1)
        found = known[static_cast<size_t>(std::ranges::find(names, name->value) - names.begin())];
      else
        fail({.what = text("the function has no ", kind, " named ", name->value),
              .needs = names.empty() ? text("a function with ", kind, "s") : text("one of ", join(names, ", ")),
              .hint = "correct the name"});
    } else {
      auto at = std::ranges::find_if(known, [&, k = key](const Key& one) { return NodeRef(one) == k; });
      if (at == known.end())
        fail({.what = text("a variable that is no ", kind, " of the function is bound"),
              .needs = names.empty() ? text("a function with ", kind, "s") : text("one of ", join(names, ", ")),
              .hint = "take the variable from the function itself"});
      found = *at;
    }
    if (std::ranges::any_of(out, [&](const auto& one) { return one.first == found; }))
      fail({.what = text(found->name, " is bound twice"), .needs = "one value for each", .hint = "leave one out"});
    out.emplace_back(found, value);
  }
  return out;
}

/// Sizes of `param` that `given` tells, by position.
void match_sizes(const StructInfo& param, const StructInfo& given, VarMap& out) {
  auto extents = [&](const std::vector<Expr>& a, const std::vector<Expr>& b) {
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
      if (VarRef v = cast<Var>(a[i]); v && !out.contains(v)) out.emplace(v, b[i]);
    }
  };
  if (const TensorInfo *p = param.as<TensorInfo>(), *g = given.as<TensorInfo>(); p && g) {
    auto a = shape_of(*p), b = shape_of(*g);
    if (a && b) extents(*a, *b);
  } else if (const ShapeInfo* p = param.as<ShapeInfo>(), *g = given.as<ShapeInfo>(); p && g) {
    if (p->values && g->values) extents(*p->values, *g->values);
  } else if (const PrimInfo* p = param.as<PrimInfo>(), *g = given.as<PrimInfo>(); p && g) {
    if (p->value && g->value) extents({p->value}, {g->value});
  } else if (const TupleInfo* p = param.as<TupleInfo>(), *g = given.as<TupleInfo>(); p && g) {
    for (size_t i = 0; i < p->items.size() && i < g->items.size(); ++i) match_sizes(p->items[i], g->items[i], out);
  }
}

}  // namespace

std::vector<VarRef> sizes_defined_by(const std::vector<RVarRef>& params) {
  std::vector<VarRef> out;
  for (const RVarRef& p : params)
    for (const VarRef& v : definable_vars(p->sinfo)) add_once(out, v);
  return out;
}

std::vector<RVarRef> captured_variables(const Function& f) {
  std::set<RVarRef> bound(f.params.begin(), f.params.end());
  walk(
      f.body,
      [&](const VarBinding& b) { bound.insert(b.var); },
      [&](const MatchCast& b) { bound.insert(b.var); },
      [&](const Function& inner) { bound.insert(inner.params.begin(), inner.params.end()); });
  std::vector<RVarRef> out = rvars_in(f.body);
  std::erase_if(out, [&](const RVarRef& v) { return bound.contains(v); });
  return out;
}

std::vector<StructInfo> with_defined_sizes(std::vector<StructInfo> infos, std::vector<VarRef> defined) {
  for (const StructInfo& info : infos)
    for (const VarRef& v : definable_vars(info)) add_once(defined, v);
  auto is_defined = [&](const VarRef& v) { return std::ranges::find(defined, v) != defined.end(); };
  std::vector<std::pair<Expr, VarRef>> own;
  for (StructInfo& info : infos) {
    if (std::ranges::all_of(vars_of(info), is_defined)) continue;
    NodeMap map;
    walk_sizes(info, [&](const Expr& e) {
      if (std::ranges::all_of(vars_in(e), is_defined)) return;
      auto at = std::ranges::find_if(own, [&](const auto& known) { return equal(known.first, e); });
      if (at == own.end()) at = own.insert(at, {e, make_var("size", e->dtype)});
      map[e] = at->second;
    });
    info = replaced(info, map);
  }
  return infos;
}

std::vector<VarRef> defined_sizes(const Function& f) {
  std::vector<VarRef> out = sizes_defined_by(f.params);
  walk(f.body, [&](const MatchCast& m) {
    for (const VarRef& v : definable_vars(m.sinfo)) add_once(out, v);
  });
  return out;
}

std::vector<VarRef> sizes_in(const NodeRef& root) {
  std::vector<VarRef> out;
  walk(
      root,
      [](const GlobalVar&) { return false; },
      [](const FuncInfo&) { return false; },
      [](const LocalFunction&) { return false; },
      [&](const Var& v) { add_once(out, ref(v)); });
  return out;
}

RExpr with_values(const RExpr& e, const NodeMap& values, const VarMap& sizes) {
  return replaced(e, replacements(e, values, sizes));
}
FuncRef with_values(const FuncRef& f, const NodeMap& values, const VarMap& sizes) {
  return replaced(f, replacements(f, values, sizes));
}

FuncRef reinferred(const FuncRef& f, BlockBuilder& builder) { return Reinference(builder).function(*f); }

FuncRef fresh_copy(const FuncRef& f) {
  NodeMap own;
  auto renew = [&](const RVarRef& v) { own.emplace(v, RVarRef(new RVar(*v))); };
  std::set<VarRef> sizes;
  for (const VarRef& v : defined_sizes(*f)) sizes.insert(v);
  walk(
      f,
      [&](const VarBinding& b) { renew(b.var); },
      [&](const MatchCast& b) { renew(b.var); },
      [&](const Function& inner) {
        for (const RVarRef& p : inner.params) renew(p);
        for (const VarRef& v : defined_sizes(inner)) sizes.insert(v);
      });
  return transform(
      f,
      [&](const RVar& v) -> NodeRef {
        // The variable may have been rebuilt already, with sizes of its own.
        return own.contains(ref(v)) ? NodeRef(new RVar(v)) : NodeRef(&v);
      },
      [&](const Var& v) -> NodeRef { return sizes.contains(ref(v)) ? NodeRef(new Var(v)) : NodeRef(&v); });
}

VarMap sizes_of_arguments(const std::vector<RVarRef>& params, const std::vector<RExpr>& args) {
  VarMap out;
  for (size_t i = 0; i < params.size() && i < args.size(); ++i)
    if (args[i]->sinfo) match_sizes(params[i]->sinfo, args[i]->sinfo, out);
  return out;
}

VarMap sizes_of_arguments(const std::vector<RVarRef>& params, const std::vector<RExpr>& args,
                          const std::vector<VarRef>& wanted,
                          FunctionRef<void(const RExpr& value, const StructInfo& sinfo)> cast) {
  VarMap out = sizes_of_arguments(params, args);
  if (std::ranges::all_of(wanted, [&](const VarRef& v) { return out.contains(v); })) return out;
  std::vector<RExpr> values;
  std::vector<StructInfo> infos;
  for (size_t i = 0; i < params.size() && i < args.size(); ++i) {
    const std::vector<VarRef> defined = definable_vars(params[i]->sinfo);
    if (defined.empty()) continue;
    values.push_back(args[i]);
    infos.push_back(params[i]->sinfo);
    for (const VarRef& v : defined)
      if (!out.contains(v)) out.emplace(v, VarRef(new Var(*v)));
  }
  const bool is_one = values.size() == 1;
  const StructInfo info = is_one ? infos[0] : tuple_info(std::move(infos));
  cast(is_one ? values[0] : tuple(std::move(values)), substitute(info, out));
  return out;
}

FuncRef bind_params(const FuncRef& f, const NamedValues& values, BlockBuilder& builder) {
  NodeMap bound;
  std::vector<RVarRef> params;
  std::vector<RExpr> args;
  for (const auto& [param, node] : resolved<RVarRef>(values, f->params, "parameter")) {
    RExpr value = cast<RelaxExprNode>(node);
    if (!value)
      fail({.what = text("the value of ", param->name, " is no expression of a graph"),
            .needs = "a tensor, shape or scalar",
            .hint = "give a constant"});
    if (base_check(param->sinfo, value->sinfo, builder.arith()) == BaseCheck::disjoint)
      fail({.what = text("the parameter ", param->name, " is ", param->sinfo, ", its value ", value->sinfo),
            .needs = "a value of the parameter's dtype and shape",
            .hint = "convert the value"});
    bound[param] = value;
    params.push_back(param);
    args.push_back(value);
  }
  if (bound.empty()) return f;
  std::vector<RVarRef> rest = f->params;
  std::erase_if(rest, [&](const RVarRef& p) { return bound.contains(p); });
  FuncRef out = with_values(with(f, &Function::params, rest), bound, sizes_of_arguments(params, args));
  return reinferred(out, builder);
}

FuncRef bind_sizes(const FuncRef& f, const NamedValues& values, BlockBuilder& builder) {
  VarMap sizes;
  // The function's sizes and those of the values; others are of functions that it calls, or of a match_cast.
  std::vector<VarRef> needed = defined_sizes(*f);
  for (const auto& [size, node] : resolved<VarRef>(values, defined_sizes(*f), "symbolic size")) {
    Expr value = cast<ExprNode>(node);
    if (!value) fail({.what = text(size->name, " is bound to no number"), .needs = "an integer", .hint = "give one"});
    sizes.emplace(size, cast_to(size->dtype, value));
    for (const VarRef& v : vars_in(value)) needed.push_back(v);
  }
  if (sizes.empty()) return f;
  FuncRef out = with_values(f, {}, sizes);
  const std::vector<VarRef> defined = defined_sizes(*out);
  for (const VarRef& v : vars_in(out)) {
    if (std::ranges::count(defined, v) > 0 || std::ranges::count(needed, v) == 0) continue;
    fail({.what = text("the symbolic size ", v->name, " has no definition"),
          .needs = "sizes that a parameter has as an extent of its own",
          .hint = "bind the other sizes to expressions that define it"});
  }
  return reinferred(out, builder);
}

namespace {

class Inliner final : public GraphRewriter {
 public:
  Inliner(BlockBuilder& builder, const std::map<std::string, FuncRef>& callees)
      : GraphRewriter(builder), callees_(callees) {}

  FuncRef run(const FuncRef& f) { return function(*f); }

 private:
  RExpr value(const RVarRef&, const RExpr& value) override {
    const RCall* call = value.as<RCall>();
    const GlobalVar* callee = call ? call->op.as<GlobalVar>() : nullptr;
    auto at = callee ? callees_.find(callee->name) : callees_.end();
    if (at == callees_.end()) return value;
    if (std::ranges::find(active_, callee->name) != active_.end())
      fail({.what = text(callee->name, " calls itself (", join(active_, ", "), ")"),
            .needs = "functions that do not call themselves",
            .hint = "leave the function out of those that are inlined"});
    FuncRef own = fresh_copy(at->second);
    NodeMap values;
    for (size_t i = 0; i < own->params.size(); ++i) values[own->params[i]] = call->args[i];
    std::vector<VarRef> wanted = sizes_defined_by(own->params);
    const std::vector<VarRef> used = sizes_in(own->body);
    std::erase_if(wanted, [&](const VarRef& v) { return std::ranges::find(used, v) == used.end(); });
    const VarMap sizes =
        sizes_of_arguments(own->params, call->args, wanted, [&](const RExpr& given, const StructInfo& sinfo) {
          builder().emit_match_cast(given, sinfo);
        });
    RExpr body = with_values(own->body, values, sizes);
    active_.push_back(callee->name);
    // The body may call others: it is rewritten as a function without parameters.
    FuncRef inner = function(*make<Function>(std::vector<RVarRef>{}, body, own->ret, own->is_pure, Attrs()));
    active_.pop_back();
    return again(inner->body);
  }
  /// The body with its struct info inferred again from its arguments.
  RExpr again(const RExpr& body) {
    FuncRef f = make<Function>(std::vector<RVarRef>{}, body, body->sinfo, true, Attrs());
    return reinferred(f, builder())->body;
  }

  const std::map<std::string, FuncRef>& callees_;
  std::vector<std::string> active_;
};

}  // namespace

/// A body that is no dataflow block divides the block around it: variables of the first part that the second one uses are
/// visible outside now.
static FuncRef exposed_where_needed(const FuncRef& f) {
  std::map<RVarRef, const BindingBlock*> home;
  std::set<RVarRef> exposed;
  walk(f, [&](const BindingBlock& block) {
    for (const Binding& b : block.bindings) {
      for (const RVarRef& v : rvars_in(bound_value(b))) {
        auto at = home.find(v);
        if (v->is_dataflow && at != home.end() && at->second != &block) exposed.insert(v);
      }
      home[bound_var(b)] = &block;
    }
  });
  NodeMap map;
  for (const RVarRef& v : exposed) map[v] = with(v, &RVar::is_dataflow, false);
  return exposed.empty() ? f : replaced(f, map);
}

FuncRef inline_calls(const FuncRef& f, const std::map<std::string, FuncRef>& callees, BlockBuilder& builder) {
  return exposed_where_needed(Inliner(builder, callees).run(f));
}

}  // namespace sator::relax
