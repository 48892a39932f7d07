#include "passes/byoc.h"
#include "passes/dead_code_elimination.h"
#include "passes/fuse_ops.h"
#include "passes/fuse_patterns.h"
#include "passes/legalize_ops.h"
#include "passes/op_pattern.h"
#include "relax/builder.h"
#include "relax/ops/table.h"
#include "relax/outline.h"

namespace sator::passes {

using namespace relax;

namespace {

Func with_attrs(const Func& func, const Attrs& add, const std::vector<std::string>& drop) {
  auto changed = [&](Attrs attrs) {
    for (const std::string& key : drop) attrs.erase(key);
    for (const auto& [key, value] : add) attrs[key] = value;
    return attrs;
  };
  if (tir::PrimFuncRef f = cast<tir::PrimFunc>(func)) return sator::with(f, &tir::PrimFunc::attrs, changed(f->attrs));
  FuncRef f = cast<Function>(func);
  return sator::with(f, &Function::attrs, changed(f->attrs));
}

/// The sizes of a callee's parameters as what its caller gives for them.
void take_sizes(const StructInfo& formal, const StructInfo& given, NodeMap& map) {
  auto pair_up = [&](const std::vector<Expr>& names, const std::vector<Expr>& values) {
    for (size_t d = 0; d < names.size() && d < values.size(); ++d)
      if (VarRef size = cast<Var>(names[d])) map.emplace(size, values[d]);
  };
  if (const TensorInfo* t = formal.as<TensorInfo>()) {
    const TensorInfo* g = given.as<TensorInfo>();
    const auto names = relax::shape_of(*t), values = g ? relax::shape_of(*g) : std::nullopt;
    if (names && values) pair_up(*names, *values);
  } else if (const ShapeInfo* shape = formal.as<ShapeInfo>()) {
    const ShapeInfo* g = given.as<ShapeInfo>();
    if (shape->values && g && g->values) pair_up(*shape->values, *g->values);
  }
}

/// The bindings of a call of `callee`, with the caller's values in the places of its parameters; the last one binds `result`.
void inline_call(const Function& callee, const RCall& call, const RVarRef& result, std::vector<Binding>& out) {
  NodeMap map;
  for (size_t i = 0; i < callee.params.size(); ++i) {
    map.emplace(callee.params[i], call.args[i]);
    take_sizes(callee.params[i]->sinfo, call.args[i]->sinfo, map);
  }
  const SeqExpr* body = callee.body.as<SeqExpr>();
  for (const BindingBlockRef& block : body->blocks)
    for (const Binding& b : block->bindings) {
      const RVarRef var = bound_var(b);
      const RExpr value = replaced(bound_value(b), map);
      RVarRef own = with(with(var, &RVar::is_dataflow, true), &RVar::sinfo, replaced(var->sinfo, map));
      map.emplace(var, own);
      out.push_back(make<VarBinding>(value, own));
    }
  out.push_back(make<VarBinding>(replaced(body->body, map), result));
}

/// A backend's function with what the groups that it calls compute in the places of the calls (MergeCompositeFunctions).
FuncRef with_groups_inside(const FuncRef& func, const ModuleRef& module) {
  return transform(func, [&](const BindingBlock& block) -> NodeRef {
    std::vector<Binding> bindings;
    bool changed = false;
    for (const Binding& b : block.bindings) {
      const RExpr value = bound_value(b);
      const RCall* call = value.as<RCall>();
      const GlobalVar* gv = call ? call->op.as<GlobalVar>() : nullptr;
      const auto at = gv ? module->functions.find(gv->name) : module->functions.end();
      const Function* callee = at == module->functions.end() ? nullptr : at->second.as<Function>();
      if (!callee || !has_attr(callee->attrs, "Codegen")) {
        bindings.push_back(b);
        continue;
      }
      inline_call(*callee, *call, bound_var(b), bindings);
      changed = true;
    }
    return changed ? NodeRef(sator::with(block, &BindingBlock::bindings, std::move(bindings))) : NodeRef(&block);
  });
}

/// Calls of kernels that oneDNN computes, as calls of the library with the kernel beside.
///   operations  by the names of the kernels
ModuleRef with_library_calls(const ModuleRef& module, const std::map<std::string, std::string>& operations) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const FuncRef f = cast<Function>(func);
    if (!f) continue;
    const FuncRef after = transform(f, [&](const RCall& call) -> NodeRef {
      const GlobalVar* kernel = is_op(RExpr(&call), "call_tir") ? call.args[0].as<GlobalVar>() : nullptr;
      const auto at = kernel ? operations.find(kernel->name) : operations.end();
      if (at == operations.end() || call.args.size() > 2) return ref(call);
      std::vector<RExpr> args = {call.args[0], string_value(at->second)};
      for (const RExpr& tensor : call_tir_inputs(call)) args.push_back(tensor);
      return with_sinfo(
          relax::call(
              op_ref("call_dps_packed"), {extern_func("vm.builtin.dnnl"), relax::tuple(args)}, {}, call.sinfo_args),
          call.sinfo);
    });
    if (after != f) out = with_function(std::move(out), name, after);
  }
  return out;
}

}  // namespace

ModuleRef run_codegen(const ModuleRef& module, const PassContext& ctx) {
  // The backend's functions among the tensor functions that they call, without the graphs that call them.
  std::map<std::string, Func> callers;
  std::map<std::string, Attrs> offloaded;
  std::map<std::string, std::string> operations;  // of oneDNN
  auto functions = module->functions;
  for (const auto& [name, func] : module->functions) {
    const Function* f = func.as<Function>();
    if (!f) continue;
    if (!string_attr(f->attrs, "Codegen")) {
      callers.emplace(name, func);
      functions.erase(name);
      continue;
    }
    offloaded[name] = {{"Codegen", f->attrs.at("Codegen")}};
    if (string_attr(f->attrs, "Codegen") == "dnnl") {
      if (const auto operation = dnnl_operation(*f))
        operations[name] = *operation;
      else
        ctx.say("RunCodegen", text(name, " stays a kernel: it is no single product or convolution that oneDNN takes"));
    }
    if (has_attr(f->attrs, "Composite")) offloaded[name]["Composite"] = f->attrs.at("Composite");
    functions[name] = with_attrs(with_groups_inside(cast<Function>(func), module), {}, {"Primitive"});
  }
  if (offloaded.empty()) return module;
  ModuleRef parts = sator::with(module, &Module::functions, std::move(functions));
  parts = legalize_ops(fuse_transpose_matmul(parts, ctx), ctx);
  for (const auto& [name, func] : callers) parts = with_function(std::move(parts), name, func);
  parts = dead_code_elimination(parts, ctx);  // transposed matrices that the products now read as they lie
  for (const auto& [name, attrs] : offloaded) {
    if (!parts->functions.contains(name)) continue;
    const Func marked = with_attrs(parts->functions.at(name), {{"Primitive", int_imm(1)}}, {});
    parts = with_function(std::move(parts), name, marked);
  }
  ModuleRef out = fuse_tir(parts, ctx);
  for (auto& [name, attrs] : offloaded) {
    if (!out->functions.contains(name)) continue;  // nobody called it
    attrs["op_pattern"] = int_imm(static_cast<int64_t>(OpPattern::opaque));
    const Func marked = with_attrs(out->functions.at(name), attrs, {});
    out = with_function(std::move(out), name, marked);
  }
  return operations.empty() ? out : with_library_calls(out, operations);
}

}  // namespace sator::passes
