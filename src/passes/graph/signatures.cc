// Parameters and results of graph functions, and what their callers give and take.
#include <algorithm>
#include <set>

#include "passes/dead_code_elimination.h"
#include "passes/graph/graph.h"
#include "relax/outline.h"
#include "relax/rewrite.h"

namespace sator::passes {

using namespace relax;

namespace {

/// A private function with other parameters.
struct NewParameters {
  FuncRef func;
  /// The arguments of a call, from those that it has.
  std::function<std::vector<RExpr>(BlockBuilder&, const std::vector<RExpr>&)> args;
};

/// The calls of functions whose parameters changed.
class Callers final : public GraphRewriter {
 public:
  Callers(BlockBuilder& builder, const std::map<std::string, NewParameters>& changed)
      : GraphRewriter(builder), changed_(changed) {}

 private:
  RExpr value(const RVarRef&, const RExpr& value) override {
    const RCall* call = value.as<RCall>();
    const GlobalVar* callee = call ? call->op.as<GlobalVar>() : nullptr;
    auto at = callee ? changed_.find(callee->name) : changed_.end();
    if (at == changed_.end()) return value;
    return relax::call(
        global_var(callee->name, info_of(*at->second.func)), at->second.args(builder(), call->args), call->attrs);
  }

  const std::map<std::string, NewParameters>& changed_;
};

/// Private functions that are only ever called: nobody holds one as a value.
std::set<std::string> only_called(const ModuleRef& module) {
  std::set<std::string> out, values;
  for (const auto& [name, func] : module->functions)
    if (func.as<Function>() && !has_attr(func->attrs, "global_symbol")) out.insert(name);
  for (const auto& [name, func] : module->functions) {
    walk(func, [&](const RCall& c) {
      auto note = [&](const RExpr& e) { walk(e, [&](const GlobalVar& v) { values.insert(v.name); }); };
      for (const RExpr& a : c.args) note(a);
      if (!c.op.as<GlobalVar>()) note(c.op);
      return false;
    });
  }
  for (const std::string& name : values) out.erase(name);
  return out;
}

ModuleRef with_new_parameters(
    const ModuleRef& module,
    const std::function<std::optional<NewParameters>(const Function&, BlockBuilder&)>& change) {
  std::map<std::string, NewParameters> changed;
  BlockBuilder builder(module);
  for (const std::string& name : only_called(module)) {
    if (auto out = change(*module->functions.at(name).as<Function>(), builder)) changed.emplace(name, std::move(*out));
  }
  if (changed.empty()) return module;
  ModuleRef out = module;
  for (const auto& [name, its] : changed) out = with_function(std::move(out), name, its.func);
  return rewrite_functions(out, [&](const FuncRef& f, BlockBuilder& b) {
    FuncRef g = Callers(b, changed).function(*f);
    return g == f ? f : without_unused(g);
  });
}

/// The leaves of a tuple parameter as parameters, and the tuple made of them.
RExpr leaves_of(const std::string& name, const StructInfo& info, std::vector<RVarRef>& leaves) {
  const TupleInfo* t = info.as<TupleInfo>();
  if (!t) {
    leaves.push_back(make_rvar(name, info));
    return leaves.back();
  }
  std::vector<RExpr> items;
  for (size_t i = 0; i < t->items.size(); ++i) items.push_back(leaves_of(text(name, "_", i), t->items[i], leaves));
  return relax::tuple(std::move(items));
}

void leaf_values(BlockBuilder& builder, RExpr arg, std::vector<RExpr>& out) {
  const TupleInfo* t = arg->sinfo.as<TupleInfo>();
  if (!t) {
    out.push_back(arg);
    return;
  }
  RExpr known = arg;
  while (RExpr value = builder.bound_value(known)) known = value;
  for (size_t i = 0; i < t->items.size(); ++i) {
    const Tuple* made = known.as<Tuple>();
    leaf_values(builder, made ? made->items[i] : RExpr(builder.emit(tuple_get(arg, static_cast<int>(i)))), out);
  }
}

/// Each item of a tuple where it is used: tuples of parameters become the parameters.
class Items final : public GraphRewriter {
 public:
  Items(BlockBuilder& builder, NodeMap tuples) : GraphRewriter(builder) { replacements() = std::move(tuples); }

