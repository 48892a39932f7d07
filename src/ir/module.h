#pragma once

#include "ir/expr.h"

namespace sator {

/// A function of a module: tir::PrimFunc, relax::Function, relax::ExternFunc.
struct FuncNode : NodeBase {
  Attrs attrs;
};
using Func = Ref<const FuncNode>;

/// A target as an attribute: its configuration, with at least "kind". The room target/ knows what it means.
struct TargetConfig final : Node<TargetConfig> {
  Attrs config;
  static constexpr auto fields() { return std::tuple{field("config", &TargetConfig::config)}; }
};
/// A place for tensors: a target, the number of the device, and a memory scope on it.
struct VDevice final : Node<VDevice> {
  NodeRef target;
  int index = 0;
  std::string memory_scope = "global";
  static constexpr auto fields() {
    return std::tuple{field("target", &VDevice::target),
                      field("index", &VDevice::index),
                      field("memory_scope", &VDevice::memory_scope)};
  }
};

/// Functions by name, as TVM's IRModule. A function without the attribute "global_symbol" is private.
struct Module final : Node<Module> {
  std::map<std::string, Func> functions;
  Attrs attrs;
  Attrs global_infos;
  static constexpr auto fields() {
    return std::tuple{field("functions", &Module::functions),
                      field("attrs", &Module::attrs),
                      field("global_infos", &Module::global_infos)};
  }
};
using ModuleRef = Ref<const Module>;

/// The module with `name` bound to `func` (added or replaced). A module that is given away is changed in place where nothing else holds it:
/// `out = with_function(std::move(out), ...)` for each function copies the module once.
ModuleRef with_function(ModuleRef module, const std::string& name, Func func);
/// `base`, or base1, base2, ...: the first that the module does not have.
std::string fresh_name(const ModuleRef& module, const std::string& base);

// Attributes. A missing key reads as nothing.
std::optional<int64_t> int_attr(const Attrs& attrs, const std::string& key);
std::optional<std::string> string_attr(const Attrs& attrs, const std::string& key);
bool has_attr(const Attrs& attrs, const std::string& key);

// What follows from fields() is compiled once, in module.cc.
extern template class Node<TargetConfig>;
extern template class Node<VDevice>;
extern template class Node<Module>;

}  // namespace sator
