// A buffer is allocated by the innermost block or loop around all its uses, not by the block that owned it: there it can
// be small, and each thread of a parallel loop has its own.
#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "passes/lower/lower.h"
#include "tir/regions.h"

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
  /// Those that a block without iterators, or none, writes and reads, with the depth of the block that allocates them.
  std::unordered_map<const Var*, size_t> carried;

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
    // Instances of reduction and other ordered iterators pass values on: what they pass lives outside of the loops that
    // these iterators follow.
    size_t reduced = SIZE_MAX;
    std::unordered_map<const Var*, size_t> ordered;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      const IterVar& iter = *block.iter_vars[i];
      size_t outermost = SIZE_MAX;
      for (const VarRef& v : vars_in(realize.values[i])) {
        if (auto at = depth_of_.find(v.get()); at != depth_of_.end()) outermost = std::min(outermost, at->second - 1);
        if (auto at = iter_depth_.find(v.get()); at != iter_depth_.end()) outermost = std::min(outermost, at->second);
      }
      iter_depth_[iter.var.get()] = std::min(outermost, path_.size());
      if (iter.kind == IterKind::reduce) reduced = std::min(reduced, outermost);
      if (iter.kind == IterKind::opaque || iter.kind == IterKind::scan) ordered[iter.var.get()] = outermost;
    }
    auto use_region = [&](const BufferRegion& region, size_t limit) {
      for (const VarRef& v : vars_in(ref(region))) {
        if (auto at = ordered.find(v.get()); at != ordered.end()) limit = std::min(limit, at->second);
      }
      if (limit != SIZE_MAX) use(region.buffer->data, limit);
    };
    for (const BufferRegionRef& r : block.reads) use_region(*r, SIZE_MAX);
    for (const BufferRegionRef& r : block.writes) use_region(*r, reduced);
    path_.push_back(&block);
    for (const BufferRef& b : block.alloc_buffers) depth_of_owner_[b->data.get()] = path_.size();
    const auto outer = std::exchange(in_and_out_, {});
    const size_t outer_iterators = iterators_;
    if (block.iter_vars.empty())
      in_and_out_ = in_and_out(block.body);
    else
      iterators_ = path_.size();
    for (const MatchBufferRef& m : block.match_buffers) use(m->source);
    if (block.init) visit(block.init);
    visit(block.body);
    in_and_out_ = outer;
    iterators_ = outer_iterators;
    path_.pop_back();
  }

  /// What the statement both stores and loads, without what the blocks in it do.
  static std::unordered_set<const Var*> in_and_out(const Stmt& stmt) {
    std::unordered_set<const Var*> stored, both;
    auto each = [&](auto&& visit) {
      walk(
          stmt,
          [&](const Block&) { return false; },
          [&](const BufferStore& n) { visit(*n.buffer->data, true); },
          [&](const BufferLoad& n) { visit(*n.buffer->data, false); });
    };
    each([&](const Var& data, bool is_store) {
      if (is_store) stored.insert(&data);
    });
    each([&](const Var& data, bool is_store) {
      if (!is_store && stored.count(&data)) both.insert(&data);
    });
    return both;
  }

  /// Without iterators nobody says which loops pass values on: any loop may whose iterations come one after the other. What threads
  /// have for themselves, or share, does not outlive them.
  size_t carrying_loop(const Var& data) const {
    const bool of_threads = !data.scope.empty() && data.scope != "global";
    size_t begin = iterators_;
    auto loop = [&](size_t i) { return ref(*path_[i]).as<For>(); };
    for (size_t i = begin; of_threads && i < path_.size(); ++i) {
      if (const For* f = loop(i); f && f->kind == LoopKind::thread_binding) begin = i + 1;
    }
    for (size_t i = begin; i < path_.size(); ++i) {
      if (const For* f = loop(i); f && f->kind != LoopKind::thread_binding && f->kind != LoopKind::parallel) return i;
    }
    return SIZE_MAX;
  }

  /// Uses that count for a node at most `limit` deep.
  void use(const NodeRef& root, size_t limit = SIZE_MAX) {
    walk(root, [&](const Var& v) {
      if (!by_data_.count(&v)) return;
      size_t depth = std::min(path_.size(), limit);
      if (in_and_out_.count(&v)) {
        carried[&v] = depth_of_owner_[&v];
        depth = std::min(depth, carrying_loop(v));
      }
      Path here(path_.begin(), path_.begin() + static_cast<std::ptrdiff_t>(depth));
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
  std::unordered_map<const Var*, size_t> depth_of_;  // loop variable -> its depth
  std::unordered_set<const Var*> in_and_out_;        // of the block we are in, if that has no iterators
  size_t iterators_ = 0;                             // the depth below the last block with iterators
  std::unordered_map<const Var*, size_t> depth_of_owner_;
  std::unordered_map<const Var*, size_t> iter_depth_;  // block iterator -> depth outside of the loops it follows
};

/// The program with the allocations of `at` in place of those it had.
class Mover {
 public:
  std::unordered_map<const StmtNode*, std::vector<BufferRef>> at;
  std::unordered_set<const Buffer*> moved;

  explicit Mover(const PrimFunc& func, const std::unordered_set<const Buffer*>& allocated) : allocated_(allocated) {
    for (const auto& [param, buffer] : func.buffer_map) visible_[buffer->data] = buffer;
  }

  Stmt run(const Stmt& stmt) {
    const Block* block = stmt.as<Block>();
    std::vector<BufferRef> own;
    if (block) {
      std::ranges::copy_if(
          block->alloc_buffers, std::back_inserter(own), [&](const BufferRef& b) { return !moved.contains(b.get()); });
      for (const MatchBufferRef& m : block->match_buffers) visible_[m->buffer->data] = m->buffer;
    }
    if (auto found = at.find(stmt.get()); found != at.end())
      own.insert(own.end(), found->second.begin(), found->second.end());
    for (const BufferRef& b : own) visible_[b->data] = b;
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      return s ? NodeRef(run(ref(*s))) : child;
    });
    for (const BufferRef& b : own) visible_.erase(b->data);
    if (block) {
      for (const MatchBufferRef& m : block->match_buffers) visible_.erase(m->buffer->data);
      return with_own(*cast<Block>(out), std::move(own));
    }
    const For* loop = out.as<For>();
    if (!loop || own.empty()) return cast<StmtNode>(out);
    return with(*loop, &For::body, with_allocation(loop->body, own));
  }

 private:
  /// The block with these buffers; its regions speak of what is outside of it.
  Stmt with_own(const Block& block, std::vector<BufferRef> own) const {
    auto inside = [&](const BufferRegionRef& r) {
      return allocated_.contains(r->buffer.get()) && !visible_.contains(r->buffer->data);
    };
    Block out = block;
    bool changed = std::erase_if(out.reads, inside) + std::erase_if(out.writes, inside) != 0;
    for (std::vector<BufferRegionRef>* regions : {&out.reads, &out.writes})
      if (outside(*regions)) changed = true;
    if (!changed && own == block.alloc_buffers) return ref(block);
    out.alloc_buffers = std::move(own);
    return Stmt(new Block(std::move(out)));
  }

  Stmt with_allocation(const Stmt& body, const std::vector<BufferRef>& buffers) const {
    Block block = *block_around(body, visible_, buffers);
    outside(block.reads);
    outside(block.writes);
    return make<BlockRealize>(std::vector<Expr>{}, bool_imm(true), BlockRef(new Block(std::move(block))));
  }

  /// Regions that take their bounds from a buffer inside become their whole buffers; whether there were any.
  bool outside(std::vector<BufferRegionRef>& regions) const {
    bool changed = false;
    for (BufferRegionRef& r : regions) {
      bool inside = false;
      walk(r, [&](const BufferLoad& load) {
        inside |= allocated_.contains(load.buffer.get()) && !visible_.contains(load.buffer->data);
      });
      if (inside) r = full_region(r->buffer);
      changed |= inside;
    }
    return changed;
  }

  const std::unordered_set<const Buffer*>& allocated_;
  VisibleBuffers visible_;
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
  Mover mover(*func, allocated);
  for (const BufferRef& b : in_order) {
    auto path = uses.common.find(b->data.get());
    if (path == uses.common.end()) {  // never used
      mover.moved.insert(b.get());
      continue;
    }
    auto carried = uses.carried.find(b->data.get());
    const bool stays = carried != uses.carried.end() && path->second.size() < carried->second;
    if (path->second.empty() || stays) continue;
    mover.moved.insert(b.get());
    mover.at[path->second.back()].push_back(b);
  }
  return with_body(func, mover.run(func->body));
}

}  // namespace sator::passes
