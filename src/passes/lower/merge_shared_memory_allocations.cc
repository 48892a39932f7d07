// The shared memory of a kernel as one allocation; buffers that are not needed at the same time lie over each other.
//   A_sh = alloc(256 float16); B_sh = alloc(256 float16); ...; C_sh = alloc(256 float32)
//   =>   buf_dyn_shmem = alloc(1024 uint8); B_sh at byte 0, A_sh at byte 512; C_sh at byte 0
// A buffer is needed from the first to the last statement, of the list in which it is allocated, that touches it.
// Source: TVM v0.17, src/tir/transforms/merge_shared_memory_allocations.cc: the order in which memory is taken again.
#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "arith/analyzer.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

bool is_thread_axis(const Stmt& stmt) {
  const AttrStmt* attr = stmt.as<AttrStmt>();
  const For* loop = stmt.as<For>();
  return (attr && attr->key == "thread_extent") || (loop && loop->kind == LoopKind::thread_binding);
}

/// A statement that holds others, or one that touches memory.
struct MemoryStep {
  std::vector<const Var*> touched;  ///< of the allocations beside it, in order
  std::vector<const Var*> first, last;
};
enum class StepEdge { begin, end, both };

/// The steps in the order in which the program runs, with where each allocation is first and last needed.
class SharedLifetimes {
 public:
  std::map<const Var*, const Allocate*> allocations;
  std::vector<const Var*> order;  ///< of the allocations
  std::vector<std::pair<MemoryStep*, StepEdge>> steps;

  SharedLifetimes(const Stmt& body, const std::string& scope) : scope_(scope) {
    visit(body);
    std::set<const Var*> seen;
    for (auto at = steps.rbegin(); at != steps.rend(); ++at) {
      if (at->second == StepEdge::begin) continue;
      for (const Var* v : at->first->touched)
        if (seen.insert(v).second) at->first->last.push_back(v);
    }
    seen.clear();
    for (auto& [step, edge] : steps) {
      if (edge == StepEdge::end) continue;
      for (const Var* v : step->touched)
        if (seen.insert(v).second) step->first.push_back(v);
    }
  }

 private:
  void visit(const Stmt& stmt) {
    if (const Allocate* n = stmt.as<Allocate>()) {
      if (n->data->scope == scope_) {
        allocations[n->data.get()] = n;
        order.push_back(n->data.get());
        level_[n->data.get()] = open_.size();
      }
      return visit(n->body);
    }
    if (const DeclBuffer* n = stmt.as<DeclBuffer>()) return visit(n->body);
    const AttrStmt* attr = stmt.as<AttrStmt>();
    const bool begins = is_thread_axis(stmt) ? !in_threads_
                                             : stmt.as<For>() || stmt.as<While>() || stmt.as<IfThenElse>() ||
                                                   stmt.as<AssertStmt>() || (attr && attr->key == "virtual_thread");
    const bool is_leaf = stmt.as<BufferStore>() || stmt.as<Evaluate>();
    if (!begins && !is_leaf) return visit_children(stmt);
    steps_.emplace_back();
    MemoryStep* step = &steps_.back();
    open_.push_back(step);
    const bool outer = std::exchange(in_threads_, in_threads_ || is_thread_axis(stmt));
    if (begins) steps.emplace_back(step, StepEdge::begin);
    visit_children(stmt);
    steps.emplace_back(step, begins ? StepEdge::end : StepEdge::both);
    in_threads_ = outer;
    open_.pop_back();
  }

  void visit_children(const Stmt& stmt) {
    stmt->info().each_child(*stmt, [&](const NodeRef& child) {
      const StmtNode* s = child->as<StmtNode>();
      s ? visit(ref(*s)) : touch(child);
    });
    if (const BufferStore* store = stmt.as<BufferStore>()) touched(store->buffer->data.get());
  }

  void touch(const NodeRef& node) {
    if (node->as<Buffer>()) return;
    if (const Var* v = node->as<Var>()) return touched(v);
    node->info().each_child(*node, [&](const NodeRef& child) { touch(child); });
    if (const BufferLoad* load = node->as<BufferLoad>()) touched(load->buffer->data.get());
  }

  void touched(const Var* v) {
    auto at = level_.find(v);
    if (at != level_.end() && at->second < open_.size()) open_[at->second]->touched.push_back(v);
  }

  std::string scope_;
  std::deque<MemoryStep> steps_;
  std::vector<MemoryStep*> open_;
  std::map<const Var*, size_t> level_;
  bool in_threads_ = false;
};

/// A piece of the memory. Each layer holds buffers side by side; those of another layer are needed at other times.
struct Piece {
  int64_t bits = 0;  ///< 0: not constant
  std::vector<std::vector<const Var*>> layers;
};

/// Where each buffer lies.
class SharedPlan {
 public:
  std::map<const Var*, Expr> offset;  ///< in bytes
  Expr size = int_imm(0);             ///< in bytes

