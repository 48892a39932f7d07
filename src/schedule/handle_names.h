// What traces call the results of their steps.
#pragma once

#include <unordered_map>

#include "ir/visit.h"
#include "schedule/convert.h"

namespace sator::schedule {

/// The node that a result is known by: of a loop, a block, or a chosen number; null for others.
inline const NodeBase* handle_of(const Value& v) {
  if (auto* l = v.get_if<Loop>()) return l->get();
  if (auto* b = v.get_if<BlockHandle>()) return b->get();
  if (auto* e = v.get_if<Expr>()) return e->as<Var>();
  return nullptr;
}

/// Names for handles in the order they are made: b0, l1, v2, ...
class HandleNames {
 public:
  /// The names of a result's parts.
  std::vector<std::string> define(const Value& v) {
    if (v.is_none()) return {};
    if (auto* list = v.get_if<List>()) {
      std::vector<std::string> names;
      for (const Value& item : *list) names.push_back(name(item));
      return names;
    }
    return {name(v)};
  }
  std::string use(const Value& v) const {
    if (auto* list = v.get_if<List>()) {
      std::vector<std::string> items;
      for (const Value& item : *list) items.push_back(use(item));
      return "[" + join(items, ", ") + "]";
    }
    if (const std::string* known = find(v)) return *known;
    if (auto* e = v.get_if<Expr>()) {
      VarMap named;
      for (const VarRef& var : vars_in(*e))
        if (auto at = names_.find(var.get()); at != names_.end()) named.emplace(var, make_var(at->second, var->dtype));
      return text(substitute(*e, named));
    }
    return text(v);
  }
  /// The name of a handle; null where the value is none.
  const std::string* find(const Value& v) const {
    const NodeBase* handle = handle_of(v);
    auto at = handle ? names_.find(handle) : names_.end();
    return at == names_.end() ? nullptr : &at->second;
  }

 private:
  std::string name(const Value& v) {
    const char* prefix = v.get_if<Loop>() ? "l" : v.get_if<BlockHandle>() ? "b" : "v";
    std::string n = text(prefix, next_++);
    if (const NodeBase* handle = handle_of(v)) names_[handle] = n;
    return n;
  }
  std::unordered_map<const NodeBase*, std::string> names_;
  int64_t next_ = 0;
};

}  // namespace sator::schedule
