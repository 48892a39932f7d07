// What depends on a function's parameters alone, apart from what needs its inputs.
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

constexpr const char* kPass = "LiftTransformParams";

/// The bindings of a function's own blocks, with whether each is in a dataflow block.
template <class F>
void each_binding(const Function& f, F&& visit) {
  const SeqExpr* seq = f.body.as<SeqExpr>();
  for (const BindingBlockRef& block : seq->blocks)
    for (const Binding& b : block->bindings) visit(b, block->is_dataflow);
}

std::vector<VarRef> definable(const std::vector<RVarRef>& vars) {
  std::vector<VarRef> out;
  for (const RVarRef& v : vars)
    for (const VarRef& s : definable_vars(v->sinfo))
      if (std::ranges::find(out, s) == out.end()) out.push_back(s);
  return out;
}

/// Where a binding's value may be computed: once, from `known` alone.
bool can_lift(const Binding& b, bool is_dataflow, const std::set<NodeRef>& known) {
  RExpr value = bound_value(b);
  if (!is_dataflow || is_op(value, "builtin.stop_lift_params") || value.as<ExternFunc>() || is_impure_call(value))
    return false;
  auto is_known = [&](const auto& v) { return known.contains(v); };
  return std::ranges::all_of(rvars_in(value), is_known) && std::ranges::all_of(vars_in(bound_var(b)->sinfo), is_known);
}

/// One function, taken apart.
struct Parts {
  FuncRef func;
  size_t inputs = 0;
  std::vector<Binding> lifted;
  std::set<NodeRef> from_params;  ///< variables that depend on parameters
  std::set<NodeRef> at_runtime;   ///< variables and sizes that stays use

  std::vector<RVarRef> runtime_inputs() const {
    return {func->params.begin(), func->params.begin() + static_cast<std::ptrdiff_t>(inputs)};
  }
  std::vector<RVarRef> params() const {
    return {func->params.begin() + static_cast<std::ptrdiff_t>(inputs), func->params.end()};
  }
};

/// What the compile-time function hands over: parameters as they are, then computed values.
std::vector<RVarRef> outputs(const Parts& p, const std::vector<RVarRef>& params) {
  std::vector<RVarRef> out;
  for (const RVarRef& v : params)
    if (p.at_runtime.contains(v)) out.push_back(v);
  for (const Binding& b : p.lifted)
    if (RVarRef v = bound_var(b); p.from_params.contains(v) && p.at_runtime.contains(v)) out.push_back(v);
  return out;
}

/// Sizes that the rest needs and that nothing else gives it.
std::vector<VarRef> handed_sizes(const Parts& p, const std::vector<RVarRef>& defining,
                                 const std::vector<RVarRef>& runtime, const std::vector<RVarRef>& handed) {
  const std::vector<VarRef> known = definable(runtime), given = definable(handed);
  std::vector<VarRef> out;
  for (const VarRef& v : definable(defining))
    if (p.at_runtime.contains(v) && std::ranges::find(known, v) == known.end() &&
        std::ranges::find(given, v) == given.end())
      out.push_back(v);
  return out;
}

/// Several functions that share their parameters: variables of each as those of the first.
struct Shared {
  Parts all;  ///< `func` is the first; lifted are bindings that every function has
  std::map<RVarRef, RVarRef> unified;
  std::map<VarRef, VarRef> sizes;
};

Parts parts_of(const FuncRef& f, const Shared* shared) {
  Parts p{.func = f};
  p.inputs = static_cast<size_t>(
      std::clamp<int64_t>(*int_attr(f->attrs, "num_input"), 0, static_cast<int64_t>(f->params.size())));
  std::set<NodeRef> known;
  for (const RVarRef& v : p.params()) {
    known.insert(v);
    p.from_params.insert(v);
    for (const VarRef& s : definable_vars(v->sinfo)) known.insert(s);
  }
  each_binding(*f, [&](const Binding& b, bool is_dataflow) {
    RVarRef var = bound_var(b);
    RExpr value = bound_value(b);
    const std::vector<RVarRef> uses = rvars_in(value);
    if (can_lift(b, is_dataflow, known) && (!shared || shared->unified.contains(var))) {
      p.lifted.push_back(b);
      known.insert(var);
      if (std::ranges::any_of(uses, [&](const RVarRef& v) { return p.from_params.contains(v); }))
        p.from_params.insert(var);
      return;
    }
    p.at_runtime.insert(var);
    p.at_runtime.insert(uses.begin(), uses.end());
    for (const VarRef& s : vars_in(value)) p.at_runtime.insert(s);
  });
  for (const RVarRef& v : rvars_in(f->body.as<SeqExpr>()->body)) p.at_runtime.insert(v);
  return p;
}