  explicit SharedPlan(const SharedLifetimes& lifetimes) : lifetimes_(lifetimes) {
    for (const auto& [step, edge] : lifetimes.steps) {
      auto begins_here = [&, step = step](const Var* v) {
        return std::ranges::find(step->first, v) != step->first.end();
      };
      if (edge != StepEdge::begin)
        for (const Var* v : step->last)
          if (edge == StepEdge::end || !begins_here(v)) release(v);
      if (edge != StepEdge::end)
        for (const Var* v : step->first) piece_of_[v] = taken(v);
      if (edge == StepEdge::both)
        for (const Var* v : step->last)
          if (begins_here(v)) release(v);
    }
    place();
  }

 private:
  static constexpr int64_t kReuseFactor = 16;
  static constexpr int64_t kSmallBits = 32;  ///< what stays alone

  const Allocate& node(const Var* v) const { return *lifetimes_.allocations.at(v); }
  int64_t bits_of(const Var* v) const {
    int64_t bits = int64_t{node(v).dtype.bits} * node(v).dtype.lanes;
    for (const Expr& e : node(v).extents) bits *= as_int(e).value_or(0);
    return bits;
  }

  void release(const Var* v) {
    Piece* piece = piece_of_.at(v);
    if (piece->bits > kSmallBits) free_.emplace(piece->bits, piece);
    if (piece->bits == 0) free_symbolic_.push_back(piece);
  }

  Piece* taken(const Var* v) {
    const int64_t bits = bits_of(v);
    if (bits == 0 && !free_symbolic_.empty()) {
      // Of sizes that are not known none holds another: the piece grows to the larger one.
      Piece* piece = free_symbolic_.front();
      free_symbolic_.erase(free_symbolic_.begin());
      piece->layers.push_back({v});
      return piece;
    }
    if (bits <= kSmallBits) return fresh({.bits = bits, .layers = {{v}}});
    auto larger = free_.lower_bound(bits);
    if (larger != free_.end() && larger->first <= bits * kReuseFactor) {
      Piece* piece = larger->second;
      free_.erase(larger);
      piece->layers.push_back({v});
      return piece;
    }
    // Smaller ones side by side, the largest first.
    Piece joined;
    while (larger != free_.begin() && joined.bits < bits) {
      auto smaller = std::prev(larger);
      const Piece& part = *smaller->second;
      joined.bits += part.bits;
      joined.layers.resize(std::max(joined.layers.size(), part.layers.size()));
      for (size_t i = 0; i < part.layers.size(); ++i)
        joined.layers[i].insert(joined.layers[i].end(), part.layers[i].begin(), part.layers[i].end());
      std::erase(pieces_order_, smaller->second);
      larger = free_.erase(smaller);
    }
    joined.bits = std::max(joined.bits, bits);
    joined.layers.push_back({v});
    return fresh(std::move(joined));
  }

  Piece* fresh(Piece piece) {
    pieces_.push_back(std::move(piece));
    pieces_order_.push_back(&pieces_.back());
    return &pieces_.back();
  }

  /// Pieces one after the other, the smallest first; each buffer of a layer begins where the one before it ends.
  void place() {
    std::vector<Piece*> all;
    for (const auto& [bits, piece] : free_) all.push_back(piece);
    for (Piece* p : pieces_order_)
      if (std::ranges::find(all, p) == all.end()) all.push_back(p);
    int64_t align = 1;
    for (const Var* v : lifetimes_.order) align = std::max(align, node(v).dtype.bytes());
    arith::Analyzer analyzer;
    auto aligned = [&](const Expr& bytes) {
      return analyzer.simplify(floordiv(bytes + int_imm(align - 1, bytes->dtype), int_imm(align, bytes->dtype)) *
                               int_imm(align, bytes->dtype));
    };
    for (Piece* piece : all) {
      Expr most = int_imm(0);
      for (const std::vector<const Var*>& layer : piece->layers) {
        Expr at = int_imm(0);
        for (const Var* v : layer) {
          const Expr& extent = node(v).extents[0];
          offset[v] = analyzer.simplify(size + cast_to(extent->dtype, at));
          at = aligned(at + extent * int_imm(node(v).dtype.bytes(), extent->dtype));
        }
        most = analyzer.simplify(max(most, at));
      }
      size = analyzer.simplify(size + most);
    }
  }

  const SharedLifetimes& lifetimes_;
  std::deque<Piece> pieces_;
  std::vector<Piece*> pieces_order_;
  std::map<const Var*, Piece*> piece_of_;
  std::multimap<int64_t, Piece*> free_;
  std::vector<Piece*> free_symbolic_;
};

/// The program with its buffers in the one allocation.
class SharedRewriter {
 public:
  SharedRewriter(const SharedPlan& plan, VarRef memory) : plan_(plan), memory_(std::move(memory)) {}

  Stmt run(const Stmt& body) {
    Stmt out = rewritten(body);
    bool placed = false;
    out = with_memory(out, placed);
    return placed ? out : allocated(out);
  }

