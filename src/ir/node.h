// What every IR node is: immutable, counted, and described once by its fields().
//
// A node class derives from Node<T, Family> and lists its fields; `make<T>` takes one value per field in that order.
// Walk, rebuild, equality, hash and printing follow from the list.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/function_ref.h"
#include "base/object.h"

namespace sator {

class NodeBase;
class Equality;
class Hasher;
using NodeRef = Ref<const NodeBase>;

/// Where a node stood in the text it was parsed from; line 0 is "nowhere". It takes no part in equality.
struct Span {
  int32_t line = 0, column = 0;
};

namespace detail {
template <class Family>
inline constexpr char kFamily = 0;  ///< its address tells families apart
struct Depth;
}  // namespace detail

/// Nodes within each other, at most: what walks a program calls itself for each level, and none may overflow a stack of 8 MB.
inline constexpr uint32_t kDeepestNode = 4000;

/// The derived operations of one node class; its address is the class's tag.
struct NodeInfo {
  std::string_view name;
  const char* family;  ///< &detail::kFamily<ExprNode>, ...: the one class between NodeBase and the node's own
  bool is_leaf;        ///< no field can hold a node
  bool has_identity;   ///< Var, Buffer, ...: one object stands for one thing; see transform()
  bool free_by_value;  ///< equality compares two that no definition has matched by their fields (Buffer)
  void (*each_child)(const NodeBase&, FunctionRef<void(const NodeRef&)>);
  NodeRef (*map_children)(const NodeBase&, FunctionRef<NodeRef(const NodeRef&)>);
  bool (*equal)(const NodeBase&, const NodeBase&, Equality&);
  void (*hash)(const NodeBase&, Hasher&);
};

class NodeBase : public Object {
 public:
  const NodeInfo& info() const { return *info_; }
  /// This node as a T (a node class or a family), or null.
  template <class T>
  const T* as() const {
    if constexpr (std::is_same_v<T, NodeBase>) {
      return this;
    } else if constexpr (requires { T::kInfo; }) {
      return &info() == &T::kInfo ? static_cast<const T*>(this) : nullptr;
    } else {
      return info().family == &detail::kFamily<T> ? static_cast<const T*>(this) : nullptr;
    }
  }
  /// Levels of nodes within it, itself among them.
  uint32_t depth() const { return depth_; }

 private:
  template <class T, class Family>
  friend class Node;
  friend struct detail::Depth;
  uint32_t depth_ = 1;  ///< beside the count of references, where it takes no room of its own
  const NodeInfo* info_ = nullptr;

 public:
  Span span;
};

/// A counted reference to a node that is at hand as a plain reference.
template <class T>
Ref<const T> ref(const T& node) {
  return Ref<const T>(&node);
}

/// The node as a T; null if it is another kind (or null).
template <class T, class U>
Ref<const T> cast(const Ref<U>& node) {
  const T* p = node.template as<T>();
  return p ? Ref<const T>(p) : nullptr;
}

/// How a field takes part in equality: `plain` by value; `definition` binds variables or buffers, the two sides' are
/// matched by position; `unseen` does not take part (names, hints).
enum class FieldRole { plain, definition, unseen };

template <class C, class M>
struct Field {
  const char* name;
  M C::* pointer;
  FieldRole role;
};
template <class C, class M>
constexpr Field<C, M> field(const char* name, M C::* pointer) {
  return {name, pointer, FieldRole::plain};
}
template <class C, class M>
constexpr Field<C, M> definition(const char* name, M C::* pointer) {
  return {name, pointer, FieldRole::definition};
}
template <class C, class M>
constexpr Field<C, M> unseen(const char* name, M C::* pointer) {
  return {name, pointer, FieldRole::unseen};
}

/// Matches two programs: names do not matter, definitions are matched by position, free variables by identity.
class Equality {
 public:
  bool nodes(const NodeRef& a, const NodeRef& b);
  bool define(const NodeRef& a, const NodeRef& b);
  /// Free variables may map to each other at their first sight.
  bool map_free_variables = false;