/// The function that computes `handed` from the parameters.
FuncRef compile_time_function(const Parts& p, const std::vector<RVarRef>& handed, const std::vector<VarRef>& sizes,
                              BlockBuilder& builder) {
  std::vector<RExpr> items;
  if (!sizes.empty()) items.push_back(shape_expr({sizes.begin(), sizes.end()}));
  items.insert(items.end(), handed.begin(), handed.end());
  RExpr tuple = relax::tuple(std::move(items));
  RVarRef out = make_rvar("gv", tuple->sinfo);
  std::vector<Binding> bindings = p.lifted;
  // Nothing is handed as it is written.
  const bool hands_any = !tuple.as<Tuple>()->items.empty();
  if (hands_any) bindings.push_back(bind_value(out, tuple));
  RExpr body = make<SeqExpr>(std::vector<BindingBlockRef>{make<BindingBlock>(std::move(bindings), true)},
                             hands_any ? RExpr(out) : tuple,
                             out->sinfo);
  FuncRef f = fresh_copy(make<Function>(p.params(), body, out->sinfo, true, Attrs{{"num_input", int_imm(0)}}));
  return without_unused(canonicalize_bindings(f, builder));
}

/// What is left of the function: it takes `handed` in place of its parameters.
FuncRef runtime_function(const Parts& p, const std::vector<RVarRef>& handed, const std::vector<VarRef>& sizes,
                         BlockBuilder& builder) {
  std::vector<RVarRef> params = p.runtime_inputs();
  if (!sizes.empty())
    params.push_back(
        make_rvar("vars_from_compile_time_params", shape_info(std::vector<Expr>(sizes.begin(), sizes.end()))));
  NodeMap replaced_by;
  for (const RVarRef& v : handed) {
    RVarRef param = make_rvar(v->name, v->sinfo);
    replaced_by[v] = param;
    params.push_back(param);
  }
  std::set<RVarRef> gone;
  for (const Binding& b : p.lifted)
    if (p.from_params.contains(bound_var(b))) gone.insert(bound_var(b));
  RExpr body = transform(
      p.func->body,
      [&](const BindingBlock& block) -> NodeRef {
        std::vector<Binding> kept = block.bindings;
        std::erase_if(kept, [&](const Binding& b) { return gone.contains(bound_var(b)); });
        return kept.size() == block.bindings.size() ? ref(block)
                                                    : sator::with(block, &BindingBlock::bindings, std::move(kept));
      },
      [&](const RCall& c) -> NodeRef {
        return is_op(ref(c), "builtin.stop_lift_params") ? NodeRef(c.args[0]) : NodeRef(&c);
      });
  body = replaced(body, replaced_by);
  const SeqExpr* seq = body.as<SeqExpr>();
  body = sator::with(*seq, &SeqExpr::blocks, joined_blocks(seq->blocks));
  FuncRef f = make<Function>(params, body, p.func->ret, bool{p.func->is_pure}, Attrs(p.func->attrs));
  return canonicalize_bindings(fresh_copy(f), builder);
}

