// Virtual threads run one after the other, statement by statement: what depends on the thread is written out once for each.
//   vthread v of 2: B = alloc(4); B[i] = v; C[i] = 0   =>   B = alloc(8); B[i] = 0; B[4 + i] = 1; C[i] = 0
// Memory that is allocated inside and depends on the thread is kept once for each of them.
#include <algorithm>

#include "passes/lower/lower.h"
#include "tir/copy.h"

namespace sator::passes {

using namespace tir;

namespace {

/// More copies of a statement than these are a loop.
constexpr int64_t kMaxCopies = 16;

/// The axis that a statement opens; nothing for others.
struct VirtualAxis {
  VarRef var;
  Expr min, extent;
  Stmt body;
};

std::optional<VirtualAxis> virtual_axis(const Stmt& stmt) {
  if (const For* n = stmt.as<For>(); n && n->kind == LoopKind::thread_binding && n->thread.starts_with("vthread"))
    return VirtualAxis{n->var, n->min, n->extent, n->body};
  const AttrStmt* n = stmt.as<AttrStmt>();
  const ThreadAxis* axis = n && n->node ? n->node.as<ThreadAxis>() : nullptr;
  if (!axis || !(n->key == "virtual_thread" || axis->tag.starts_with("vthread"))) return {};
  return VirtualAxis{axis->var, int_imm(0, axis->var->dtype), n->value, n->body};
}

/// Writes out one axis.
class AxisWriter {
 public:
  explicit AxisWriter(const VirtualAxis& axis) : axis_(axis) {
    count_ = as_int(axis.extent).value_or(0);
    if (count_ < 1 || !is_zero(axis.min))
      fail({.what = text("virtual thread ", axis.var->name, " runs over ", axis.extent, " from ", axis.min),
            .needs = "a constant number of virtual threads, from 0 on",
            .hint = "split the loop by a constant factor and bind the inner loop"});
    walk(axis.body, [&](const Allocate& n) { inside_.insert(n.data.get()); });
    // What is computed of memory that depends on the thread depends on it too.
    for (size_t known = SIZE_MAX; known != own_.size();) {
      known = own_.size();
      mark(axis.body, false);
    }
  }

  Stmt run(const Stmt& stmt) {
    if (const Seq* n = stmt.as<Seq>()) {
      std::vector<Stmt> out;
      for (const Stmt& s : n->stmts) out.push_back(run(s));
      return seq(std::move(out));
    }
    if (const Allocate* n = stmt.as<Allocate>()) {
      Allocate out = *n;
      if (own_.contains(n->data.get())) {
        if (n->extents.size() != 1)
          fail({.what = text("the memory of ", n->data->name, " of several dimensions depends on a virtual thread"),
                .needs = "flat memory",
                .hint = "run FlattenBuffer before"});
        sizes_[n->data.get()] = n->extents[0];
        out.extents = {n->extents[0] * count_};
      }
      out.body = run(n->body);
      return Stmt(new Allocate(std::move(out)));
    }
    if (const DeclBuffer* n = stmt.as<DeclBuffer>()) return make<DeclBuffer>(grown(n->buffer), run(n->body));
    if (const AttrStmt* n = stmt.as<AttrStmt>(); n && !depends(n->value))
      return with(*n, &AttrStmt::body, run(n->body));
    if (const For* n = stmt.as<For>(); n && !depends(n->min) && !depends(n->extent))
      return with(*n, &For::body, run(n->body));
    if (const IfThenElse* n = stmt.as<IfThenElse>(); n && !depends(n->condition))
      return make<IfThenElse>(n->condition, run(n->then_case), n->else_case ? run(n->else_case) : Stmt());
    if (const LetStmt* n = stmt.as<LetStmt>(); n && !depends(n->value)) return with(*n, &LetStmt::body, run(n->body));
    return depends(stmt) ? copies(shifted(stmt)) : stmt;
  }

 private:
  /// Whether the expression or statement depends on the thread.
  bool depends(const NodeRef& node) const {
    bool found = false;
    walk(node, [&](const Var& v) { found |= &v == axis_.var.get() || own_.contains(&v); });
    return found;
  }

