#include <algorithm>
#include <set>

#include "passes/graph/graph.h"
#include "relax/bind.h"
#include "relax/outline.h"
#include "relax/rewrite.h"
#include "relax/struct_info.h"

namespace sator::passes {

using namespace relax;

namespace {

/// A local function by its variable, and the variables that it is inside of, from the module's function inwards.
struct Lambda {
  RVarRef var;
  Attrs attrs;
  std::vector<std::string> path;
};

void collect(const NodeRef& root, std::vector<std::string>& path, std::vector<Lambda>& out) {
  walk(root, [&](const VarBinding& b) {
    const LocalFunction* local = b.value.as<LocalFunction>();
    if (!local) return true;
    path.push_back(b.var->name);
    out.push_back({b.var, local->function->attrs, path});
    collect(local->function->body, path, out);
    path.pop_back();
    return false;
  });
}

/// The names that the module's lambdas get: their symbol; the first and last of their path; the whole path; or a number
/// behind the short form. A name that two would get is no name.
std::map<RVarRef, std::string> lifted_names(const ModuleRef& module) {
  std::vector<Lambda> lambdas;
  for (const auto& [name, func] : module->functions) {
    std::vector<std::string> path = {name};
    if (func.as<Function>()) collect(func, path, lambdas);
  }
  std::map<RVarRef, std::string> out;
  std::set<std::string> taken;
  for (const auto& [name, func] : module->functions) taken.insert(name);
  auto attempt = [&](auto&& name_of) {
    std::map<std::string, std::vector<RVarRef>> proposed;
    for (const Lambda& l : lambdas) {
      if (out.contains(l.var)) continue;
      std::string name = name_of(l);
      if (!name.empty() && !taken.contains(name)) proposed[name].push_back(l.var);
    }
    for (const auto& [name, variables] : proposed) {
      if (variables.size() != 1) continue;
      out.emplace(variables.front(), name);
      taken.insert(name);
    }
  };
  auto short_name = [](const Lambda& l) { return l.path.front() + "_" + l.path.back(); };
  attempt([](const Lambda& l) { return string_attr(l.attrs, "global_symbol").value_or(""); });
  attempt(short_name);
  attempt([](const Lambda& l) { return l.path.size() > 2 ? join(l.path, "_") : std::string(); });
  for (int i = 0; out.size() < lambdas.size(); ++i) {
    for (const Lambda& l : lambdas) {
      std::string name = text(short_name(l), "_", i);
      if (out.contains(l.var) || taken.contains(name)) continue;
      out.emplace(l.var, name);
      taken.insert(name);
      break;
    }
  }
  return out;
}

class LambdaLifter final : public GraphRewriter {
 public:
  LambdaLifter(BlockBuilder& builder, const std::map<RVarRef, std::string>& names)
      : GraphRewriter(builder), names_(names) {}

 private:
  RExpr local_function(const RVarRef& var, const LocalFunction& local) override {
    const Function& f = *local.function;
    const std::string& name = names_.at(var);
    std::vector<RVarRef> taken, outer, params = f.params;
    std::vector<RExpr> extra;
    LambdaLifter inside(builder(), names_);
    bool recursive = false;
    for (const RVarRef& v : captured_variables(f)) {
      if (v == var) {
        recursive = true;
        continue;
      }
      RVarRef now = cast<RVar>(current(v));
      if (!now) {  // a function of the module now
        inside.replace(v, current(v));
        continue;
      }
      taken.push_back(v);
      outer.push_back(now);
    }
    std::vector<StructInfo> infos;
    for (const RVarRef& now : outer) infos.push_back(now->sinfo);
    infos = with_defined_sizes(std::move(infos), sizes_defined_by(f.params));
    for (size_t i = 0; i < outer.size(); ++i) {
      RVarRef param = make_rvar(taken[i]->name, infos[i]);
      inside.stand_for(taken[i], param, infos[i] == outer[i]->sinfo ? signature(outer[i]) : infos[i]);
      params.push_back(param);
      extra.push_back(param);
    }
    infos.clear();
    for (const RVarRef& p : params) infos.push_back(p->sinfo);
    RExpr callee = global_var(name, func_info(infos, f.ret, f.is_pure));
    FuncRef lifted = make<Function>(params, RExpr(f.body), f.ret, bool{f.is_pure}, Attrs(f.attrs));
    if (recursive && extra.empty())
      inside.replace(var, callee);
    else if (recursive)
      lifted = calling(lifted, var, callee, extra);
    FuncRef done = inside.function(*lifted);
    done = fresh_copy(with(done, &Function::ret, done->body->sinfo));
    builder().update_function(name, done);
    callee = builder().function(name);
    if (outer.empty()) {
      replace(var, callee);
      return nullptr;
    }
    return closure_of(callee, {outer.begin(), outer.end()});
  }

