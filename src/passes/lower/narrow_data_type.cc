// Index arithmetic becomes 32 bits wide where the ranges of its variables prove that it fits:
//   for i in range(int64(16)): A[i * int64(8)]   =>   for i in range(16): A[i * 8]
// A variable stays wide if any expression that it occurs in may leave the narrow dtype.
#include "arith/analyzer.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

bool is_scalar_int(DType d) { return d.is_int() && d.lanes == 1; }

/// Which variables have to stay wide.
class WidthFinder {
 public:
  std::unordered_set<const Var*> bound;  ///< by loops, blocks and bindings: these may change
  std::unordered_set<const Var*> wide;

  explicit WidthFinder(int bits) : bits_(bits) {}

  void visit(const NodeRef& node, bool in_wide = false) {
    if (const Var* v = node->as<Var>()) {
      if (in_wide) wide.insert(v);
      return;
    }
    if (node->as<Buffer>()) return;
    if (const For* n = node->as<For>()) define(n->var, make<Range>(n->min, n->extent));
    if (const LetStmt* n = node->as<LetStmt>(); n && n->var->dtype.is_int()) {
      bound.insert(n->var.get());
      analyzer_.bind(n->var, analyzer_.bounds(n->value));
    }
    if (const Block* n = node->as<Block>()) {
      for (const IterVarRef& iter : n->iter_vars) define(iter->var, iter->dom);
    }
    if (const ExprNode* e = node->as<ExprNode>(); e && e->dtype.is_int()) {
      const arith::Bounds b = e->dtype.lanes == 1 ? analyzer_.bounds(ref(*e)) : arith::Bounds{};
      in_wide |= !fits(b);
    } else if (e && (e->as<BufferLoad>() || e->as<Call>())) {
      in_wide = false;  // an index of its own
    }
    node->info().each_child(*node, [&](const NodeRef& child) { visit(child, in_wide && node->as<ExprNode>()); });
  }

  bool fits(const arith::Bounds& b) const {
    const int64_t limit = int64_t{1} << (bits_ - 1);
    return b.min >= -limit && b.max < limit;
  }
  arith::Analyzer& analyzer() { return analyzer_; }

 private:
  void define(const VarRef& var, const RangeRef& range) {
    bound.insert(var.get());
    analyzer_.bind(var, range);
  }

  int bits_;
  arith::Analyzer analyzer_;
};

class Narrower {
 public:
  Narrower(WidthFinder& widths, int bits) : widths_(widths), narrow_(DType::Int(bits)) {
    for (const Var* v : widths.bound) {
      if (is_scalar_int(v->dtype) && v->dtype.bits > bits && !widths.wide.contains(v)) {
        vars_[ref(*v)] = with(*v, &Var::dtype, narrow_);
      }
    }
  }
  bool any() const { return !vars_.empty(); }

  Stmt stmt(const Stmt& s) {
    if (const For* n = s.as<For>()) {
      For out = *n;
      out.var = var(n->var);
      out.min = as(n->min, out.var->dtype);
      out.extent = as(n->extent, out.var->dtype);
      out.body = stmt(n->body);
      return Stmt(new For(std::move(out)));
    }
    if (const LetStmt* n = s.as<LetStmt>()) {
      VarRef v = var(n->var);
      return make<LetStmt>(as(n->value, v->dtype), v, stmt(n->body));
    }
    if (const BlockRealize* n = s.as<BlockRealize>()) {
      std::vector<Expr> values;
      for (size_t i = 0; i < n->values.size(); ++i)
        values.push_back(as(n->values[i], var(n->block->iter_vars[i]->var)->dtype));
      return make<BlockRealize>(std::move(values), expr(n->predicate), cast<Block>(stmt(n->block)));
    }
    if (const BufferStore* n = s.as<BufferStore>())
      return store(n->buffer, as(n->value, n->value->dtype), each(n->indices));
    if (const Evaluate* n = s.as<Evaluate>()) return make<Evaluate>(as(n->value, n->value->dtype));
    NodeRef out = s->info().map_children(*s, [&](const NodeRef& child) { return part(child); });
    return cast<StmtNode>(out);
  }

 private:
  VarRef var(const VarRef& v) const {
    auto at = vars_.find(v);
    return at == vars_.end() ? v : at->second;
  }

