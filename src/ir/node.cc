#include "ir/node.h"

#include "base/error.h"
#include "ir/visit.h"

namespace sator {

bool Equality::nodes(const NodeRef& a, const NodeRef& b) {
  if (!a || !b) return !a && !b;
  if (&a->info() != &b->info()) return false;
  if (a->info().has_identity) {
    auto f = forward_.find(a.get());
    auto g = backward_.find(b.get());
    if (f != forward_.end() || g != backward_.end())
      return f != forward_.end() && g != backward_.end() && f->second == b.get() && g->second == a.get();
    bool by_value = !defining_ && !map_free_variables && a->info().free_by_value;
    if (!defining_ && !map_free_variables && !by_value) return a.get() == b.get();
    bool outer = std::exchange(by_value_, by_value);
    bool same = a->info().equal(*a, *b, *this);
    by_value_ = outer;
    if (!same) return false;
    forward_.emplace(a.get(), b.get());
    backward_.emplace(b.get(), a.get());
    return true;
  }
  // Without definitions inside, one object equals itself; with them its variables still need their mapping.
  return a->info().equal(*a, *b, *this);
}

bool Equality::define(const NodeRef& a, const NodeRef& b) {
  if (by_value_) return nodes(a, b);
  bool outer = std::exchange(defining_, true);
  bool same = nodes(a, b);
  defining_ = outer;
  return same;
}

void Hasher::node(const NodeRef& n) {
  if (!n) {
    mix(0);
    return;
  }
  mix(reinterpret_cast<uintptr_t>(n->info().name.data()));
  if (!n->info().has_identity) {
    n->info().hash(*n, *this);
    return;
  }
  auto [at, fresh] = numbers_.emplace(n.get(), numbers_.size() + 1);
  mix(at->second);
  if (fresh) n->info().hash(*n, *this);
}

void Hasher::define(const NodeRef& n) { node(n); }

bool equal(const NodeRef& a, const NodeRef& b, bool map_free_variables) {
  Equality eq;
  eq.map_free_variables = map_free_variables;
  return eq.nodes(a, b);
}

uint64_t structural_hash(const NodeRef& n) {
  Hasher h;
  h.node(n);
  return h.result();
}

namespace {

class Replacer {
 public:
  explicit Replacer(const NodeMap& map) : map_(map) {}
  NodeRef operator()(const NodeRef& n) {
    if (auto at = map_.find(n); at != map_.end()) return at->second;
    if (n->info().is_leaf) return n;
    if (!n->info().has_identity) return children(n);
    if (auto at = done_.find(n); at != done_.end()) return at->second;
    NodeRef out = children(n);
    done_.emplace(n, out);
    return out;
  }

 private:
  NodeRef children(const NodeRef& n) {
    return n->info().map_children(*n, [this](const NodeRef& child) { return (*this)(child); });
  }
  const NodeMap& map_;
  NodeMap done_;
};

}  // namespace

void detail::fail_too_deep(const NodeBase& node) {
  fail({.what = text("the ", node.info().name, " would have ", node.depth(), " levels of parts within each other"),
        .needs = text("at most ", kDeepestNode),
        .hint = "give inner parts names of their own: bind them to variables, or store them in buffers"});
}

NodeRef replace_nodes(const NodeRef& root, const NodeMap& map) {
  return root && !map.empty() ? Replacer(map)(root) : root;
}

}  // namespace sator
