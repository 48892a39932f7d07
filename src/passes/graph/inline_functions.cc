#include <set>

#include "passes/dead_code_elimination.h"
#include "passes/graph/graph.h"
#include "passes/inline_prim_funcs.h"
#include "relax/bind.h"
#include "relax/rewrite.h"

namespace sator::passes {

using namespace relax;

namespace {

/// The graph functions that the function calls or names.
std::set<std::string> callees_of(const Function& f) {
  std::set<std::string> out;
  walk(ref(f), [&](const GlobalVar& v) { out.insert(v.name); });
  return out;
}

/// Whether the function calls itself, directly or through others.
bool is_recursive(const ModuleRef& module, const std::string& name) {
  std::set<std::string> seen;
  std::vector<std::string> next = {name};
  while (!next.empty()) {
    auto at = module->functions.find(next.back());
    next.pop_back();
    const Function* f = at == module->functions.end() ? nullptr : at->second.as<Function>();
    if (!f) continue;
    for (const std::string& callee : callees_of(*f)) {
      if (callee == name) return true;
      if (seen.insert(callee).second) next.push_back(callee);
    }
  }
  return false;
}

}  // namespace

FuncRef inline_functions(const FuncRef& func, const std::map<std::string, FuncRef>& callees, BlockBuilder& builder) {
  FuncRef out = inline_calls(func, callees, builder);
  return out == func ? func : without_unused(canonicalize_bindings(out, builder));
}

ModuleRef inline_private_functions(const ModuleRef& given, const PassContext&) {
  const ModuleRef module = inline_prim_funcs(given, Inlined::private_ones);
  std::map<std::string, FuncRef> callees;
  for (const auto& [name, func] : module->functions) {
    FuncRef f = cast<Function>(func);
    if (f && !has_attr(f->attrs, "global_symbol") && !has_attr(f->attrs, "Primitive") &&
        !has_attr(f->attrs, "Codegen") && !is_recursive(module, name))
      callees.emplace(name, f);
  }
  if (callees.empty()) return module;
  ModuleRef out = rewrite_functions(
      module, [&](const FuncRef& f, BlockBuilder& builder) { return inline_functions(f, callees, builder); });
  // What nothing that stays names goes: closures name what they call.
  std::vector<std::string> staying;
  for (const auto& [name, func] : out->functions)
    if (!callees.contains(name)) staying.push_back(name);
  std::map<std::string, Func> functions;
  while (!staying.empty()) {
    const std::string name = staying.back();
    staying.pop_back();
    auto at = out->functions.find(name);
    if (at == out->functions.end() || !functions.emplace(name, at->second).second) continue;
    if (const Function* f = at->second.as<Function>())
      for (const std::string& callee : callees_of(*f)) staying.push_back(callee);
  }
  return with(out, &Module::functions, std::move(functions));
}

}  // namespace sator::passes