  /// Parts of a statement.
  NodeRef part(const NodeRef& node) {
    if (const StmtNode* s = node->as<StmtNode>()) return stmt(ref(*s));
    if (const ExprNode* e = node->as<ExprNode>())
      return node->as<Var>() ? NodeRef(var(cast<Var>(node))) : NodeRef(expr(ref(*e)));
    if (const IterVar* n = node->as<IterVar>()) {
      VarRef v = var(n->var);
      return make<IterVar>(make<Range>(as(n->dom->min, v->dtype), as(n->dom->extent, v->dtype)), v, IterKind{n->kind});
    }
    if (const Range* n = node->as<Range>()) {
      Expr min = expr(n->min), extent = expr(n->extent);
      match_dtypes(min, extent, "a range");
      return make<Range>(min, extent);
    }
    if (node->as<BufferRegion>() || node->as<MatchBuffer>())
      return node->info().map_children(*node, [&](const NodeRef& child) { return part(child); });
    return node;
  }

  std::vector<Expr> each(const std::vector<Expr>& all) {
    std::vector<Expr> out;
    for (const Expr& e : all) out.push_back(expr(e));
    return out;
  }

  /// The expression in this dtype.
  Expr as(const Expr& e, DType dtype) { return cast_to(dtype, expr(e)); }

  /// The expression, narrow where its operands are and it fits.
  Expr expr(const Expr& e) {
    if (const Var* n = e.as<Var>()) return var(ref(*n));
    const bool narrows =
        is_scalar_int(e->dtype) && e->dtype.bits > narrow_.bits && widths_.fits(widths_.analyzer().bounds(e));
    if (const IntImm* n = e.as<IntImm>()) return narrows ? int_imm(n->value, narrow_) : e;
    if (const Cast* n = e.as<Cast>()) return as(n->value, narrows ? narrow_ : n->dtype);
    if (const BufferLoad* n = e.as<BufferLoad>()) return load(n->buffer, each(n->indices));
    if (const Select* n = e.as<Select>()) {
      Expr a = expr(n->true_value), b = expr(n->false_value);
      match_dtypes(a, b, "a choice");
      return make<Select>(expr(n->condition), a, b);
    }
    if (const Call* n = e.as<Call>()) {
      if (n->op == "tir.if_then_else") {
        Expr a = expr(n->args[1]), b = expr(n->args[2]);
        match_dtypes(a, b, "a choice");
        return make<Call>(a->dtype, n->op, std::vector<Expr>{expr(n->args[0]), a, b});
      }
      std::vector<Expr> args;
      for (const Expr& a : n->args) args.push_back(as(a, a->dtype));
      return make<Call>(n->dtype, n->op, std::move(args));
    }
    if (Expr out = binary<Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max>(e, narrows)) return out;
    if (Expr out = binary<EQ, NE, LT, LE, GT, GE>(e, true)) return out;
    NodeRef out = e->info().map_children(*e, [&](const NodeRef& child) -> NodeRef {
      const ExprNode* x = child->as<ExprNode>();
      return x && !child->as<Var>() ? NodeRef(as(ref(*x), x->dtype)) : child;
    });
    return cast<ExprNode>(out);
  }

  template <class... Nodes>
  Expr binary(const Expr& e, bool narrows) {
    Expr out;
    auto attempt = [&]<class N>(const N* n) {
      if (!n || out) return;
      Expr a = expr(n->a), b = expr(n->b);
      if (!narrows && n->a->dtype.is_int()) {
        a = cast_to(n->a->dtype, a);
        b = cast_to(n->a->dtype, b);
      }
      if (a->dtype != b->dtype) match_dtypes(a, b, "an operation");
      out = a == n->a && b == n->b ? e : Expr(make<N>(a, b));
    };
    (attempt(e.as<Nodes>()), ...);
    return out;
  }

  WidthFinder& widths_;
  DType narrow_;
  std::unordered_map<VarRef, VarRef> vars_;
};

}  // namespace

PrimFuncRef narrow_data_type(const PrimFuncRef& func, const LowerOptions& options) {
  const int64_t bits = option(options, "NarrowDataType.target_bits", 32);
  if (bits != 16 && bits != 32)
    fail({.what = text("NarrowDataType to ", bits, " bits"), .needs = "16 or 32", .hint = "give target_bits=32"});
  WidthFinder widths(static_cast<int>(bits));
  widths.visit(func->body);
  Narrower narrower(widths, static_cast<int>(bits));
  return narrower.any() ? with_body(func, narrower.stmt(func->body)) : func;
}

}  // namespace sator::passes
