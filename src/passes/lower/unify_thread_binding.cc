// One loop per thread axis around each kernel, in place of those that single nests of it are bound with:
//   for bx in blockIdx.x: (for t in threadIdx.x: S(t); for u in threadIdx.x: R(u))
//   =>   for bx in blockIdx.x: for tx in threadIdx.x: (S(tx); R(tx))
#include <algorithm>
#include <utility>

#include "arith/analyzer.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// A loop bound to a thread axis, or the attribute that launches threads of one.
struct ThreadBinding {
  VarRef var;
  std::string tag;
  Expr min, extent;
  Stmt body;
  Attrs annotations;
};

std::optional<ThreadBinding> binding_of(const Stmt& stmt) {
  if (const For* n = stmt.as<For>(); n && n->kind == LoopKind::thread_binding)
    return ThreadBinding{n->var, n->thread, n->min, n->extent, n->body, n->annotations};
  const AttrStmt* n = stmt.as<AttrStmt>();
  if (!n || (n->key != "thread_extent" && n->key != "virtual_thread")) return {};
  const ThreadAxis* axis = n->node.as<ThreadAxis>();
  if (!axis) return {};
  return ThreadBinding{axis->var, axis->tag, int_imm(0, n->value->dtype), n->value, n->body, {}};
}

class Unifier {
 public:
  Stmt run(const Stmt& stmt) {
    if (binding_of(stmt)) return kernel(stmt);
    return descend(stmt);
  }

 private:
  struct Axis {
    VarRef var;
    std::string tag;
    Expr min, extent;
  };

  Stmt descend(const Stmt& stmt) {
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      return s ? NodeRef(run(ref(*s))) : child;
    });
    return cast<StmtNode>(out);
  }

  /// The outermost binding is where a kernel begins.
  Stmt kernel(const Stmt& stmt) {
    axes_.clear();
    coordinates_.clear();
    Stmt body = inside(stmt);
    if (!coordinates_.empty()) body = substitute(body, coordinates_);
    for (size_t i = axes_.size(); i-- > 0;) {
      const Axis& a = axes_[i];
      for (const VarRef& v : vars_in(a.extent)) {
        if (uses_var(body, *v) && bound_in(body, *v))
          fail({.what = text("the extent of ", a.tag, " changes inside of its kernel: ", a.extent),
                .needs = "thread axes whose extents are the same in the whole kernel",
                .hint = "bind a loop of constant extent"});
      }
      body = make<For>(a.var, a.min, a.extent, LoopKind::thread_binding, std::string(a.tag), Attrs{}, body);
    }
    axes_.clear();
    return body;
  }

  static bool bound_in(const Stmt& body, const Var& var) {
    bool found = false;
    walk(
        body,
        [&](const For& n) { found |= n.var.get() == &var; },
        [&](const LetStmt& n) { found |= n.var.get() == &var; });
    return found;
  }

  Stmt children(const Stmt& stmt) {
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      return s ? NodeRef(inside(ref(*s))) : child;
    });
    return cast<StmtNode>(out);
  }

  Stmt inside(const Stmt& stmt) {
    std::optional<ThreadBinding> b = binding_of(stmt);
    if (const BlockRealize* realize = stmt.as<BlockRealize>(); realize && !realize->values.empty()) {
      const BlockRef outside = std::exchange(block_, realize->block);
      const Stmt out = children(stmt);
      block_ = outside;
      return out;
    }
    if (!b) return children(stmt);
    // The loop would go outside of the block, whose statements may only use its own iterators.
    if (block_)
      fail({.what = text("a loop of block ", string_literal(block_->name->text), " is bound to ", b->tag),
            .needs = "no thread loops inside of blocks with iterators",
            .hint = "run LowerInitBlock and ConvertBlocksToOpaque before",
            .at = {{stmt, ""}}});
    const Axis& axis = axis_of(*b, stmt);
    coordinates_[b->var] = cast_to(b->var->dtype, axis.var);
    Stmt body = inside(b->body);
    if (b->annotations.empty()) return body;
    // What a loop is annotated with stays, on a loop of one iteration.
    return make<For>(make_var("var", b->var->dtype),
                     int_imm(0, b->var->dtype),
                     int_imm(1, b->var->dtype),
                     LoopKind::serial,
                     std::string(),
                     b->annotations,
                     body);
  }

  const Axis& axis_of(const ThreadBinding& b, const Stmt& at) {
    auto same = std::ranges::find(axes_, b.tag, &Axis::tag);
    if (same == axes_.end()) {
      std::string name = b.tag;
      std::ranges::replace(name, '.', '_');
      axes_.push_back({make_var(name, b.extent->dtype), b.tag, b.min, b.extent});
      return axes_.back();
    }
    if (!analyzer_.prove_equal(same->min, b.min) || !analyzer_.prove_equal(same->extent, b.extent))
      fail({.what = text(
                "two loops of one kernel are bound to ", b.tag, ", with extents ", same->extent, " and ", b.extent),
            .needs = "the same extent for all loops of a kernel that are bound to one thread axis",
            .hint = "split the longer loop, or put a condition into the shorter one",
            .at = {{at, text("extent ", b.extent)}}});
    return *same;
  }

  arith::Analyzer analyzer_;
  BlockRef block_;  ///< of the iterators that statements here may use; null: outside of such blocks
  std::vector<Axis> axes_;
  VarMap coordinates_;
};

}  // namespace

PrimFuncRef unify_thread_binding(const PrimFuncRef& func, const LowerOptions&) {
  return with_body(func, Unifier().run(func->body));
}

}  // namespace sator::passes
