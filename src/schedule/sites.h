#pragma once

#include "schedule/handles.h"

namespace sator::schedule {

/// Where the loops and blocks of a function stand: read off the program once per version of it, never kept in step.
class Sites {
 public:
  struct Site {
    tir::Stmt stmt;   ///< a For or a BlockRealize
    int parent = -1;  ///< the nearest enclosing loop or block; -1 for the root block
    int scope = -1;   ///< the nearest enclosing block; -1 for the root block
    int depth = 0;
    const tir::For* loop() const { return stmt.as<tir::For>(); }
    const tir::BlockRealize* realize() const { return stmt.as<tir::BlockRealize>(); }
    NodeRef handle() const { return loop() ? NodeRef(loop()->var) : NodeRef(realize()->block->name); }
  };

  explicit Sites(const tir::Stmt& body);

  int count() const { return static_cast<int>(sites_.size()); }
  const Site& operator[](int i) const { return sites_[static_cast<size_t>(i)]; }
  /// -1 where the program has no such loop or block.
  int find(const Loop& loop) const;
  int find(const BlockHandle& block) const;
  const PooledMap<const NodeBase*, int>& handles() const { return by_handle_; }
  /// Is `ancestor` on the way from `site` to the root (or the same)?
  bool is_above(int ancestor, int site) const;
  int lowest_common_ancestor(int a, int b) const;
  /// The blocks directly in this scope block (not those nested in them), in program order.
  std::vector<int> child_blocks(int scope_site) const;
  /// The blocks at or below `site` within its scope: those child blocks of the scope that lie under it.
  std::vector<int> blocks_under(int site) const;
  /// Loops from the scope block of `block_site` inward, outermost first.
  std::vector<int> loops_above(int block_site) const;

 private:
  void visit(const tir::Stmt& stmt, int parent, int scope);
  PooledVector<Site> sites_;
  PooledMap<const NodeBase*, int> by_handle_;
};

}  // namespace sator::schedule
