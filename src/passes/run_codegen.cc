#include "passes/byoc.h"
#include "passes/dead_code_elimination.h"
#include "passes/fuse_ops.h"
#include "passes/fuse_patterns.h"
#include "passes/legalize_ops.h"
#include "passes/op_pattern.h"

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

}  // namespace

ModuleRef run_codegen(const ModuleRef& module, const PassContext& ctx) {
  // The backend's functions among the tensor functions that they call, without the graphs that call them.
  std::map<std::string, Func> callers;
  std::map<std::string, Attrs> offloaded;
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
    if (has_attr(f->attrs, "Composite")) offloaded[name]["Composite"] = f->attrs.at("Composite");
    functions[name] = with_attrs(func, {}, {"Primitive"});
  }
  if (offloaded.empty()) return module;
  ModuleRef parts = sator::with(module, &Module::functions, std::move(functions));
  parts = legalize_ops(fuse_transpose_matmul(parts, ctx), ctx);
  for (const auto& [name, func] : callers) parts = with_function(parts, name, func);
  parts = dead_code_elimination(parts, ctx);  // transposed matrices that the products now read as they lie
  for (const auto& [name, attrs] : offloaded)
    if (parts->functions.contains(name))
      parts = with_function(parts, name, with_attrs(parts->functions.at(name), {{"Primitive", int_imm(1)}}, {}));
  ModuleRef out = fuse_tir(parts, ctx);
  for (auto& [name, attrs] : offloaded) {
    if (!out->functions.contains(name)) continue;  // nobody called it
    attrs["op_pattern"] = int_imm(static_cast<int64_t>(OpPattern::opaque));
    out = with_function(out, name, with_attrs(out->functions.at(name), attrs, {}));
  }
  return out;
}

}  // namespace sator::passes