 private:
  RExpr value(const RVarRef& var, const RExpr& value) override {
    const TupleGetItem* item = value.as<TupleGetItem>();
    RExpr from = item ? item->tuple : nullptr;
    while (from) {
      RExpr bound = builder().bound_value(from);
      if (!bound) break;
      from = bound;
    }
    const Tuple* t = from ? from.as<Tuple>() : nullptr;
    if (!t) return value;
    replace(var, t->items[static_cast<size_t>(item->index)]);
    return nullptr;
  }
};

}  // namespace

ModuleRef expand_tuple_arguments(const ModuleRef& module, const PassContext&) {
  return with_new_parameters(module, [](const Function& f, BlockBuilder& builder) -> std::optional<NewParameters> {
    std::vector<RVarRef> params;
    NodeMap tuples;
    for (const RVarRef& p : f.params) {
      RExpr made = leaves_of(p->name, p->sinfo, params);
      if (!made.as<RVar>())
        tuples[p] = made;
      else
        params.back() = p;
    }
    if (tuples.empty()) return {};
    FuncRef out = Items(builder, std::move(tuples)).function(*with(f, &Function::params, std::move(params)));
    return NewParameters{without_unused(out), [](BlockBuilder& b, const std::vector<RExpr>& args) {
                           std::vector<RExpr> leaves;
                           for (const RExpr& a : args) leaf_values(b, a, leaves);
                           return leaves;
                         }};
  });
}

ModuleRef remove_unused_parameters(const ModuleRef& module, const PassContext&) {
  return with_new_parameters(module, [](const Function& f, BlockBuilder&) -> std::optional<NewParameters> {
    const std::vector<RVarRef> used = rvars_in(f.body);
    std::vector<RVarRef> params;
    std::vector<bool> kept;
    for (const RVarRef& p : f.params) {
      kept.push_back(std::ranges::find(used, p) != used.end());
      if (kept.back()) params.push_back(p);
    }
    if (params.size() == f.params.size()) return {};
    // Sizes that only a parameter that goes defines are parameters themselves.
    std::vector<VarRef> undefined;
    FuncRef rest = with(f, &Function::params, params);
    const std::vector<VarRef> defined = defined_sizes(*rest);
    std::vector<NodeRef> parts = {f.body, f.ret};
    for (const RVarRef& p : params) parts.emplace_back(p->sinfo);
    for (const NodeRef& part : parts) {
      for (const VarRef& v : sizes_in(part)) {
        if (std::ranges::find(defined, v) != defined.end() || std::ranges::find(undefined, v) != undefined.end())
          continue;
        undefined.push_back(v);
        params.push_back(make_rvar("param_" + v->name, prim_info(Expr(v))));
      }
    }
    return NewParameters{with(f, &Function::params, params),
                         [kept, undefined, old = f.params](BlockBuilder& b, const std::vector<RExpr>& args) {
                           std::vector<RExpr> out;
                           for (size_t i = 0; i < args.size(); ++i)
                             if (kept[i]) out.push_back(args[i]);
                           VarMap sizes = sizes_of_arguments(
                               old, args, undefined, [&](const RExpr& value, const StructInfo& sinfo) {
                                 b.emit_match_cast(value, sinfo);
                               });
                           for (const VarRef& v : undefined) out.push_back(prim_value(sizes.at(v)));
                           return out;
                         }};
  });
}

namespace {

/// Which items of a function's result its callers use; nothing where one uses the tuple as a whole.
std::optional<std::set<int>> used_items(const ModuleRef& module, const std::string& name) {
  std::set<int> used;
  bool whole = false;
  for (const auto& [other, func] : module->functions) {
    if (!func.as<Function>()) continue;
    std::set<RVarRef> results;
    walk(func, [&](const VarBinding& b) {
      const RCall* c = b.value.as<RCall>();
      const GlobalVar* callee = c ? c->op.as<GlobalVar>() : nullptr;
      if (callee && callee->name == name) results.insert(b.var);
    });
    if (results.empty()) continue;
    walk(
        func,
        [&](const TupleGetItem& item) {
          if (!results.contains(sator::cast<RVar>(item.tuple))) return true;
          used.insert(item.index);
          return false;
        },
        [&](const VarBinding& b) {
          // The variable's own definition is no use.
          if (!results.contains(b.var)) return true;
          walk(b.value, [&](const RVar& v) { whole = whole || results.contains(ref(v)); });
          return false;
        });
    walk(func, [&](const SeqExpr& s) { whole = whole || results.contains(sator::cast<RVar>(s.body)); });
    walk(func, [&](const RCall& c) {
      for (const RExpr& a : c.args)
        for (const RVarRef& v : rvars_in(a)) whole = whole || results.contains(v);
    });
    walk(func, [&](const Tuple& t) {
      for (const RExpr& i : t.items) whole = whole || results.contains(sator::cast<RVar>(i));
    });
  }
  return whole ? std::nullopt : std::optional(used);
}

/// Callers read the items of a shorter tuple, or the one value in its place.
class ItemReaders final : public GraphRewriter {
 public:
  ItemReaders(BlockBuilder& builder, const std::map<std::string, std::vector<int>>& kept)
      : GraphRewriter(builder), kept_(kept) {}

