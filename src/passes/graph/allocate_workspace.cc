// Functions of a code generator that say how many bytes of scratch memory they need get it from their caller.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "passes/graph/graph.h"
#include "relax/rewrite.h"

namespace sator::passes {

using namespace relax;

namespace {

constexpr const char* kSize = "WorkspaceSize";

RVarRef parameter(int64_t bytes) { return make_rvar("workspace", tensor_info({int_imm(bytes, i64)}, u8)); }

FuncRef with_parameter(const FuncRef& f, const RVarRef& workspace) {
  std::vector<RVarRef> params = f->params;
  params.push_back(workspace);
  return with(f, &Function::params, std::move(params));
}

RExpr with_argument(const RCall& call, const RExpr& op, const RExpr& workspace) {
  std::vector<RExpr> args = call.args;
  args.push_back(workspace);
  return with_sinfo(relax::call(op, std::move(args), Attrs(call.attrs), call.sinfo_args), call.sinfo);
}

/// A function that has its workspace hands it to the composites inside.
FuncRef with_workspace(const FuncRef& f, int64_t bytes) {
  const RVarRef workspace = parameter(bytes);
  std::map<RVarRef, std::pair<RVarRef, RExpr>> takers;
  walk(f->body, [&](const VarBinding& b) {
    const LocalFunction* local = b.value.as<LocalFunction>();
    if (!local || !has_attr(local->function->attrs, kSize)) return;
    const FuncRef inner = with_parameter(local->function, parameter(bytes));
    takers[b.var] = {make_rvar(b.var->name, info_of(*inner)), make<LocalFunction>(inner, info_of(*inner))};
  });
  const FuncRef out = transform(
      f,
      [&](const VarBinding& b) -> NodeRef {
        const auto at = takers.find(b.var);
        return at == takers.end() ? NodeRef(ref(b)) : bind_value(at->second.first, at->second.second);
      },
      [&](const RCall& call) -> NodeRef {
        const RVarRef callee = cast<RVar>(call.op);
        const auto at = callee ? takers.find(callee) : takers.end();
        return at == takers.end() ? NodeRef(ref(call)) : NodeRef(with_argument(call, at->second.first, workspace));
      });
  return with_parameter(out, workspace);
}

/// A caller of such functions allocates the memory once, before all else.
class Caller final : public GraphRewriter {
 public:
  Caller(BlockBuilder& builder, const std::map<std::string, std::string>& names, int64_t bytes)
      : GraphRewriter(builder), names_(names), bytes_(bytes) {}

 private:
  void begin_block(const BindingBlock&) override {
    if (workspace_) return;
    const RExpr shape = shape_expr({int_imm(bytes_, i64)});
    workspace_ = builder().emit(
        relax::call(op_ref("builtin.alloc_tensor"), {shape, dtype_value(u8), prim_value(0), string_value("global")}),
        "workspace_main");
  }
  RExpr value(const RVarRef&, const RExpr& value) override {
    const RCall* call = value.as<RCall>();
    const GlobalVar* callee = call ? call->op.as<GlobalVar>() : nullptr;
    const auto at = callee ? names_.find(callee->name) : names_.end();
    return at == names_.end() ? value : with_argument(*call, builder().function(at->second), workspace_);
  }

  const std::map<std::string, std::string>& names_;  ///< of the functions that take it: the old ones to the new ones
  int64_t bytes_;
  RExpr workspace_;
};

}  // namespace

ModuleRef allocate_workspace(const ModuleRef& module, const PassContext&) {
  std::set<std::string> takers;
  int64_t bytes = 0;
  for (const auto& [name, func] : module->functions) {
    const Function* f = func.as<Function>();
    if (!f || !has_attr(f->attrs, kSize)) continue;
    takers.insert(name);
    bytes = std::max(bytes, int_attr(f->attrs, kSize).value_or(0));
  }
  if (takers.empty()) return module;
  // What takes other arguments has another name, as in TVM: who called the function by the old one does not find it.
  std::map<std::string, Func> functions = module->functions;
  std::map<std::string, std::string> names;
  for (const std::string& name : takers) {
    FuncRef f = with_workspace(cast<Function>(functions.at(name)), bytes);
    const std::string fresh = fresh_name(module, name);
    if (has_attr(f->attrs, "global_symbol")) {
      Attrs attrs = f->attrs;
      attrs["global_symbol"] = string_imm(fresh);
      f = with(f, &Function::attrs, std::move(attrs));
    }
    functions.erase(name);
    functions.emplace(fresh, f);
    names[name] = fresh;
  }
  const ModuleRef out = with(module, &Module::functions, std::move(functions));
  return rewrite_functions(out, [&](const FuncRef& f, BlockBuilder& builder) {
    bool calls = false;
    walk(f->body, [&](const GlobalVar& g) { calls |= takers.contains(g.name); });
    return calls ? Caller(builder, names, bytes).function(*f) : f;
  });
}

}  // namespace sator::passes
