#include "relax/bind.h"

#include "passes/graph/graph.h"
#include "relax/rewrite.h"

namespace sator::passes {

using namespace relax;

FuncRef function_named(const ModuleRef& module, const std::string& pass, const std::string& name) {
  auto at = module->functions.find(name);
  FuncRef f = at == module->functions.end() ? nullptr : cast<Function>(at->second);
  if (f) return f;
  std::vector<std::string> names;
  for (const auto& [known, func] : module->functions)
    if (func.as<Function>()) names.push_back(known);
  fail({.what = text(pass, ": the module has no graph function ", name),
        .needs = names.empty() ? "a module with graphs" : text("one of ", join(names, ", ")),
        .hint = "correct the function's name"});
}

ModuleRef bind_symbolic_vars(const ModuleRef& module, const PassContext& ctx) {
  const NamedValues values = named_values_option(ctx, "BindSymbolicVars.binding_map");
  const auto only = text_option(ctx, "BindSymbolicVars.func_name");
  if (only) {
    BlockBuilder builder(module);
    FuncRef f = function_named(module, "BindSymbolicVars", *only);
    return with_function(module, *only, bind_sizes(f, values, builder));
  }
  // Each function takes of the values what it defines; each value is of use somewhere.
  std::vector<bool> used(values.size());
  ModuleRef out = rewrite_functions(module, [&](const FuncRef& f, BlockBuilder& builder) {
    const std::vector<VarRef> sizes = defined_sizes(*f);
    NamedValues its;
    for (size_t i = 0; i < values.size(); ++i) {
      const StringImm* name = values[i].first.as<StringImm>();
      for (const VarRef& v : sizes) {
        if (name ? v->name != name->value : NodeRef(v) != values[i].first) continue;
        its.push_back(values[i]);
        used[i] = true;
        break;
      }
    }
    return bind_sizes(f, its, builder);
  });
  for (size_t i = 0; i < values.size(); ++i) {
    if (used[i]) continue;
    const StringImm* name = values[i].first.as<StringImm>();
    fail({.what = text("BindSymbolicVars: no function has a symbolic size ", name ? name->value : "that is bound"),
          .needs = "names of symbolic sizes of the module",
          .hint = "correct the name"});
  }
  return out;
}

ModuleRef bind_params(const ModuleRef& module, const PassContext& ctx) {
  const std::string name = text_option(ctx, "BindParams.func_name").value_or("main");
  BlockBuilder builder(module);
  FuncRef f = function_named(module, "BindParams", name);
  return with_function(module, name, relax::bind_params(f, named_values_option(ctx, "BindParams.params"), builder));
}

}  // namespace sator::passes