 private:
  /// Items are counted as before until they are read.
  RExpr reinferred_value(const RExpr& value) override {
    return value.as<TupleGetItem>() ? value : GraphRewriter::reinferred_value(value);
  }
  RExpr value(const RVarRef& var, const RExpr& value) override {
    if (const RCall* call = value.as<RCall>()) {
      const GlobalVar* callee = call->op.as<GlobalVar>();
      auto at = callee ? kept_.find(callee->name) : kept_.end();
      if (at == kept_.end()) return value;
      results_[var] = &at->second;
      return relax::call(builder().function(callee->name), call->args, call->attrs);
    }
    const TupleGetItem* item = value.as<TupleGetItem>();
    RVarRef from = item ? sator::cast<RVar>(item->tuple) : nullptr;
    for (const auto& [result, kept] : results_) {
      if (!from || current(result) != from) continue;
      if (kept->size() == 1) {
        replace(var, from);
        return nullptr;
      }
      const auto index = std::ranges::find(*kept, item->index) - kept->begin();
      return tuple_get(from, static_cast<int>(index));
    }
    return value;
  }

  const std::map<std::string, std::vector<int>>& kept_;
  std::map<RVarRef, const std::vector<int>*> results_;
};

}  // namespace

ModuleRef remove_unused_outputs(const ModuleRef& module, const PassContext&) {
  std::map<std::string, std::vector<int>> kept;
  ModuleRef out = module;
  for (const std::string& name : only_called(module)) {
    const Function& f = *module->functions.at(name).as<Function>();
    const SeqExpr* seq = f.body.as<SeqExpr>();
    RExpr result = seq->body;
    for (const BindingBlockRef& block : seq->blocks)
      for (const Binding& b : block->bindings)
        if (RExpr(bound_var(b)) == result) result = bound_value(b);
    const Tuple* t = result.as<Tuple>();
    auto used = t ? used_items(module, name) : std::nullopt;
    if (!used || used->empty() || used->size() == t->items.size()) continue;
    std::vector<RExpr> items;
    for (int i : *used) items.push_back(t->items[static_cast<size_t>(i)]);
    RExpr body = items.size() == 1 ? items[0] : relax::tuple(items);
    FuncRef lean =
        with(with(f, &Function::body, RExpr(with(with(*seq, &SeqExpr::body, body), &SeqExpr::sinfo, body->sinfo))),
             &Function::ret,
             body->sinfo);
    out = with_function(std::move(out), name, without_unused(lean));
    kept[name] = {used->begin(), used->end()};
  }
  if (kept.empty()) return module;
  return rewrite_functions(
      out, [&](const FuncRef& f, BlockBuilder& builder) { return ItemReaders(builder, kept).function(*f); });
}

namespace {

/// Parameters that are items of one tuple, each taken out of it before its first use in a block.
class Bundled final : public GraphRewriter {
 public:
  Bundled(BlockBuilder& builder, const std::vector<RVarRef>& params, RVarRef bundle)
      : GraphRewriter(builder), params_(params), bundle_(std::move(bundle)) {}

 private:
  void begin_block(const BindingBlock&) override {
    for (const RVarRef& p : params_) replacements().erase(p);
  }
  RExpr value(const RVarRef&, const RExpr& value) override {
    NodeMap items;
    for (const RVarRef& v : rvars_in(value)) {
      auto at = std::ranges::find(params_, v);
      if (at == params_.end()) continue;
      RExpr item = builder().emit(tuple_get(bundle_, static_cast<int>(at - params_.begin())), v->name);
      items[v] = item;
      replace(v, item);
    }
    return items.empty() ? value : RExpr(replaced(value, items));
  }

  const std::vector<RVarRef>& params_;
  RVarRef bundle_;
};

}  // namespace

ModuleRef bundle_model_params(const ModuleRef& module, const PassContext& ctx) {
  const std::string name = text_option(ctx, "BundleModelParams.param_tuple_name").value_or("model_params");
  return rewrite_functions(module, [&](const FuncRef& f, BlockBuilder& builder) {
    const auto inputs = int_attr(f->attrs, "num_input");
    if (!inputs) return f;
    const auto first = f->params.begin() + std::clamp<int64_t>(*inputs, 0, static_cast<int64_t>(f->params.size()));
    std::vector<RVarRef> params(f->params.begin(), first), bundled(first, f->params.end());
    std::vector<StructInfo> infos;
    for (const RVarRef& p : bundled) infos.push_back(p->sinfo);
    params.push_back(make_rvar(name, tuple_info(infos)));
    RVarRef bundle = params.back();
    return Bundled(builder, bundled, bundle).function(*with(f, &Function::params, std::move(params)));
  });
}

}  // namespace sator::passes