/// The functions' bindings that all of them have, over the variables of the first.
/// Errors: parameters that differ; a match_cast.
Shared shared_parts(const std::vector<FuncRef>& functions) {
  Shared out;
  auto inputs = [](const FuncRef& f) { return static_cast<size_t>(*int_attr(f->attrs, "num_input")); };
  const FuncRef& first = functions.front();
  std::set<NodeRef> known;
  NodeMap map;
  for (const FuncRef& f : functions) {
    const size_t count = f->params.size() - inputs(f);
    if (count != first->params.size() - inputs(first))
      fail({.what = text(
                kPass, ": a function has ", count, " parameters, another one ", first->params.size() - inputs(first)),
            .needs = "the same parameters for all functions that share their transformation",
            .hint = "name the functions that share it"});
    for (size_t i = 0; i < count; ++i) {
      const RVarRef &mine = f->params[inputs(f) + i], &its = first->params[inputs(first) + i];
      if (!equal(mine->sinfo, its->sinfo, true))
        fail({.what =
                  text(kPass, ": the parameter ", mine->name, " is ", mine->sinfo, " here and ", its->sinfo, " there"),
              .needs = "the same parameters for all functions that share their transformation",
              .hint = "name the functions that share it"});
      out.unified[mine] = its;
      map[mine] = its;
      known.insert(mine);
      const std::vector<VarRef> a = definable_vars(mine->sinfo), b = definable_vars(its->sinfo);
      for (size_t s = 0; s < a.size() && s < b.size(); ++s) {
        out.sizes[a[s]] = b[s];
        map[a[s]] = b[s];
      }
    }
  }
  struct Common {
    RExpr value;
    Binding first;
    std::vector<RVarRef> variables;
  };
  std::vector<Common> common;
  for (const FuncRef& f : functions) {
    each_binding(*f, [&](const Binding& b, bool is_dataflow) {
      if (b.as<MatchCast>())
        fail({.what = text(kPass, ": a match_cast of ", bound_var(b)->name),
              .needs = "functions without match_cast, to share a transformation",
              .hint = "transform each function on its own"});
      if (!can_lift(b, is_dataflow, known)) return;
      known.insert(bound_var(b));
      RExpr value = replaced(bound_value(b), map);
      auto at = std::ranges::find_if(common, [&](const Common& c) { return equal(c.value, value); });
      if (at == common.end()) at = common.insert(common.end(), Common{value, b, {}});
      at->variables.push_back(bound_var(b));
      map[bound_var(b)] = bound_var(at->first);
    });
  }
  out.all.func = first;
  out.all.inputs = inputs(first);
  for (const Common& c : common) {
    if (c.variables.size() != functions.size()) continue;
    out.all.lifted.push_back(c.first);
    for (const RVarRef& v : c.variables) out.unified[v] = bound_var(c.first);
  }
  return out;
}

/// Parameters as one tuple; each item leaves the tuple when it has been taken out.
FuncRef consuming(const FuncRef& f, BlockBuilder& builder) {
  class Consumer final : public GraphRewriter {
   public:
    Consumer(BlockBuilder& b, RVarRef params) : GraphRewriter(b), params_(std::move(params)) {}

   private:
    RExpr value(const RVarRef& var, const RExpr& value) override {
      const TupleGetItem* item = value.as<TupleGetItem>();
      taken_ = -1;
      if (!item || item->tuple != params_) return value;
      auto [at, fresh] = items_.emplace(item->index, var);
      if (!fresh) return at->second;
      taken_ = item->index;
      return value;
    }
    void after(const RVarRef&) override {
      if (taken_ < 0) return;
      RExpr index = prim_value(int_imm(std::exchange(taken_, -1)));
      builder().emit(relax::call(op_ref("call_pure_packed"),
                                 {extern_func("vm.builtin.tuple_reset_item"), params_, index},
                                 {},
                                 {tuple_info({})}));
    }
    RVarRef params_;
    std::map<int, RVarRef> items_;
    int taken_ = -1;
  };
  return Consumer(builder, f->params.back()).function(*f);
}

}  // namespace

