// Parameters that are fetched where they are first used, and results that are handed over as soon as they are there.
#include <algorithm>
#include <set>

#include "passes/dead_code_elimination.h"
#include "passes/graph/graph.h"
#include "relax/outline.h"
#include "relax/rebind.h"
#include "relax/rewrite.h"
#include "relax/struct_info.h"

namespace sator::passes {

using namespace relax;

namespace {

size_t runtime_inputs(const Function& f, size_t without) {
  auto inputs = int_attr(f.attrs, "num_input");
  return inputs ? static_cast<size_t>(std::clamp<int64_t>(*inputs, 0, static_cast<int64_t>(f.params.size()))) : without;
}

Attrs without_force_pure(Attrs attrs) {
  attrs.erase("relax.force_pure");
  return attrs;
}

/// Fetches each parameter before its first use: `fetch(index, name)` is the call that gives it.
class Fetcher final : public GraphRewriter {
 public:
  using Fetch = std::function<RExpr(int64_t index, const std::string& name)>;
  Fetcher(BlockBuilder& builder, const Function& f, std::vector<RVarRef> params, Fetch fetch)
      : GraphRewriter(builder), params_(std::move(params)), fetch_(std::move(fetch)) {
    if (params_.size() == 1 && params_[0]->sinfo.as<TupleInfo>()) tuple_ = params_[0];
    walk(
        f.body,
        [&](const If& branch) { first_.merge(variables_in(ref(branch))); },
        [&](const LocalFunction& inner) { first_.merge(variables_in(ref(inner))); });
  }

 private:
  /// What branches and local functions read is there before any of them.
  void begin_block(const BindingBlock&) override {
    for (const RVarRef& v : std::exchange(first_, {})) need(v);
  }
  RExpr value(const RVarRef&, const RExpr& value) override {
    const TupleGetItem* item = value.as<TupleGetItem>();
    if (tuple_ && item && item->tuple == tuple_) {
      RVarRef object = builder().emit(fetch_(item->index, ""));
      return builder().emit_match_cast(object, value->sinfo);
    }
    need(value);
    return value;
  }
  Binding match_cast(const RVarRef& var, const RExpr& from, const StructInfo& sinfo) override {
    need(from);
    return bind_match_cast(var, from, sinfo);
  }
  RExpr result(const RExpr& body) override {
    need(body);
    return body;
  }

  void need(const RExpr& e) {
    if (tuple_) return;
    for (const RVarRef& v : rvars_in(e)) {
      auto at = std::ranges::find(params_, v);
      if (at == params_.end() || !fetched_.insert(v).second) continue;
      RVarRef object = builder().emit(fetch_(at - params_.begin(), v->name));
      builder().emit_binding(bind_match_cast(v, object, v->sinfo));
    }
  }

  static std::set<RVarRef> variables_in(const RExpr& e) {
    const std::vector<RVarRef> all = rvars_in(e);
    return {all.begin(), all.end()};
  }

  std::vector<RVarRef> params_;
  RVarRef tuple_;
  Fetch fetch_;
  std::set<RVarRef> first_;  ///< that are fetched at the beginning, where they are parameters
  std::set<RVarRef> fetched_;
};

/// The items of a function's result: variables with the places that they have in it, and other expressions with theirs.
struct Outputs {
  std::map<RVarRef, std::vector<int64_t>> variables;
  std::vector<std::pair<RExpr, int64_t>> others;

  explicit Outputs(const RExpr& result) {
    std::vector<RExpr> items = {result};
    if (const Tuple* t = result.as<Tuple>()) items = t->items;
    for (size_t i = 0; i < items.size(); ++i) {
      if (RVarRef v = sator::cast<RVar>(items[i]))
        variables[v].push_back(static_cast<int64_t>(i));
      else
        others.emplace_back(items[i], static_cast<int64_t>(i));
    }
  }
};

/// Hands over each result after the binding that makes it, or after its dataflow block, which has no calls with effects:
/// `hand_over(index, value)` is the call that does.
class Setter final : public GraphRewriter {
 public:
  using HandOver = std::function<RExpr(int64_t index, const RExpr& value)>;
  Setter(BlockBuilder& builder, Outputs outputs, HandOver hand_over)
      : GraphRewriter(builder), outputs_(std::move(outputs)), hand_over_(std::move(hand_over)) {}

