#pragma once

#include "ir/expr.h"

namespace sator {

/// A function of a module: tir::PrimFunc, relax::Function, relax::ExternFunc.
struct FuncNode : NodeBase {
  Attrs attrs;
};
using Func = Ref<const FuncNode>;

/// Functions by name, as TVM's IRModule. A function without the attribute "global_symbol" is private.
struct Module final : Node<Module> {
  std::map<std::string, Func> functions;
  Attrs attrs;
  Attrs global_infos;
  static constexpr auto fields() {
    return std::tuple{field("functions", &Module::functions), field("attrs", &Module::attrs),
                      field("global_infos", &Module::global_infos)};
  }
};
using ModuleRef = Ref<const Module>;

/// The module with `name` bound to `func` (added or replaced).
ModuleRef with_function(const ModuleRef& module, const std::string& name, Func func);
/// `base`, or base1, base2, ...: the first that the module does not have.
std::string fresh_name(const ModuleRef& module, const std::string& base);

// Attributes. A missing key reads as nothing.
std::optional<int64_t> int_attr(const Attrs& attrs, const std::string& key);
std::optional<std::string> string_attr(const Attrs& attrs, const std::string& key);
bool has_attr(const Attrs& attrs, const std::string& key);

}  // namespace sator
