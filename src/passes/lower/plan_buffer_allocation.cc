// A buffer is allocated by the innermost block or loop around all its uses, not by the block that owned it: there it can
// be small, and each thread of a parallel loop has its own.
#include <algorithm>
#include <unordered_set>

#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// The nodes from the root to where we are: loops and blocks.
using Path = std::vector<const StmtNode*>;

class UseFinder {
 public:
  explicit UseFinder(const std::unordered_set<const Buffer*>& allocated) {
    for (const Buffer* b : allocated) by_data_[b->data.get()].push_back(b);
  }

  /// For each buffer (by its data pointer) the path to the innermost node around all its uses.
  std::unordered_map<const Var*, Path> common;

  void visit(const Stmt& stmt) {
    if (const BlockRealize* realize = stmt.as<BlockRealize>()) return visit_block(*realize);
    const For* loop = stmt.as<For>();
    if (loop) {
      path_.push_back(loop);
      depth_of_[loop->var.get()] = path_.size();
    }
    stmt->info().each_child(*stmt, [&](const NodeRef& child) {
      if (const StmtNode* s = child->as<StmtNode>()) return visit(ref(*s));
      use(child);
    });
    if (loop) path_.pop_back();
  }

 private:
  void visit_block(const BlockRealize& realize) {
    const Block& block = *realize.block;
    for (const Expr& v : realize.values) use(v);
    use(realize.predicate);
    // What the block accumulates lives outside of the loops that it reduces over.
    size_t limit = SIZE_MAX;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      if (block.iter_vars[i]->kind == IterKind::spatial) continue;
      for (const VarRef& v : vars_in(realize.values[i])) {
        auto at = depth_of_.find(v.get());
        if (at != depth_of_.end()) limit = std::min(limit, at->second - 1);
        if (auto inner = iter_depth_.find(v.get()); inner != iter_depth_.end()) limit = std::min(limit, inner->second);
      }
    }
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      size_t outermost = path_.size();
      for (const VarRef& v : vars_in(realize.values[i])) {
        if (auto at = depth_of_.find(v.get()); at != depth_of_.end()) outermost = std::min(outermost, at->second - 1);
        if (auto at = iter_depth_.find(v.get()); at != iter_depth_.end()) outermost = std::min(outermost, at->second);
      }
      iter_depth_[block.iter_vars[i]->var.get()] = outermost;
    }
    // A block's regions speak of what is outside of it.
    for (const BufferRegionRef& r : block.reads) use(r);
    for (const BufferRegionRef& r : block.writes) use(r, limit);
    path_.push_back(&block);
    for (const MatchBufferRef& m : block.match_buffers) use(m->source);
    if (block.init) visit(block.init);
    visit(block.body);
    path_.pop_back();
  }

  /// Uses that count for a node at most `limit` deep.
  void use(const NodeRef& root, size_t limit = SIZE_MAX) {
    walk(root, [&](const Var& v) {
      if (!by_data_.count(&v)) return;
      Path here(path_.begin(), path_.begin() + static_cast<std::ptrdiff_t>(std::min(path_.size(), limit)));
      auto [at, fresh] = common.emplace(&v, here);
      if (fresh) return;
      Path& path = at->second;
      size_t same = 0;
      while (same < path.size() && same < here.size() && path[same] == here[same]) ++same;
      path.resize(same);
    });
  }

  std::unordered_map<const Var*, std::vector<const Buffer*>> by_data_;
  Path path_;
  std::unordered_map<const Var*, size_t> depth_of_;    // loop variable -> its depth
  std::unordered_map<const Var*, size_t> iter_depth_;  // block iterator -> depth outside of the loops it follows
};

Stmt with_allocation(const Stmt& body, const std::vector<BufferRef>& buffers) {
  BlockRef block = make<Block>(std::vector<IterVarRef>{},
                               buffers,
                               std::vector<MatchBufferRef>{},
                               std::vector<BufferRegionRef>{},
                               std::vector<BufferRegionRef>{},
                               block_name(""),
                               Attrs{},
                               Stmt(),
                               body);
  return make<BlockRealize>(std::vector<Expr>{}, bool_imm(true), block);
}

/// The program with the allocations of `at` in place of those it had.
class Mover {
 public:
  std::unordered_map<const StmtNode*, std::vector<BufferRef>> at;
  std::unordered_set<const Buffer*> moved;

  Stmt run(const Stmt& stmt) {
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      return s ? NodeRef(run(ref(*s))) : child;
    });
    Stmt s = cast<StmtNode>(out);
    auto found = at.find(stmt.get());
    if (const For* loop = s.as<For>()) {
      if (found == at.end()) return s;
      return with(*loop, &For::body, with_allocation(loop->body, found->second));
    }
    const Block* block = s.as<Block>();
    if (!block) return s;
    std::vector<BufferRef> own;
    for (const BufferRef& b : block->alloc_buffers)
      if (!moved.count(b.get())) own.push_back(b);
    if (found != at.end()) own.insert(own.end(), found->second.begin(), found->second.end());
    return own == block->alloc_buffers ? s : Stmt(with(*block, &Block::alloc_buffers, own));
  }
};

}  // namespace

PrimFuncRef plan_buffer_allocation(const PrimFuncRef& func, const LowerOptions&) {
  std::unordered_set<const Buffer*> allocated;
  std::vector<BufferRef> in_order;
  walk(func->body, [&](const Block& b) {
    for (const BufferRef& buffer : b.alloc_buffers)
      if (allocated.insert(buffer.get()).second) in_order.push_back(buffer);
  });
  if (in_order.empty()) return func;
  UseFinder uses(allocated);
  uses.visit(func->body);
  Mover mover;
  for (const BufferRef& b : in_order) {
    auto path = uses.common.find(b->data.get());
    if (path == uses.common.end()) {  // never used
      mover.moved.insert(b.get());
      continue;
    }
    if (path->second.empty()) continue;
    mover.moved.insert(b.get());
    mover.at[path->second.back()].push_back(b);
  }
  return with_body(func, mover.run(func->body));
}

}  // namespace sator::passes