  std::vector<RExpr> of_parameters(const Function& f) const {
    std::vector<RExpr> out;
    for (const RVarRef& p : f.params)
      if (auto at = outputs_.variables.find(p); at != outputs_.variables.end())
        for (int64_t i : at->second) out.push_back(hand_over_(i, p));
    return out;
  }

 private:
  RExpr value(const RVarRef&, const RExpr& value) override { return value; }
  void begin_inner(bool) override { ++depth_; }
  void end_inner() override { --depth_; }
  void after(const RVarRef& var) override {
    auto at = outputs_.variables.find(var);
    if (at == outputs_.variables.end() || depth_ > 0) return;
    made_.push_back(var);
    if (!in_dataflow_) hand_over();
  }
  void begin_block(const BindingBlock& block) override {
    if (depth_ > 0) return;
    in_dataflow_ = block.is_dataflow;
    if (!in_dataflow_) hand_over();
  }
  void hand_over() {
    for (const RVarRef& var : made_)
      for (int64_t i : outputs_.variables.at(var)) builder().emit(hand_over_(i, current(var)), "_void");
    made_.clear();
  }
  RExpr result(const RExpr& body) override {
    if (depth_ > 0) return body;
    hand_over();
    for (const auto& [e, i] : outputs_.others) builder().emit(hand_over_(i, current(e)), "_void");
    return relax::tuple({});
  }

  Outputs outputs_;
  HandOver hand_over_;
  std::vector<RVarRef> made_;  ///< what is to be handed over
  bool in_dataflow_ = false;
  int depth_ = 0;
};

FuncRef with_lazy_inputs(const FuncRef& f, BlockBuilder& builder) {
  const size_t inputs = runtime_inputs(*f, 0);
  std::vector<RVarRef> kept(f->params.begin(), f->params.begin() + static_cast<std::ptrdiff_t>(inputs));
  std::vector<RVarRef> fetched(f->params.begin() + static_cast<std::ptrdiff_t>(inputs), f->params.end());
  RVarRef fget = make_rvar("fget_param", func_info({prim_info(i64), object_info()}, object_info()));
  kept.push_back(fget);
  // What the result says of sizes that only a fetched parameter has is no longer true outside.
  VarMap sizes;
  for (const RVarRef& p : kept)
    for (const VarRef& v : definable_vars(p->sinfo)) sizes.emplace(v, v);
  FuncRef out = with(f, &Function::params, kept);
  out = with(out, &Function::ret, erase_to_well_defined(f->ret, sizes, {}, builder.arith()));
  Attrs attrs = f->attrs;
  attrs["num_input"] = int_imm(static_cast<int64_t>(inputs) + 1);
  out = with(out, &Function::attrs, attrs);
  Fetcher fetcher(builder, *f, fetched, [&](int64_t index, const std::string& name) {
    return relax::call(fget, {prim_value(index), string_value(name)});
  });
  out = fetcher.function(*out);
  return without_unused(out);
}

FuncRef with_lazy_outputs(const FuncRef& f, BlockBuilder& builder) {
  const size_t inputs = runtime_inputs(*f, f->params.size());
  RVarRef fset = make_rvar("fset_output", func_info({prim_info(i64), object_info()}, tuple_info({}), false));
  Setter setter(builder, Outputs(f->body.as<SeqExpr>()->body), [&](int64_t index, const RExpr& value) {
    return with_sinfo(relax::call(fset, {prim_value(index), value}), tuple_info({}));
  });
  FuncRef out = setter.function(*f);
  std::vector<Binding> first;
  for (const RExpr& call : setter.of_parameters(*f))
    first.push_back(bind_value(make_rvar("_void", tuple_info({})), call));
  const SeqExpr* seq = out->body.as<SeqExpr>();
  std::vector<BindingBlockRef> blocks = seq->blocks;
  blocks.insert(blocks.begin(), make<BindingBlock>(std::move(first), false));
  RExpr body = make<SeqExpr>(joined_blocks(blocks), seq->body, tuple_info({}));
  std::vector<RVarRef> params = f->params;
  params.insert(params.begin() + static_cast<std::ptrdiff_t>(inputs), fset);
  Attrs attrs = f->attrs;
  if (attrs.contains("num_input")) attrs["num_input"] = int_imm(static_cast<int64_t>(inputs) + 1);
  return make<Function>(std::move(params), body, tuple_info({}), false, std::move(attrs));
}

ModuleRef for_public_functions(const ModuleRef& module, FuncRef (*rewrite)(const FuncRef&, BlockBuilder&)) {
  return rewrite_functions(module, [&](const FuncRef& f, BlockBuilder& builder) {
    return has_attr(f->attrs, "global_symbol") ? rewrite(f, builder) : f;
  });
}

}  // namespace

ModuleRef lazy_get_input(const ModuleRef& module, const PassContext&) {
  return for_public_functions(module, with_lazy_inputs);
}
ModuleRef lazy_set_output(const ModuleRef& module, const PassContext&) {
  return for_public_functions(module, with_lazy_outputs);
}

namespace {

/// What LazyTransformParams is told.
struct Hooks {
  std::string get = "get_item";
  std::optional<std::string> set = "set_item";
  std::vector<RExpr> extra_get, extra_set;
};

std::vector<RExpr> values_option(const PassContext& ctx, const std::string& name) {
  std::vector<RExpr> out;
  NodeRef given = option(ctx, name);
  if (!given) return out;
  const Array* list = given.as<Array>();
  for (size_t i = 0; list && i < list->items.size(); ++i) {
    RExpr e = sator::cast<RelaxExprNode>(list->items[i]);
    if (!e) break;
    out.push_back(e);
  }
  if (!list || out.size() != list->items.size())
    refuse_option(ctx, name, "a list of values of graphs", "as in [R.prim_value(0)]");
  return out;
}

RExpr hook_call(const std::string& name, std::vector<RExpr> args, std::vector<RExpr> more) {
  args.insert(args.end(), more.begin(), more.end());
  return packed_call(name, std::move(args), object_info());
}

/// After each binding: results whose last use it is are handed over, parameters whose last use it is are freed.
class Releaser final : public GraphRewriter {
 public:
  Releaser(BlockBuilder& builder, const Hooks& hooks, RVarRef tuple, const Outputs& outputs,
           std::map<RVarRef, std::vector<RVarRef>> last_used, std::set<RVarRef> params)
      : GraphRewriter(builder),
        hooks_(hooks),
        tuple_(std::move(tuple)),
        outputs_(outputs),
        last_used_(std::move(last_used)),
        params_(std::move(params)) {}

