// Allocations move out of their loops, to the start of the function or of the outermost parallel loop or thread axis, or the innermost
// virtual thread, around them, and those that are not needed at the same time share memory.
//   B = alloc(16); C = alloc(16); for i: B[i] = A[i]; for i: C[i] = B[i] * 2; ...   =>   C lies in B's memory
// A buffer is needed from the first to the last statement, of the list in which it is allocated, that touches it. Where one
// statement ends one buffer and begins another, both share memory if every element is read where it is overwritten.
// Source: as the interference of live ranges in Chaitin, "Register allocation via coloring", 1982, greedily in program order.
#include <algorithm>
#include <deque>

#include "arith/analyzer.h"
#include "arith/iter_map.h"
#include "passes/lower/lower.h"
#include "passes/lower/vector_elements.h"

namespace sator::passes {

using namespace tir;

namespace {

/// A statement in the order in which the program runs: [begin, end] holds those inside of it.
struct StmtSpan {
  const StmtNode* stmt;
  int64_t begin, end;
};

struct Allocation {
  Ref<const Allocate> node;
  const StmtNode* attach;  ///< the loop or thread axis whose body holds the memory; null: the function
  size_t level;            ///< statements around it
  const StmtSpan *first = nullptr, *last = nullptr;
  int64_t bits = 0;  ///< 0: not constant
  bool shared = false;
  size_t storage = SIZE_MAX;
};

/// One piece of memory, for allocations that are not needed at the same time.
struct MemoryPiece {
  const StmtNode* attach;
  std::vector<const Allocation*> users;
  int64_t bits;
};

bool is_thread_axis(const AttrStmt& n) { return n.key == "thread_extent" || n.key == "virtual_thread"; }

/// Virtual threads have memory of their own each, for they run one statement after the other in turns.
bool is_virtual_thread(const StmtNode& stmt) {
  if (const For* n = stmt.as<For>()) return n->kind == LoopKind::thread_binding && n->thread.starts_with("vthread");
  const AttrStmt* n = stmt.as<AttrStmt>();
  const ThreadAxis* axis = n && is_thread_axis(*n) && n->node ? n->node.as<ThreadAxis>() : nullptr;
  return n && (n->key == "virtual_thread" || (axis && axis->tag.starts_with("vthread")));
}

/// The allocations of a function and where they are used.
class BufferLifetimes {
 public:
  std::deque<Allocation> allocations;

  explicit BufferLifetimes(const Stmt& body) { visit(body); }

  Allocation* of(const Var* pointer) {
    auto at = by_pointer_.find(pointer);
    return at == by_pointer_.end() ? nullptr : at->second;
  }

 private:
  void visit(const Stmt& stmt) {
    if (const Seq* n = stmt.as<Seq>()) {
      for (const Stmt& s : n->stmts) visit(s);
    } else if (const Allocate* n = stmt.as<Allocate>()) {
      allocate(*n);
      visit(n->body);
    } else if (const DeclBuffer* n = stmt.as<DeclBuffer>()) {
      visit(n->body);
    } else if (const AllocateConst* n = stmt.as<AllocateConst>()) {
      visit(n->body);
    } else if (const LetStmt* n = stmt.as<LetStmt>()) {
      inner_.insert(n->var.get());
      leaf(stmt.get(), n->value);
      visit(n->body);
    } else if (const AttrStmt* n = stmt.as<AttrStmt>();
               n && (!is_thread_axis(*n) || (attach_ && !is_virtual_thread(*n)))) {
      if (const ThreadAxis* axis = n->node ? n->node.as<ThreadAxis>() : nullptr) inner_.insert(axis->var.get());
      visit(n->body);
    } else if (stmt.as<BufferStore>() || stmt.as<Evaluate>()) {
      leaf(stmt.get(), stmt);
    } else {
      scope(stmt);
    }
  }

  void leaf(const StmtNode* stmt, const NodeRef& touches) {
    const int64_t now = ++time_;
    places_.push_back({stmt, now, now});
    open_.push_back(&places_.back());
    touch(touches);
    open_.pop_back();
  }

  void scope(const Stmt& stmt) {
    const int64_t now = ++time_;
    places_.push_back({stmt.get(), now, now});
    StmtSpan* place = &places_.back();
    open_.push_back(place);
    const For* loop = stmt.as<For>();
    const AttrStmt* axis = stmt.as<AttrStmt>();
    const bool begins =
        is_virtual_thread(*stmt) ||
        (!attach_ && (axis || (loop && (loop->kind == LoopKind::parallel || loop->kind == LoopKind::thread_binding))));
    const StmtNode* outer = attach_;
    if (begins) attach_ = stmt.get();
    if (loop) inner_.insert(loop->var.get());
    stmt->info().each_child(*stmt, [&](const NodeRef& child) {
      const StmtNode* s = child->as<StmtNode>();
      s ? visit(ref(*s)) : touch(child);
    });
    attach_ = outer;
    open_.pop_back();
    place->end = ++time_;
  }

