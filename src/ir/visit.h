// The traversals: match (one node), walk (read a program), transform (rewrite a program).
#pragma once

#include <algorithm>
#include <array>
#include <tuple>
#include <type_traits>

#include "base/error.h"
#include "base/pooled.h"
#include "ir/node.h"

namespace sator {

template <class... Ts>
struct Kinds {};

/// The closed list of a family's node classes, so that `match` can tell what is missing. Specialised beside the nodes.
template <class Family>
struct KindsOf;

namespace detail {

template <class F>
struct ArgumentOf : ArgumentOf<decltype(&std::remove_cvref_t<F>::operator())> {};
template <class C, class R, class A>
struct ArgumentOf<R (C::*)(A) const> {
  using type = std::remove_cvref_t<A>;
  using result = R;
};
template <class C, class R, class A>
struct ArgumentOf<R (C::*)(A)> : ArgumentOf<R (C::*)(A) const> {};
template <class R, class A>
struct ArgumentOf<R (*)(A)> {
  using type = std::remove_cvref_t<A>;
  using result = R;
};
template <class Arm>
using Argument = typename ArgumentOf<Arm>::type;

template <class Kind, class... Arms>
constexpr bool kHasArm = (std::is_base_of_v<Argument<Arms>, Kind> || ...);
template <class... Ks, class... Arms>
constexpr bool covers(Kinds<Ks...>, const Arms&...) {
  return (kHasArm<Ks, Arms...> && ...);
}
template <class KindList, class... Arms>
struct Covers;
template <class... Ks, class... Arms>
struct Covers<Kinds<Ks...>, Arms...> {
  static constexpr bool value = (kHasArm<Ks, Arms...> && ...);
};

}  // namespace detail

/// Calls the first arm whose parameter the node is. Every kind of the family needs an arm, or there is one for the
/// family itself.
template <class Family, class First, class... Rest>
auto match(const Ref<Family>& node, First&& first, Rest&&... rest) -> typename detail::ArgumentOf<First>::result {
  using Base = std::remove_const_t<Family>;
  static_assert(detail::Covers<typename KindsOf<Base>::type, First, Rest...>::value,
                "match: a kind of this family has no arm");
  using Result = typename detail::ArgumentOf<First>::result;
  if (!node) internal_error("match on a null node");
  auto attempt = [&]<class Arm, class... More>(auto& self, Arm& arm, More&... more) -> Result {
    using T = detail::Argument<Arm>;
    if (const T* p = node.template as<T>()) return arm(*p);
    if constexpr (sizeof...(More) > 0) {
      return self(self, more...);
    } else {
      internal_error("match fell through");
    }
  };
  return attempt(attempt, first, rest...);
}

namespace detail {

/// The nodes met so far; most walks meet few.
class SeenNodes {
 public:
  /// Whether it is met for the first time.
  bool insert(const NodeBase* n) {
    const auto end = few_.begin() + count_;
    if (std::find(few_.begin(), end, n) != end) return false;
    if (count_ == few_.size()) return others_.insert(n).second;
    few_[count_++] = n;
    return true;
  }

 private:
  std::array<const NodeBase*, 8> few_;
  size_t count_ = 0;
  PooledSet<const NodeBase*> others_;
};

template <class... Arms>
class Walker {
 public:
  explicit Walker(Arms&... arms) : arms_(arms...) {}
  void operator()(const NodeRef& n) {
    if (n->info().has_identity && !seen_.insert(n.get())) return;
    bool descend = true;
    std::apply([&](auto&... arm) { (offer(arm, *n, descend) || ...); }, arms_);
    if (descend && !n->info().is_leaf) n->info().each_child(*n, [this](const NodeRef& child) { (*this)(child); });
  }

 private:
  template <class Arm>
  static bool offer(Arm& arm, const NodeBase& n, bool& descend) {
    const Argument<Arm>* p = n.as<Argument<Arm>>();
    if (!p) return false;
    if constexpr (std::is_same_v<decltype(arm(*p)), bool>) {
      descend = arm(*p);
    } else {
      arm(*p);
    }
    return true;
  }
  std::tuple<Arms&...> arms_;
  SeenNodes seen_;
};

template <class... Arms>
class Transformer {
 public:
  explicit Transformer(Arms&... arms) : arms_(arms...) {}
  NodeRef operator()(const NodeRef& n) {
    if (n->info().has_identity) {
      if (auto at = done_.find(n); at != done_.end()) return at->second;
      NodeRef out = rewrite(n);
      done_.emplace(n, out);
      return out;
    }
    return rewrite(n);
  }

 private:
  NodeRef rewrite(const NodeRef& n) {
    NodeRef out = n->info().map_children(*n, [this](const NodeRef& child) { return (*this)(child); });
    std::apply([&](auto&... arm) { (offer(arm, out) || ...); }, arms_);
    return out;
  }
  template <class Arm>
  static bool offer(Arm& arm, NodeRef& n) {
    const Argument<Arm>* p = n->template as<Argument<Arm>>();
    if (!p) return false;
    n = arm(*p);
    return true;
  }
  std::tuple<Arms&...> arms_;
  PooledMap<NodeRef, NodeRef> done_;
};

}  // namespace detail

/// Reads a program from the top: each node is offered to the first fitting arm, then its children follow. An arm that
/// returns bool says whether they do. Nodes with an identity (variables, buffers) are entered once.
template <class... Arms>
void walk(const NodeRef& root, Arms&&... arms) {
  if (!root) return;
  detail::Walker<std::remove_reference_t<Arms>...> walker(arms...);
  walker(root);
}

using NodeMap = PooledMap<NodeRef, NodeRef>;
/// Puts other nodes in the place of given ones (by identity), from the top: what is put in is not searched again.
NodeRef replace_nodes(const NodeRef& root, const NodeMap& map);
template <class T>
Ref<T> replaced(const Ref<T>& root, const NodeMap& map) {
  return cast<std::remove_const_t<T>>(replace_nodes(root, map));
}

/// Rewrites a program from its leaves: children first, then the node itself is offered to the first fitting arm, whose
/// result takes its place. Unchanged means the same node. A node with an identity (variable, buffer) is rewritten once,
/// and all its uses become the one result.
template <class T, class... Arms>
Ref<T> transform(const Ref<T>& root, Arms&&... arms) {
  if (!root) return root;
  detail::Transformer<std::remove_reference_t<Arms>...> transformer(arms...);
  NodeRef out = transformer(root);
  if (out.get() == root.get()) return root;
  const T* typed = out.as<std::remove_const_t<T>>();
  if (out && !typed) internal_error("transform changed the family of its root");
  return Ref<T>(typed);
}

}  // namespace sator