 private:
  RExpr value(const RVarRef& var, const RExpr& value) override { return var == tuple_ ? relax::tuple({}) : value; }
  void after(const RVarRef& var) override {
    auto at = last_used_.find(var);
    if (at == last_used_.end()) return;
    for (const RVarRef& v : at->second) {
      if (auto out = outputs_.variables.find(v); out != outputs_.variables.end())
        for (int64_t i : out->second)
          builder().emit(hook_call(*hooks_.set, hooks_.extra_set, {prim_value(i), current(v)}), "_");
      if (params_.contains(v)) builder().emit(op_call("vm.kill_object", {current(v)}, tuple_info({})), "_");
    }
  }

  const Hooks& hooks_;
  RVarRef tuple_;
  const Outputs& outputs_;
  std::map<RVarRef, std::vector<RVarRef>> last_used_;
  std::set<RVarRef> params_;
};

/// Per binding, the variables that no later one uses, in the order of their use in it; its own variable last.
std::map<RVarRef, std::vector<RVarRef>> last_uses(const Function& f, const RVarRef& tuple) {
  std::map<RVarRef, std::vector<RVarRef>> out;
  std::set<RVarRef> seen;
  const SeqExpr* seq = f.body.as<SeqExpr>();
  for (size_t k = seq->blocks.size(); k-- > 0;) {
    const std::vector<Binding>& bindings = seq->blocks[k]->bindings;
    for (size_t i = bindings.size(); i-- > 0;) {
      RVarRef var = bound_var(bindings[i]);
      if (var == tuple) continue;
      for (const RVarRef& v : rvars_in(bound_value(bindings[i])))
        if (seen.insert(v).second) out[var].push_back(v);
      if (seen.insert(var).second) out[var].push_back(var);
    }
  }
  return out;
}

FuncRef lazy_function(const FuncRef& f, const Hooks& hooks, BlockBuilder& builder) {
  for (const BindingBlockRef& block : f->body.as<SeqExpr>()->blocks) {
    if (block->is_dataflow)
      fail({.what = "LazyTransformParams puts calls with effects between the bindings of a dataflow block",
            .needs = "a function without dataflow blocks",
            .hint = "run ToNonDataflow before",
            .at = {{block, "a dataflow block"}}});
  }
  const size_t inputs = runtime_inputs(*f, 0);
  std::vector<RVarRef> kept(f->params.begin(), f->params.begin() + static_cast<std::ptrdiff_t>(inputs));
  std::vector<RVarRef> fetched(f->params.begin() + static_cast<std::ptrdiff_t>(inputs), f->params.end());
  // The result is a tuple that a variable holds, or stands at the end.
  RVarRef tuple = sator::cast<RVar>(f->body.as<SeqExpr>()->body);
  RExpr result = f->body.as<SeqExpr>()->body;
  std::set<RVarRef> items;
  for (const BindingBlockRef& block : f->body.as<SeqExpr>()->blocks) {
    for (const Binding& b : block->bindings) {
      if (bound_var(b) == tuple && bound_value(b).as<Tuple>()) result = bound_value(b);
      const TupleGetItem* item = bound_value(b).as<TupleGetItem>();
      if (item && fetched.size() == 1 && item->tuple == fetched[0]) items.insert(bound_var(b));
    }
  }
  FuncRef out = with(f, &Function::params, kept);
  if (hooks.set) {
    Outputs outputs(result);
    Releaser releaser(builder, hooks, tuple, outputs, last_uses(*f, tuple), items);
    out = releaser.function(*out);
    if (!outputs.others.empty()) {
      const SeqExpr* seq = out->body.as<SeqExpr>();
      std::vector<Binding> last;
      for (const auto& [e, i] : outputs.others)
        last.push_back(
            bind_value(make_rvar("_", object_info()), hook_call(*hooks.set, hooks.extra_set, {prim_value(i), e})));
      std::vector<BindingBlockRef> blocks = seq->blocks;
      blocks.push_back(make<BindingBlock>(std::move(last), false));
      out = with(out, &Function::body, RExpr(with(*seq, &SeqExpr::blocks, joined_blocks(blocks))));
    }
  }
  Fetcher fetcher(builder, *f, fetched, [&](int64_t index, const std::string&) {
    return hook_call(hooks.get, hooks.extra_get, {prim_value(index)});
  });
  out = fetcher.function(*out);
  for (const std::vector<RExpr>* extra : {&hooks.extra_get, &hooks.extra_set})
    for (const RExpr& e : *extra)
      if (RVarRef v = sator::cast<RVar>(e)) kept.push_back(v);
  // Sizes that parameters of their own gave stay parameters.
  auto keep_sizes = [&](auto& self, const StructInfo& info) -> void {
    if (const TupleInfo* t = info.as<TupleInfo>()) {
      for (const StructInfo& item : t->items) self(self, item);
    } else if (info.as<ShapeInfo>() || info.as<PrimInfo>()) {
      kept.push_back(make_rvar("symbolic_var_holder", info));
    }
  };
  if (!defined_sizes(*f).empty())
    for (const RVarRef& p : fetched) keep_sizes(keep_sizes, p->sinfo);
  StructInfo ret = out->body->sinfo;
  return make<Function>(kept, out->body, ret, false, without_force_pure(f->attrs));
}

}  // namespace

ModuleRef lazy_transform_params(const ModuleRef& module, const PassContext& ctx) {
  Hooks hooks;
  if (auto name = text_option(ctx, "LazyTransformParams.fget_item")) hooks.get = *name;
  if (auto name = text_option(ctx, "LazyTransformParams.fset_item")) hooks.set = *name;
  if (hooks.set == "") hooks.set = std::nullopt;
  hooks.extra_get = values_option(ctx, "LazyTransformParams.extra_get_item_params");
  hooks.extra_set = values_option(ctx, "LazyTransformParams.extra_set_item_params");
  BlockBuilder builder(module);
  for (const auto& [name, func] : module->functions) {
    FuncRef f = sator::cast<Function>(func);
    if (f && name.ends_with("transform_params")) builder.update_function(name, lazy_function(f, hooks, builder));
  }
  return builder.module();
}

}  // namespace sator::passes