  /// `to` takes the place of `from`, which had this struct info as long as functions were values of their own.
  void stand_for(const RVarRef& from, const RVarRef& to, const StructInfo& signature) {
    replace(from, to);
    if (!equal(to->sinfo, signature)) signatures_[to] = signature;
  }

  void after(const RVarRef& var) override {
    RVarRef now = cast<RVar>(current(var));
    if (now && now != var && !equal(now->sinfo, var->sinfo)) signatures_[now] = var->sinfo;
  }

  /// The struct info that the value had as long as functions were values of their own: closures are objects.
  StructInfo signature(const RExpr& e) const {
    if (const Tuple* t = e.as<Tuple>()) {
      std::vector<StructInfo> items;
      for (const RExpr& item : t->items) items.push_back(signature(item));
      return tuple_info(std::move(items));
    }
    auto at = e.as<RVar>() ? signatures_.find(cast<RVar>(e)) : signatures_.end();
    return at == signatures_.end() ? e->sinfo : at->second;
  }

  static RExpr closure_of(const RExpr& callee, std::vector<RExpr> values) {
    return op_call_of("make_closure", {callee, relax::tuple(std::move(values))}, {});
  }

  static RExpr op_call_of(const char* op, std::vector<RExpr> args, std::vector<StructInfo> sinfo_args) {
    return relax::call(op_ref(op), std::move(args), {}, std::move(sinfo_args));
  }

  /// The function calls itself with what it captured; where `var` is another value, it is bound to a closure of the same.
  static FuncRef calling(const FuncRef& f, const RVarRef& var, const RExpr& callee, const std::vector<RExpr>& extra) {
    FuncRef out = transform(f, [&](const RCall& c) -> NodeRef {
      if (c.op != var) return ref(c);
      std::vector<RExpr> args = c.args;
      args.insert(args.end(), extra.begin(), extra.end());
      return make<RCall>(callee, std::move(args), c.attrs, c.sinfo_args, c.sinfo);
    });
    const std::vector<RVarRef> used = rvars_in(out->body);
    const SeqExpr* body = out->body.as<SeqExpr>();
    if (!body || std::ranges::find(used, var) == used.end()) return out;
    RExpr self = with_sinfo(closure_of(callee, extra), object_info());
    std::vector<BindingBlockRef> blocks = body->blocks;
    blocks.insert(blocks.begin(), make<BindingBlock>(std::vector<Binding>{bind_value(var, self)}, false));
    return with(out, &Function::body, RExpr(with(*body, &SeqExpr::blocks, joined_blocks(blocks))));
  }

  /// A call of what is an object now has no struct info until it is a call of a closure. A function that asks for a
  /// function is given the object as one.
  RExpr reinferred_value(const RExpr& value) override {
    const RCall* call = value.as<RCall>();
    if (!call || call->op.as<Op>()) return GraphRewriter::reinferred_value(value);
    const FuncInfo* callee = signature(call->op).as<FuncInfo>();
    std::vector<RExpr> args = call->args;
    for (size_t i = 0; callee && callee->params && i < std::min(args.size(), callee->params->size()); ++i) {
      if (base_check((*callee->params)[i], args[i]->sinfo, builder().arith()) != BaseCheck::not_known) continue;
      if (StructInfo was = signature(args[i]); !equal(was, args[i]->sinfo))
        args[i] = builder().emit_match_cast(args[i], was);
    }
    RCallRef out = args == call->args ? ref(*call) : with(*call, &RCall::args, std::move(args));
    return call->op->sinfo.as<FuncInfo>() ? GraphRewriter::reinferred_value(out) : RExpr(out);
  }

  RExpr value(const RVarRef& var, const RExpr& value) override {
    const RCall* call = value.as<RCall>();
    const RVar* callee = call ? call->op.as<RVar>() : nullptr;
    if (!callee) return value;
    // A function that gives a closure gives an object; a call of one says what it returns.
    RExpr from = builder().bound_value(ref(*callee));
    if (!signatures_.contains(ref(*callee)) && !(from && from.as<RCall>())) return value;
    const FuncInfo* info = signature(call->op).as<FuncInfo>();
    return op_call_of(info && info->pure ? "invoke_pure_closure" : "invoke_closure",
                      {call->op, relax::tuple(call->args)},
                      {var->sinfo});
  }

  const std::map<RVarRef, std::string>& names_;
  /// The struct info that variables had before functions they hold became objects.
  std::map<RVarRef, StructInfo> signatures_;
};

}  // namespace

ModuleRef lambda_lift(const ModuleRef& module, const PassContext&) {
  const std::map<RVarRef, std::string> names = lifted_names(module);
  if (names.empty()) return module;
  return rewrite_functions(
      module, [&](const FuncRef& f, BlockBuilder& builder) { return LambdaLifter(builder, names).function(*f); });
}

}  // namespace sator::passes
