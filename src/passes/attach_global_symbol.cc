#include "passes/to_vm.h"

#include "relax/nodes.h"
#include "tir/nodes.h"

namespace sator::passes {

template <class T>
static Func named(const T& func, const std::string& name) {
  Attrs attrs = func.attrs;
  attrs["global_symbol"] = string_imm(name);
  return with(func, &T::attrs, std::move(attrs));
}

ModuleRef attach_global_symbol(const ModuleRef& module, const PassContext&) {
  ModuleRef out = module;
  // What a system library takes in has this before its names.
  const std::string prefix = string_attr(module->attrs, "system_lib_prefix").value_or("");
  for (const auto& [name, func] : module->functions) {
    if (string_attr(func->attrs, "global_symbol") == (func.as<tir::PrimFunc>() ? prefix + name : name)) continue;
    if (const auto* f = func.as<tir::PrimFunc>()) out = with_function(std::move(out), name, named(*f, prefix + name));
    if (const auto* f = func.as<relax::Function>()) out = with_function(std::move(out), name, named(*f, name));
  }
  return out;
}

ModuleRef annotate_entry_func(const ModuleRef& module, const PassContext&) {
  // The only function, or the only one that others may call.
  std::vector<std::string> callable;
  for (const auto& [name, func] : module->functions)
    if (module->functions.size() == 1 || has_attr(func->attrs, "global_symbol")) callable.push_back(name);
  if (callable.size() != 1) return module;
  const tir::PrimFuncRef f = cast<tir::PrimFunc>(module->functions.at(callable.front()));
  if (!f || int_attr(f->attrs, "tir.is_entry_func").value_or(0) != 0) return module;
  Attrs attrs = f->attrs;
  attrs["tir.is_entry_func"] = bool_imm(true);
  return with_function(ModuleRef(module), callable.front(), with(f, &tir::PrimFunc::attrs, std::move(attrs)));
}

}  // namespace sator::passes