ModuleRef partition_transform_params(const ModuleRef& module, const PassContext& ctx) {
  NodeRef given = option(ctx, "LiftTransformParams.shared_transform");
  const bool listed = given && given.as<Array>();
  const std::vector<std::string> names =
      listed ? names_option(ctx, "LiftTransformParams.shared_transform") : std::vector<std::string>();
  const bool named = !names.empty();
  const bool shares = named || (!listed && flag_option(ctx, "LiftTransformParams.shared_transform", false));
  std::vector<std::pair<std::string, FuncRef>> targets;
  for (const auto& [name, func] : module->functions) {
    FuncRef f = sator::cast<Function>(func);
    const bool wanted = !named || std::ranges::find(names, name) != names.end();
    if (f && wanted && int_attr(f->attrs, "num_input")) targets.emplace_back(name, f);
  }
  for (const std::string& name : names)
    if (std::ranges::none_of(targets, [&](const auto& t) { return t.first == name; }))
      fail({.what = text(kPass, ": the module has no graph function ", name, " with the attribute num_input"),
            .needs = "functions whose parameters are told from their inputs",
            .hint = "correct the name, or add the attribute"});
  if (targets.empty()) return module;

  BlockBuilder builder(module);
  std::optional<Shared> shared;
  if (shares) {
    std::vector<FuncRef> functions;
    for (const auto& [name, f] : targets) functions.push_back(f);
    shared = shared_parts(functions);
  }
  std::vector<Parts> parts;
  for (const auto& [name, f] : targets) parts.push_back(parts_of(f, shared ? &*shared : nullptr));
  auto add_compile_time = [&](const std::string& name, FuncRef f) {
    Attrs attrs = f->attrs;
    attrs["global_symbol"] = string_imm(name);
    ModuleRef one = make<Module>(
        std::map<std::string, Func>{{name, sator::with(f, &Function::attrs, std::move(attrs))}}, Attrs(), Attrs());
    one = bundle_model_params(one, {.config = {{"BundleModelParams.param_tuple_name", string_imm("params")}}});
    f = sator::cast<Function>(one->functions.at(name));
    if (flag_option(ctx, "relax.lift_transform_params.consume_params", false)) f = consuming(f, builder);
    builder.update_function(name, f);
  };
  if (!shared) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const Parts& p = parts[i];
      const std::vector<RVarRef> handed = outputs(p, p.params());
      const std::vector<VarRef> sizes = handed_sizes(p, p.func->params, p.runtime_inputs(), handed);
      builder.update_function(targets[i].first, runtime_function(p, handed, sizes, builder));
      add_compile_time(targets[i].first + "_transform_params", compile_time_function(p, handed, sizes, builder));
    }
    return lambda_lift(builder.module(), ctx);
  }
  // What one of the functions needs, all are handed.
  Parts& all = shared->all;
  auto unite = [&](const std::set<NodeRef>& from, std::set<NodeRef>& to) {
    for (const NodeRef& v : from) {
      auto var = shared->unified.find(sator::cast<RVar>(v));
      auto size = shared->sizes.find(sator::cast<Var>(v));
      to.insert(var != shared->unified.end()  ? NodeRef(var->second)
                : size != shared->sizes.end() ? NodeRef(size->second)
                                              : v);
    }
  };
  for (const Parts& p : parts) {
    unite(p.from_params, all.from_params);
    unite(p.at_runtime, all.at_runtime);
  }
  const std::vector<RVarRef> handed = outputs(all, all.params());
  const std::vector<VarRef> sizes = handed_sizes(all, all.params(), {}, handed);
  for (size_t i = 0; i < parts.size(); ++i) {
    std::map<RVarRef, RVarRef> own;
    for (const RVarRef& v : outputs(parts[i], parts[i].params()))
      if (auto at = shared->unified.find(v); at != shared->unified.end()) own[at->second] = v;
    std::vector<RVarRef> mine;
    for (const RVarRef& v : handed) mine.push_back(own.contains(v) ? own.at(v) : v);
    std::vector<VarRef> my_sizes;
    for (const VarRef& s : sizes) {
      auto at = std::ranges::find_if(shared->sizes, [&](const auto& entry) {
        return entry.second == s && parts[i].at_runtime.contains(entry.first);
      });
      my_sizes.push_back(at == shared->sizes.end() ? s : at->first);
    }
    builder.update_function(targets[i].first, runtime_function(parts[i], mine, my_sizes, builder));
  }
  add_compile_time("transform_params", compile_time_function(all, handed, sizes, builder));
  return lambda_lift(builder.module(), ctx);
}

}  // namespace sator::passes