  void touch(const NodeRef& node) {
    walk(node, [&](const Var& v) {
      Allocation* a = of(&v);
      if (!a) return;
      const StmtSpan* place = open_.at(std::min(a->level, open_.size() - 1));
      if (!a->first) a->first = place;
      a->last = place;
    });
  }

  void allocate(const Allocate& n) {
    // An extent that is computed inside of the loops cannot leave them.
    bool movable = is_one(n.condition) && !n.extents.empty();
    for (const Expr& e : n.extents) {
      for (const VarRef& v : vars_in(e)) movable &= !inner_.contains(v.get());
    }
    if (!movable) return;
    int64_t bits = n.dtype.is_scalable ? 0 : int64_t{n.dtype.bits} * n.dtype.lanes;  // 0: not known
    for (const Expr& e : n.extents) bits *= as_int(e).value_or(0);
    allocations.push_back({.node = ref(n), .attach = attach_, .level = open_.size(), .bits = bits});
    by_pointer_[n.data.get()] = &allocations.back();
  }

  std::deque<StmtSpan> places_;
  std::vector<const StmtSpan*> open_;
  std::unordered_map<const Var*, Allocation*> by_pointer_;
  std::unordered_set<const Var*> inner_;  ///< variables of loops, axes and bindings
  const StmtNode* attach_ = nullptr;
  int64_t time_ = 0;
};

/// Whether each element of `to` that a statement writes is written once, and of `from` read only where that happens.
bool elementwise(const StmtNode* stmt, const Var* from, const Var* to) {
  bool ok = true;
  std::optional<std::vector<Expr>> place;
  arith::RangeMap loops;
  auto same = [&](const std::vector<Expr>& indices) {
    if (!place) place = indices;
    return std::ranges::equal(*place, indices, [](const Expr& a, const Expr& b) { return equal(a, b); });
  };
  std::function<void(const NodeRef&, bool)> visit = [&](const NodeRef& node, bool stored) {
    if (const Var* v = node->as<Var>()) {
      ok &= v != from && v != to;
      return;
    }
    const BufferLoad* load = node->as<BufferLoad>();
    const BufferStore* write = node->as<BufferStore>();
    const Var* data = load ? load->buffer->data.get() : write ? write->buffer->data.get() : nullptr;
    if (load && data == from) ok &= stored && same(load->indices);
    if (load && data == to) ok &= same(load->indices);
    if (write && data == from) ok = false;
    if (write && data == to) ok &= same(write->indices);
    if (const For* n = node->as<For>()) loops[n->var] = make<Range>(n->min, n->extent);
    if (node->as<While>()) ok = false;
    node->info().each_child(*node, [&](const NodeRef& child) {
      if (!child->as<Buffer>()) visit(child, write ? data == to : stored);
    });
  };
  visit(ref(*stmt), false);
  if (!ok || !place) return false;
  arith::Analyzer analyzer;
  return loops.empty() || arith::detect_iter_map(*place, loops, nullptr, arith::IterMapLevel::bijective, analyzer).ok();
}

/// Which allocations share memory.
class StoragePlan {
 public:
  std::vector<MemoryPiece> storages;

  explicit StoragePlan(std::deque<Allocation>& all) {
    std::vector<Allocation*> order;
    for (Allocation& a : all) {
      if (a.first) order.push_back(&a);
    }
    std::ranges::stable_sort(order, {}, [](const Allocation* a) { return a->first->begin; });
    for (Allocation* a : order) {
      for (Allocation* old : order) {
        if (old->storage != SIZE_MAX && old->last->end < a->first->begin) release(*old);
      }
      const bool alone = std::ranges::count(order, a->first, &Allocation::first) == 1;
      size_t storage = alone ? taken_over(*a, order) : SIZE_MAX;
      if (storage == SIZE_MAX) storage = found(*a);
      if (storage == SIZE_MAX) {
        storage = storages.size();
        storages.push_back({a->attach, {}, 0});
      }
      a->storage = storage;
      storages[storage].users.push_back(a);
      storages[storage].bits = std::max(storages[storage].bits, a->bits);
    }
  }

 private:
  /// Of these the compiler makes registers, if they are left alone.
  static bool is_small(const Allocate& n, int64_t bits) {
    const std::string& scope = n.data->scope;
    const bool plain = scope.find('.') == scope.npos || scope == "shared.dyn";
    const bool own = scope == "local" || scope == "warp";
    return plain && (own || n.dtype.is_handle() || bits <= 32);
  }

  void release(Allocation& a) {
    if (!released_.insert(&a).second || a.shared) return;
    if (a.bits > 0 && a.node->extents.size() == 1 && !is_small(*a.node, a.bits)) free_.push_back(a.storage);
  }

