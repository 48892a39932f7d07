#include <algorithm>
#include <set>

#include "passes/graph/graph.h"
#include "relax/bind.h"
#include "relax/outline.h"
#include "relax/rewrite.h"

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

/// Variables that a function uses and does not bind.
std::vector<RVarRef> captured(const Function& f) {
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

class LambdaLifter final : public GraphRewriter {
 public:
  LambdaLifter(BlockBuilder& builder, const std::map<RVarRef, std::string>& names)
      : GraphRewriter(builder), names_(names) {}

 private:
  RExpr local_function(const RVarRef& var, const LocalFunction& local) override {
    const Function& f = *local.function;
    const std::string& name = names_.at(var);
    std::vector<RVarRef> outer;
    bool recursive = false;
    for (const RVarRef& v : captured(f)) {
      if (v == var)
        recursive = true;
      else
        outer.push_back(cast<RVar>(current(v)));
    }
    std::erase_if(outer, [](const RVarRef& v) { return !v; });
    std::vector<RVarRef> params = f.params;
    NodeMap own;
    for (const RVarRef& v : captured(f)) {
      if (v == var || !current(v).as<RVar>()) continue;
      RVarRef param = make_rvar(v->name, current(v)->sinfo);
      params.push_back(param);
      own[v] = param;
    }
    std::vector<StructInfo> infos;
    for (const RVarRef& p : params) infos.push_back(p->sinfo);
    RExpr callee = global_var(name, func_info(infos, f.ret, f.is_pure));
    FuncRef lifted = make<Function>(params, RExpr(replaced(f.body, own)), f.ret, bool{f.is_pure}, Attrs(f.attrs));
    // Inside, the function calls itself with what it captured.
    if (recursive) {
      std::vector<RExpr> extra;
      for (size_t i = f.params.size(); i < params.size(); ++i) extra.push_back(params[i]);
      lifted = calling(lifted, var, callee, extra);
    }
    FuncRef done = LambdaLifter(builder(), names_).function(*lifted);
    done = fresh_copy(with(done, &Function::ret, done->body->sinfo));
    builder().update_function(name, done);
    callee = builder().function(name);
    if (outer.empty()) {
      replace(var, callee);
      return nullptr;
    }
    RExpr closure = op_call_of("make_closure", {callee, relax::tuple({outer.begin(), outer.end()})}, {});
    closures_.insert(var);
    return closure;
  }

  static RExpr op_call_of(const char* op, std::vector<RExpr> args, std::vector<StructInfo> sinfo_args) {
    return relax::call(op_ref(op), std::move(args), {}, std::move(sinfo_args));
  }

  /// Calls of `var` become calls of `callee` with more arguments.
  static FuncRef calling(const FuncRef& f, const RVarRef& var, const RExpr& callee, const std::vector<RExpr>& extra) {
    return transform(f, [&](const RCall& c) -> NodeRef {
      if (c.op != var) return ref(c);
      std::vector<RExpr> args = c.args;
      args.insert(args.end(), extra.begin(), extra.end());
      return make<RCall>(callee, std::move(args), c.attrs, c.sinfo_args, c.sinfo);
    });
  }

  /// A call of what is an object now has no struct info until it is a call of a closure.
  RExpr reinferred_value(const RExpr& value) override {
    const RCall* call = value.as<RCall>();
    const RVar* callee = call ? call->op.as<RVar>() : nullptr;
    return callee && !callee->sinfo.as<FuncInfo>() ? value : GraphRewriter::reinferred_value(value);
  }

  RExpr value(const RVarRef& var, const RExpr& value) override {
    const RCall* call = value.as<RCall>();
    if (!call) return value;
    // A function that gives a closure gives an object; a call of one says what it returns.
    const RVar* callee = call->op.as<RVar>();
    if (!callee) return value;
    RExpr from = builder().bound_value(ref(*callee));
    const bool is_closure = closures_.contains(ref(*callee)) || (from && from.as<RCall>());
    if (!is_closure) return value;
    const bool pure = !from || !is_impure_call(from);
    return op_call_of(
        pure ? "invoke_pure_closure" : "invoke_closure", {call->op, relax::tuple(call->args)}, {var->sinfo});
  }

  const std::map<RVarRef, std::string>& names_;
  std::set<RVarRef> closures_;
};

}  // namespace

ModuleRef lambda_lift(const ModuleRef& module, const PassContext&) {
  const std::map<RVarRef, std::string> names = lifted_names(module);
  if (names.empty()) return module;
  return rewrite_functions(
      module, [&](const FuncRef& f, BlockBuilder& builder) { return LambdaLifter(builder, names).function(*f); });
}

}  // namespace sator::passes
