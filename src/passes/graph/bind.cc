#include "relax/bind.h"

#include "passes/graph/graph.h"
#include "relax/rewrite.h"

namespace sator::passes {

using namespace relax;

NamedValues named_values(const NodeRef& given) {
  NamedValues out;
  if (const Dict* d = given ? given.as<Dict>() : nullptr) {
    for (const auto& [name, value] : d->items) out.emplace_back(string_imm(name), value);
  } else if (const Array* pairs = given ? given.as<Array>() : nullptr) {
    for (const NodeRef& item : pairs->items) {
      const Array* pair = item.as<Array>();
      if (pair && pair->items.size() == 2) out.emplace_back(pair->items[0], pair->items[1]);
    }
  }
  return out;
}

NodeRef option(const PassContext& ctx, const std::string& name) {
  auto at = ctx.config.find(name);
  return at == ctx.config.end() ? nullptr : at->second;
}

/// The graph function of the name. Errors: there is none.
static FuncRef function_named(const ModuleRef& module, const std::string& pass, const std::string& name) {
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
  const NamedValues values = named_values(option(ctx, "BindSymbolicVars.binding_map"));
  const auto only = string_attr(ctx.config, "BindSymbolicVars.func_name");
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
  const std::string name = string_attr(ctx.config, "BindParams.func_name").value_or("main");
  BlockBuilder builder(module);
  FuncRef f = function_named(module, "BindParams", name);
  return with_function(module, name, relax::bind_params(f, named_values(option(ctx, "BindParams.params")), builder));
}

}  // namespace sator::passes