  /// Finds the memory whose contents depend on the thread.
  void mark(const NodeRef& node, bool under) {
    if (const BufferStore* n = node->as<BufferStore>()) {
      const Var* data = n->buffer->data.get();
      bool own = under || depends(n->value);
      for (const Expr& i : n->indices) own |= depends(i);
      if (own && inside_.contains(data)) own_.insert(data);
      return;
    }
    if (const Evaluate* n = node->as<Evaluate>(); n && (under || depends(n->value))) {
      walk(n->value, [&](const Var& v) {
        if (inside_.contains(&v)) own_.insert(&v);
      });
    }
    if (const For* n = node->as<For>()) under |= depends(n->min) || depends(n->extent);
    if (const IfThenElse* n = node->as<IfThenElse>()) under |= depends(n->condition);
    if (const While* n = node->as<While>()) under |= depends(n->condition);
    if (const LetStmt* n = node->as<LetStmt>()) under |= depends(n->value);
    node->info().each_child(*node, [&](const NodeRef& child) {
      if (child->as<StmtNode>()) mark(child, under);
    });
  }

  BufferRef grown(const BufferRef& b) {
    auto size = sizes_.find(b->data.get());
    if (size == sizes_.end()) return b;
    auto [at, fresh] = grown_.try_emplace(b);
    if (fresh) {
      if (b->shape.size() != 1 || !b->strides.empty())
        fail({.what = text("buffer ", b->name, " of several dimensions depends on a virtual thread"),
              .needs = "flat buffers",
              .hint = "run FlattenBuffer before"});
      at->second = with(*b, &Buffer::shape, std::vector<Expr>{b->shape[0] * count_});
    }
    return at->second;
  }

  /// The index in the thread's own part.
  std::vector<Expr> indexed(const Buffer& b, const std::vector<Expr>& indices) const {
    const Expr part = cast_to(indices[0]->dtype.element(), axis_.var) * sizes_.at(b.data.get());
    if (const Ramp* r = indices[0].as<Ramp>()) return {make<Ramp>(r->base + part, r->stride, Lanes(r->lanes))};
    return {indices[0] + part};
  }

  Stmt shifted(const Stmt& stmt) {
    return transform(
        stmt,
        [&](const BufferLoad& n) -> Expr {
          return sizes_.contains(n.buffer->data.get()) ? load(grown(n.buffer), indexed(*n.buffer, n.indices))
                                                       : Expr(ref(n));
        },
        [&](const BufferStore& n) -> Stmt {
          return sizes_.contains(n.buffer->data.get()) ? store(grown(n.buffer), n.value, indexed(*n.buffer, n.indices))
                                                       : Stmt(ref(n));
        },
        [&](const Call& n) -> Expr {
          const Var* data = n.op == "tir.tvm_access_ptr" ? n.args[1].as<Var>() : nullptr;
          auto size = data ? sizes_.find(data) : sizes_.end();
          if (size == sizes_.end()) return ref(n);
          std::vector<Expr> args = n.args;
          args[2] = args[2] + cast_to(args[2]->dtype, axis_.var) * size->second;
          return call(n.dtype, n.op, std::move(args));
        });
  }

  Stmt copies(const Stmt& stmt) const {
    const DType d = axis_.var->dtype;
    if (count_ > kMaxCopies) return for_loop(axis_.var, int_imm(count_, d), stmt);
    std::vector<Stmt> out;
    for (int64_t i = 0; i < count_; ++i) out.push_back(fresh_copy(stmt, substitutions({{axis_.var, int_imm(i, d)}})));
    return seq(std::move(out));
  }

  const VirtualAxis& axis_;
  int64_t count_ = 0;
  std::unordered_set<const Var*> inside_,
      own_;  ///< pointers allocated inside; those whose contents depend on the thread
  std::unordered_map<const Var*, Expr> sizes_;  ///< of one thread's part
  BufferMap grown_;
};

/// Inner axes first.
Stmt written_out(const Stmt& stmt) {
  NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
    const StmtNode* s = child->as<StmtNode>();
    return s ? NodeRef(written_out(ref(*s))) : child;
  });
  Stmt s = cast<StmtNode>(out);
  std::optional<VirtualAxis> axis = virtual_axis(s);
  return axis ? AxisWriter(*axis).run(axis->body) : s;
}

}  // namespace

PrimFuncRef inject_virtual_thread(const PrimFuncRef& func, const LowerOptions&) {
  return with_body(func, written_out(func->body));
}

}  // namespace sator::passes