 private:
  bool defining_ = false;
  bool by_value_ = false;  ///< inside an undefined node that is compared by value: its definitions are uses
  std::map<const NodeBase*, const NodeBase*> forward_, backward_;
};

class Hasher {
 public:
  void node(const NodeRef& n);
  void define(const NodeRef& n);
  void mix(uint64_t v) { state_ = (state_ ^ v) * 0x9e3779b97f4a7c15ull + (state_ >> 29); }
  uint64_t result() const { return state_; }

 private:
  uint64_t state_ = 0x243f6a8885a308d3ull;
  std::map<const NodeBase*, uint64_t> numbers_;
};

/// Whether two nodes state the same program.
bool equal(const NodeRef& a, const NodeRef& b, bool map_free_variables = false);
/// Equal programs have equal hashes (those with free variables in the same places too).
uint64_t structural_hash(const NodeRef& n);

namespace detail {

template <class V>
concept NodePointer = requires(const V& v) { NodeRef(v); } && !std::is_same_v<V, std::nullptr_t>;

// One overload set per derived operation; the recursion over containers is the same in all.
template <class V>
void each_child(const V& v, FunctionRef<void(const NodeRef&)> f) {
  if constexpr (NodePointer<V>) {
    if (v) f(v);
  } else if constexpr (requires { typename V::mapped_type; }) {
    for (const auto& [key, value] : v) {
      each_child(key, f);
      each_child(value, f);
    }
  } else if constexpr (requires { v.first, v.second; }) {
    each_child(v.first, f);
    each_child(v.second, f);
  } else if constexpr (requires { v.has_value(), *v; }) {
    if (v) each_child(*v, f);
  } else if constexpr (requires { typename V::value_type; } && !std::is_same_v<V, std::string>) {
    for (const auto& item : v) each_child(item, f);
  }
}

/// Whether a field of this type can hold nodes.
template <class V>
constexpr bool holds_nodes() {
  if constexpr (NodePointer<V>) {
    return true;
  } else if constexpr (requires { typename V::mapped_type; }) {
    return holds_nodes<typename V::key_type>() || holds_nodes<typename V::mapped_type>();
  } else if constexpr (requires(const V& v) { v.first, v.second; }) {
    return holds_nodes<typename V::first_type>() || holds_nodes<typename V::second_type>();
  } else if constexpr (requires { typename V::value_type; } && !std::is_same_v<V, std::string>) {
    return holds_nodes<typename V::value_type>();
  } else {
    return false;
  }
}

/// The value with its nodes mapped; nothing where none changed, which costs no copy.
template <class V>
  requires(holds_nodes<V>())
std::optional<V> mapped_children(const V& v, FunctionRef<NodeRef(const NodeRef&)> f) {
  std::optional<V> out;
  if constexpr (NodePointer<V>) {
    if (!v) return {};
    NodeRef mapped = f(v);
    if (mapped.get() == v.get()) return {};
    using T = std::remove_pointer_t<decltype(v.get())>;
    out = V(mapped ? const_cast<T*>(mapped->template as<std::remove_const_t<T>>()) : nullptr);
  } else if constexpr (requires { typename V::mapped_type; }) {
    for (auto at = v.begin(); at != v.end(); ++at) {
      std::optional<typename V::key_type> key;
      std::optional<typename V::mapped_type> value;
      if constexpr (holds_nodes<typename V::key_type>()) key = mapped_children(at->first, f);
      if constexpr (holds_nodes<typename V::mapped_type>()) value = mapped_children(at->second, f);
      if ((key || value) && !out) out.emplace(v.begin(), at);
      if (out) out->emplace(key ? std::move(*key) : at->first, value ? std::move(*value) : at->second);
    }
  } else if constexpr (requires { v.first, v.second; }) {
    std::optional<typename V::first_type> first;
    std::optional<typename V::second_type> second;
    if constexpr (holds_nodes<typename V::first_type>()) first = mapped_children(v.first, f);
    if constexpr (holds_nodes<typename V::second_type>()) second = mapped_children(v.second, f);
    if (first || second) out.emplace(first ? std::move(*first) : v.first, second ? std::move(*second) : v.second);
  } else if constexpr (requires { v.has_value(), *v; }) {
    if (!v) return {};
    if (auto value = mapped_children(*v, f)) out.emplace(std::move(*value));
  } else {
    for (size_t i = 0; i < v.size(); ++i) {
      auto item = mapped_children(v[i], f);
      if (!item) continue;
      if (!out) out = v;
      (*out)[i] = std::move(*item);
    }
  }
  return out;
}

/// The most levels in nodes of a field.
template <class V>
uint32_t depth_of(const V& v) {
  uint32_t depth = 0;
  if constexpr (!holds_nodes<V>()) {
    return 0;
  } else if constexpr (NodePointer<V>) {
    return v ? v->depth() : 0;
  } else if constexpr (requires { v.first, v.second; }) {
    return std::max(depth_of(v.first), depth_of(v.second));
  } else if constexpr (requires { v.has_value(), *v; }) {
    return v ? depth_of(*v) : 0;
  } else {
    for (const auto& item : v) depth = std::max(depth, depth_of(item));
  }
  return depth;
}

template <class V>
bool equal_value(const V& a, const V& b, FieldRole role, Equality& eq) {
  if constexpr (NodePointer<V>) {
    return role == FieldRole::definition ? eq.define(a, b) : eq.nodes(a, b);
  } else if constexpr (requires { a.first, a.second; }) {
    return equal_value(a.first, b.first, role, eq) && equal_value(a.second, b.second, role, eq);
  } else if constexpr (requires { a.has_value(), *a; }) {
    return a.has_value() == b.has_value() && (!a || equal_value(*a, *b, role, eq));
  } else if constexpr (requires { typename V::value_type; } && !std::is_same_v<V, std::string>) {
    if (a.size() != b.size()) return false;
    for (auto i = a.begin(), j = b.begin(); i != a.end(); ++i, ++j) {
      if (!equal_value(*i, *j, role, eq)) return false;
    }
    return true;
  } else if constexpr (std::is_same_v<V, double>) {
    return a == b || (a != a && b != b);
  } else {
    return a == b;
  }
}

template <class V>
void hash_value(const V& v, FieldRole role, Hasher& h) {
  if constexpr (NodePointer<V>) {
    role == FieldRole::definition ? h.define(v) : h.node(v);
  } else if constexpr (requires { v.first, v.second; }) {
    hash_value(v.first, role, h);
    hash_value(v.second, role, h);
  } else if constexpr (requires { v.has_value(), *v; }) {
    h.mix(v.has_value());
    if (v) hash_value(*v, role, h);
  } else if constexpr (requires { typename V::value_type; } && !std::is_same_v<V, std::string>) {
    h.mix(v.size());
    for (const auto& item : v) hash_value(item, role, h);
  } else if constexpr (std::is_enum_v<V>) {
    h.mix(static_cast<uint64_t>(v));
  } else {
    h.mix(std::hash<V>()(v));
  }
}

template <class F, class Fn>
void for_fields(Fn&& fn) {
  std::apply([&](const auto&... f) { (fn(f), ...); }, F::fields());
}

template <class T>
constexpr std::string_view type_name() {
  std::string_view s = __PRETTY_FUNCTION__;  // "... [with T = sator::tir::For; ...]"
  s.remove_prefix(s.find("T = ") + 4);
  s = s.substr(0, s.find_first_of(";]"));
  if (size_t colon = s.rfind(':'); colon != s.npos) s.remove_prefix(colon + 1);
  return s;
}

[[noreturn]] void fail_too_deep(const NodeBase& node);

struct Depth {
  /// Errors: more than kDeepestNode levels.
  template <class T>
  static void measure(T& node) {
    uint32_t depth = 0;
    for_fields<T>([&](const auto& fd) { depth = std::max(depth, depth_of(node.*fd.pointer)); });
    node.depth_ = depth + 1;
    if (depth >= kDeepestNode) [[unlikely]]
      fail_too_deep(node);
  }
};

template <class T>
Ref<const T> finished(T* node) {
  Ref<const T> owned(node);
  Depth::measure(*node);
  if constexpr (requires { node->finish(); }) node->finish();
  return owned;
}

template <class T, class Family>
constexpr NodeInfo node_info() {
  NodeInfo info{};
  info.name = type_name<T>();
  info.family = &kFamily<Family>;
  info.is_leaf = !std::apply(
      [](const auto&... f) {
        return (holds_nodes<std::remove_cvref_t<decltype(std::declval<T>().*f.pointer)>>() || ...);
      },
      T::fields());
  info.has_identity = requires { T::kHasIdentity; };
  info.free_by_value = requires { T::kFreeByValue; };
  info.each_child = [](const NodeBase& n, FunctionRef<void(const NodeRef&)> f) {
    for_fields<T>([&](const auto& fd) { each_child(static_cast<const T&>(n).*fd.pointer, f); });
  };
  info.map_children = [](const NodeBase& n, FunctionRef<NodeRef(const NodeRef&)> f) -> NodeRef {
    const T& node = static_cast<const T&>(n);
    Ref<T> copy;
    for_fields<T>([&](const auto& fd) {
      if constexpr (holds_nodes<std::remove_cvref_t<decltype(node.*fd.pointer)>>()) {
        auto value = mapped_children(node.*fd.pointer, f);
        if (!value) return;
        if (!copy) copy = Ref<T>(new T(node));
        (*copy).*fd.pointer = std::move(*value);
      }
    });
    if (!copy) return NodeRef(&n);
    Depth::measure(*copy);
    if constexpr (requires { copy->finish(); }) copy->finish();
    return copy;
  };
  info.equal = [](const NodeBase& x, const NodeBase& y, Equality& eq) {
    bool same = true;
    for_fields<T>([&](const auto& fd) {
      if (same && fd.role != FieldRole::unseen)
        same = equal_value(static_cast<const T&>(x).*fd.pointer, static_cast<const T&>(y).*fd.pointer, fd.role, eq);
    });
    return same;
  };
  info.hash = [](const NodeBase& n, Hasher& h) {
    for_fields<T>([&](const auto& fd) {
      if (fd.role != FieldRole::unseen) hash_value(static_cast<const T&>(n).*fd.pointer, fd.role, h);
    });
  };
  return info;
}

}  // namespace detail

/// Base of the node class T in a family (expressions, statements, ...).
template <class T, class Family = NodeBase>
class Node : public Family {
 public:
  static const NodeInfo kInfo;
  Node() { this->info_ = &kInfo; }
};
template <class T, class Family>
constinit inline const NodeInfo Node<T, Family>::kInfo = detail::node_info<T, Family>();

/// A node from one value per field, in the order of fields(). A class with a finish() derives the rest there.
template <class T, class... Args>
Ref<const T> make(Args&&... args) {
  static_assert(sizeof...(Args) == std::tuple_size_v<decltype(T::fields())>, "one value per field");
  T* node = new T;
  std::apply([&](const auto&... f) { (((*node).*(f.pointer) = std::forward<Args>(args)), ...); }, T::fields());
  return detail::finished(node);
}

/// The same node with another value in one field (and its span kept): with(loop, &For::kind, LoopKind::parallel).
template <class T, class C, class M, class V>
Ref<const T> with(const T& node, M C::* pointer, V&& value) {
  T* copy = new T(node);
  copy->*pointer = std::forward<V>(value);
  return detail::finished(copy);
}
template <class T, class C, class M, class V>
Ref<const T> with(const Ref<const T>& node, M C::* pointer, V&& value) {
  return with(*node, pointer, std::forward<V>(value));
}

/// The same node with where it stood in the text.
template <class T>
Ref<const T> spanned(Ref<const T> node, Span span) {
  // The node was just made and is not shared yet; a span takes no part in its value.
  const_cast<std::remove_const_t<T>*>(node.get())->span = span;
  return node;
}

}  // namespace sator
