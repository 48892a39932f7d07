// Index arithmetic and conditions in their simplest form, given the ranges of the loops and the conditions around them.
// Only expressions without loads are touched: their arithmetic is taken not to overflow.
#include "arith/analyzer.h"
#include "ir/builtins.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

class Simplifier {
 public:
  Stmt run(const Stmt& stmt) {
    if (const For* n = stmt.as<For>()) return loop(*n);
    if (const IfThenElse* n = stmt.as<IfThenElse>()) return branch(*n);
    if (const AssertStmt* n = stmt.as<AssertStmt>()) return assertion(*n);
    if (const LetStmt* n = stmt.as<LetStmt>()) return binding(*n);
    if (const BlockRealize* n = stmt.as<BlockRealize>(); n && n->predicate) return realize(*n);
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      if (const StmtNode* s = child->as<StmtNode>()) return run(ref(*s));
      return part(child);
    });
    return cast<StmtNode>(out);
  }

 private:
  Stmt loop(const For& n) {
    Expr min = expr(n.min), extent = expr(n.extent);
    if (is_zero(extent)) return make<Evaluate>(int_imm(0));
    analyzer_.bind(n.var, make<Range>(min, extent));
    // Inside, there is at least one iteration.
    auto inside = analyzer_.with_constraint(gt(extent, int_imm(0, extent->dtype)));
    Stmt body = run(n.body);
    if (min == n.min && extent == n.extent && body == n.body) return ref(n);
    For copy = n;
    copy.min = min;
    copy.extent = extent;
    copy.body = body;
    return Stmt(new For(copy));
  }

  Stmt branch(const IfThenElse& n) {
    Expr condition = expr(n.condition);
    if (const IntImm* known = condition.as<IntImm>()) {
      if (known->value) return run(n.then_case);
      return n.else_case ? run(n.else_case) : make<Evaluate>(int_imm(0));
    }
    Stmt then, otherwise;
    if (condition->dtype.lanes == 1) {
      auto inside = analyzer_.with_constraint(condition);
      then = run(n.then_case);
    } else {
      then = run(n.then_case);
    }
    if (n.else_case) {
      if (condition->dtype.lanes == 1) {
        auto inside = analyzer_.with_constraint(logical_not(condition));
        otherwise = run(n.else_case);
      } else {
        otherwise = run(n.else_case);
      }
    }
    if (condition == n.condition && then == n.then_case && otherwise == n.else_case) return ref(n);
    return make<IfThenElse>(condition, then, otherwise);
  }

  Stmt assertion(const AssertStmt& n) {
    Expr condition = expr(n.condition);
    if (is_one(condition)) return run(n.body);
    auto after = analyzer_.with_constraint(condition);
    Stmt body = run(n.body);
    if (condition == n.condition && body == n.body) return ref(n);
    return make<AssertStmt>(condition, n.message, body);
  }

  Stmt binding(const LetStmt& n) {
    Expr value = expr(n.value);
    Stmt body = run(n.body);
    if (value == n.value && body == n.body) return ref(n);
    return make<LetStmt>(value, n.var, body);
  }

  /// A predicate holds inside of its block.
  Stmt realize(const BlockRealize& n) {
    std::vector<Expr> values;
    for (const Expr& v : n.values) values.push_back(expr(v));
    Expr predicate = expr(n.predicate);
    Stmt block;
    {
      auto inside = analyzer_.with_constraint(predicate);
      block = run(n.block);
    }
    if (values == n.values && predicate == n.predicate && block == n.block) return ref(n);
    return make<BlockRealize>(std::move(values), predicate, cast<Block>(block));
  }

  /// Whatever hangs below a statement and is not one: expressions, regions, lists. Definitions stay.
  NodeRef part(const NodeRef& n) {
    if (const ExprNode* e = n->as<ExprNode>()) return expr(ref(*e));
    if (n->info().has_identity) return n;
    return n->info().map_children(*n, [&](const NodeRef& child) { return part(child); });
  }

  Expr expr(const Expr& e) {
    if (e.as<Var>() || e.as<IntImm>() || e.as<FloatImm>() || e.as<StringImm>()) return e;
    bool simplifiable =
        e->dtype.lanes == 1 && (arith::is_index(e->dtype) || e->dtype.is_bool()) && is_pure(e) && of_indices(e);
    if (simplifiable) return analyzer_.simplify(e);
    if (const Call* c = e.as<Call>(); c && c->op == "tir.if_then_else" && c->args[0]->dtype.lanes == 1)
      return choice(*c);
    NodeRef out = e->info().map_children(*e, [&](const NodeRef& child) { return part(child); });
    return cast<ExprNode>(out);
  }

  Expr choice(const Call& c) {
    Expr condition = expr(c.args[0]);
    if (const IntImm* known = condition.as<IntImm>()) return expr(c.args[known->value ? 1 : 2]);
    Expr yes, no;
    {
      auto inside = analyzer_.with_constraint(condition);
      yes = expr(c.args[1]);
    }
    {
      auto inside = analyzer_.with_constraint(logical_not(condition));
      no = expr(c.args[2]);
    }
    if (condition == c.args[0] && yes == c.args[1] && no == c.args[2]) return ref(c);
    return make<Call>(c.dtype, c.op, std::vector<Expr>{condition, yes, no});
  }

  /// Numbers in it count things: no narrow or unsigned arithmetic, where wrapping is meant.
  static bool of_indices(const Expr& e) {
    bool all = true;
    walk(
        e,
        [&](const Cast& n) {
          if (!arith::is_index(n.dtype) || !arith::is_index(n.value->dtype)) all = false;
          return all;
        },
        [&](const ExprNode& n) { all &= arith::is_index(n.dtype) || n.dtype.is_bool(); });
    return all;
  }

  arith::Analyzer analyzer_;
};

}  // namespace

PrimFuncRef simplify(const PrimFuncRef& func, const LowerOptions&) {
  return with_body(func, Simplifier().run(func->body));
}

}  // namespace sator::passes