  /// The memory of the one that the allocation's first statement uses last, if it may be overwritten element by element.
  size_t taken_over(const Allocation& a, const std::vector<Allocation*>& order) {
    for (Allocation* old : order) {
      if (old == &a || old->storage == SIZE_MAX || old->last != a.first || old->shared) continue;
      const bool alike = old->attach == a.attach && old->bits == a.bits && a.bits > 0 &&
                         old->node->dtype == a.node->dtype && old->node->data->scope == a.node->data->scope &&
                         old->node->extents.size() == a.node->extents.size();
      if (!alike || !elementwise(a.first->stmt, old->node->data.get(), a.node->data.get())) continue;
      old->shared = true;
      return old->storage;
    }
    return SIZE_MAX;
  }

  /// Free memory of at most 16 times, or else at least a 16th, of the size.
  size_t found(const Allocation& a) {
    if (a.bits == 0 || a.node->extents.size() != 1 || is_small(*a.node, a.bits)) return SIZE_MAX;
    auto best = free_.end();
    auto fits = [&](size_t s) {
      const Allocate& owner = *storages[s].users.front()->node;
      return storages[s].attach == a.attach && owner.data->scope == a.node->data->scope &&
             owner.dtype == a.node->dtype && storages[s].bits <= a.bits * 16 && storages[s].bits >= a.bits / 16;
    };
    auto better = [&](size_t s, size_t than) {
      const int64_t x = storages[s].bits, y = storages[than].bits;
      const bool holds = x >= a.bits, held = y >= a.bits;
      return holds != held ? holds : holds ? x < y : x > y;
    };
    for (auto at = free_.begin(); at != free_.end(); ++at) {
      if (fits(*at) && (best == free_.end() || better(*at, *best))) best = at;
    }
    if (best == free_.end()) return SIZE_MAX;
    const size_t storage = *best;
    free_.erase(best);
    return storage;
  }

  std::vector<size_t> free_;
  std::unordered_set<const Allocation*> released_;
};

/// The program with the planned memory in place of its allocations.
class Rewriter {
 public:
  Rewriter(BufferLifetimes& lifetimes, const StoragePlan& plan) : lifetimes_(lifetimes), plan_(plan) {}

  Stmt run(const Stmt& body) { return renamed(with_storages(nullptr, moved(body))); }

 private:
  Stmt moved(const Stmt& stmt) {
    if (const Allocate* n = stmt.as<Allocate>(); n && lifetimes_.of(n->data.get())) return moved(n->body);
    if (const DeclBuffer* n = stmt.as<DeclBuffer>()) {
      const Allocation* a = lifetimes_.of(n->buffer->data.get());
      if (a && !a->first) return moved(n->body);
    }
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      return s ? NodeRef(moved(ref(*s))) : child;
    });
    if (const AttrStmt* n = out.as<AttrStmt>()) {
      const Allocation* a = n->node && n->node.as<Var>() ? lifetimes_.of(n->node.as<Var>()) : nullptr;
      if (a && !a->first) return n->body;
      Stmt body = with_storages(stmt.get(), n->body);
      return body == n->body ? Stmt(ref(*n)) : with(*n, &AttrStmt::body, body);
    }
    if (const For* n = out.as<For>()) {
      Stmt body = with_storages(stmt.get(), n->body);
      return body == n->body ? Stmt(ref(*n)) : with(*n, &For::body, body);
    }
    return cast<StmtNode>(out);
  }

  Stmt with_storages(const StmtNode* attach, Stmt body) const {
    for (size_t s = plan_.storages.size(); s-- > 0;) {
      const MemoryPiece& storage = plan_.storages[s];
      if (storage.attach != attach) continue;
      const Allocate& owner = *storage.users.front()->node;
      std::vector<Expr> extents = owner.extents;
      const int64_t element = int64_t{owner.dtype.bits} * owner.dtype.lanes;
      if (storage.bits > storage.users.front()->bits)
        extents = {int_imm(storage.bits / element, owner.extents[0]->dtype)};
      body = make<Allocate>(owner.data, owner.dtype, extents, owner.condition, owner.annotations, body);
    }
    return body;
  }

  Stmt renamed(const Stmt& body) const {
    VarMap pointers;
    for (const Allocation& a : lifetimes_.allocations) {
      if (!a.first) continue;
      const VarRef& memory = plan_.storages[a.storage].users.front()->node->data;
      if (memory != a.node->data) pointers[a.node->data] = memory;
    }
    return substitute(body, pointers);
  }

  BufferLifetimes& lifetimes_;
  const StoragePlan& plan_;
};

}  // namespace

PrimFuncRef storage_rewrite(const PrimFuncRef& func, const LowerOptions&) {
  BufferLifetimes lifetimes(func->body);
  StoragePlan plan(lifetimes.allocations);
  PrimFuncRef out = with_body(func, Rewriter(lifetimes, plan).run(func->body));
  return with_vector_elements(out, {.parameters = false, .scalar_reads = false});
}

}  // namespace sator::passes
