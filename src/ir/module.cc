#include "ir/module.h"

namespace sator {

ModuleRef with_function(ModuleRef module, const std::string& name, Func func) {
  if (!module.is_unique()) module = ModuleRef(new Module(*module));
  const_cast<Module&>(*module).functions[name] = std::move(func);
  return module;
}

std::string fresh_name(const ModuleRef& module, const std::string& base) {
  if (!module->functions.count(base)) return base;
  for (int64_t i = 1;; ++i) {
    std::string name = text(base, i);
    if (!module->functions.count(name)) return name;
  }
}

std::optional<int64_t> int_attr(const Attrs& attrs, const std::string& key) {
  auto at = attrs.find(key);
  if (at == attrs.end()) return {};
  const IntImm* i = at->second.as<IntImm>();
  return i ? std::optional(i->value) : std::nullopt;
}
std::optional<std::string> string_attr(const Attrs& attrs, const std::string& key) {
  auto at = attrs.find(key);
  if (at == attrs.end()) return {};
  const StringImm* s = at->second.as<StringImm>();
  return s ? std::optional(s->value) : std::nullopt;
}
bool has_attr(const Attrs& attrs, const std::string& key) { return attrs.count(key) > 0; }

template class Node<TargetConfig>;
template class Node<VDevice>;
template class Node<Module>;

}  // namespace sator