 private:
  const Expr* offset_of(const NodeRef& pointer) const {
    auto at = pointer ? plan_.offset.find(pointer.as<Var>()) : plan_.offset.end();
    return at == plan_.offset.end() ? nullptr : &at->second;
  }
  /// In elements; a buffer's elements divide its place.
  static Expr in_elements(const Expr& bytes, DType dtype) {
    arith::Analyzer analyzer;
    return analyzer.simplify(floordiv(bytes, int_imm(dtype.bytes(), bytes->dtype)));
  }
  static Expr moved(const Expr& index, const Expr& by) {
    if (is_zero(by)) return index;
    const Expr add = cast_to(index->dtype.element(), by);
    return index->dtype.lanes == 1 ? index + add : index + make<Broadcast>(add, index->dtype.all_lanes());
  }

  static Expr from(const Expr& by, const Expr& offset) {
    return is_zero(by) ? offset : cast_to(offset->dtype, by) + offset;
  }

  Stmt rewritten(const Stmt& body) {
    std::map<const Buffer*, Expr> moved_by;  // of the new buffers
    return transform(
        body,
        [&](const Buffer& b) -> NodeRef {
          const Expr* by = offset_of(b.data);
          if (!by) return NodeRef(&b);
          if (b.shape.size() != 1)
            refuse(text("the buffer ", b.name, " has ", b.shape.size(), " dimensions"), "run FlattenBuffer before");
          BufferRef out = sator::with(b, &Buffer::data, memory_);
          moved_by.emplace(out.get(), in_elements(*by, b.dtype));
          return out;
        },
        [&](const BufferLoad& l) -> NodeRef {
          auto at = moved_by.find(l.buffer.get());
          return at == moved_by.end() ? NodeRef(&l) : NodeRef(load(l.buffer, {moved(l.indices[0], at->second)}));
        },
        [&](const BufferStore& st) -> NodeRef {
          auto at = moved_by.find(st.buffer.get());
          return at == moved_by.end() ? NodeRef(&st)
                                      : NodeRef(store(st.buffer, st.value, {moved(st.indices[0], at->second)}));
        },
        [&](const Call& c) -> NodeRef { return with_pointers(c); },
        [&](const Allocate& a) -> NodeRef { return offset_of(a.data) ? NodeRef(a.body) : NodeRef(&a); });
  }

  NodeRef with_pointers(const Call& c) const {
    std::vector<Expr> args = c.args;
    for (size_t i = 0; i < args.size(); ++i) {
      const Expr* by = offset_of(args[i]);
      if (!by) continue;
      args[i] = memory_;
      if (c.op == "tir.tvm_access_ptr" && i == 1) {
        args[2] = from(in_elements(*by, args[0]->dtype), args[2]);
      } else if (c.op == "tir.ptx_cp_async" && i == 0) {
        // The memory's elements are bytes.
        const Expr elements = from(in_elements(*by, c.dtype), args[1]);
        args[1] = elements * int_imm(c.dtype.bytes(), elements->dtype);
      } else {
        refuse(text(c.op, " takes the pointer of ", c.args[i].as<Var>()->name),
               "hand it T.tvm_access_ptr or T.address_of");
      }
    }
    return args == c.args ? NodeRef(&c) : NodeRef(sator::with(c, &Call::args, std::move(args)));
  }

  [[noreturn]] static void refuse(std::string what, std::string hint) {
    fail({.what = std::move(what),
          .needs = "shared memory that is accessed by elements of one dimension, or by access pointers",
          .hint = std::move(hint)});
  }

  Stmt allocated(const Stmt& body) const {
    return make<Allocate>(memory_, u8, std::vector<Expr>{plan_.size}, bool_imm(true), Attrs{}, body);
  }

  /// The allocation below the outermost thread axis.
  Stmt with_memory(const Stmt& stmt, bool& placed) const {
    if (placed) return stmt;
    if (is_thread_axis(stmt)) {
      placed = true;
      if (const For* loop = stmt.as<For>()) return sator::with(*loop, &For::body, allocated(loop->body));
      const AttrStmt& axis = *stmt.as<AttrStmt>();
      return sator::with(axis, &AttrStmt::body, allocated(axis.body));
    }
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      return s ? NodeRef(with_memory(ref(*s), placed)) : child;
    });
    return cast<StmtNode>(out);
  }

  const SharedPlan& plan_;
  VarRef memory_;
};

Stmt merged(const Stmt& body, const std::string& scope, const char* name) {
  SharedLifetimes lifetimes(body, scope);
  if (lifetimes.allocations.size() < 2) return body;
  SharedPlan plan(lifetimes);
  for (const Var* v : lifetimes.order)
    if (!plan.offset.contains(v)) plan.offset[v] = int_imm(0);  // never touched
  return SharedRewriter(plan, make_pointer(name, u8, scope)).run(body);
}

}  // namespace

PrimFuncRef merge_shared_memory_allocations(const PrimFuncRef& func, const LowerOptions& options) {
  Stmt body = merged(func->body, "shared.dyn", "buf_dyn_shmem");
  if (option(options, "tir.merge_static_smem", 0)) body = merged(body, "shared", "buf_shmem");
  return body == func->body ? func : with_body(func, body);
}

}  // namespace sator::passes
