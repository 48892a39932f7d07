// What analyses found in programs of one schedule, kept by what they read.
#pragma once

#include <unordered_map>

#include "base/function_ref.h"
#include "base/pooled.h"
#include "ir/node.h"

namespace sator::schedule {

/// Findings of one analysis by the nodes that it reads, which are told apart by identity: a step rebuilds the way from the root to what it
/// changes and leaves all other nodes as they are, so that what was found of these still holds.
template <class T>
class Findings {
 public:
  using Nodes = PooledVector<NodeRef>;  ///< null is a node too
  /// What `find` gives, once for the same nodes.
  const T& of(Nodes read, FunctionRef<T()> find) {
    if (auto at = found_.find(read); at != found_.end()) return at->second;
    T made = find();
    return found_.emplace(std::move(read), std::move(made)).first->second;
  }

 private:
  struct Hash {
    size_t operator()(const Nodes& nodes) const {
      size_t h = nodes.size();
      for (const NodeRef& n : nodes) h = h * 0x9e3779b97f4a7c15u + (reinterpret_cast<size_t>(n.get()) >> 4);
      return h;
    }
  };
  std::unordered_map<Nodes, T, Hash> found_;
};

}  // namespace sator::schedule
