// for i: if n != 0: S(i)   =>   if n != 0: for i: S(i)
// Conditions and bindings move out of every loop on which they do not depend. A condition becomes a branch around two
// copies of the loop, in one of which it holds and in the other it does not.
#include "arith/analyzer.h"
#include "arith/kind.h"
#include "ir/builtins.h"
#include "passes/lower/lower.h"
#include "tir/copy.h"

namespace sator::passes {

using namespace tir;

namespace {

/// What may move, as the bits of the options tir.HoistExpression.hoisted_conditionals and hoisted_let_bindings.
enum HoistedConditionals : int64_t {
  kIfElseStmt = 1,
  kIfElseExpr = 2,
  kBooleanExpression = 4,  ///< one operand of and, or, not
  kUsingBlockVar = 8,      ///< what depends on a thread's coordinate, and out of a launch of threads
  kAllConditionals = 15
};
enum HoistedBindings : int64_t { kRequiredByConditional = 1, kLetStmt = 2, kLetExpr = 4, kAllBindings = 7 };

/// Evaluated earlier and more often than the program asks: neither memory nor a division that may be by zero.
bool may_be_early(const Expr& e) {
  bool allowed = is_pure(e);
  auto division = [&](const auto& n) {
    auto divisor = as_int(n.b);
    allowed &= (divisor && *divisor != 0) || n.dtype.is_float();
  };
  walk(
      e,
      [&](const BufferLoad&) { allowed = false; },
      [&](const Div& n) { division(n); },
      [&](const Mod& n) { division(n); },
      [&](const FloorDiv& n) { division(n); },
      [&](const FloorMod& n) { division(n); });
  return allowed;
}

bool synchronises(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Call& n) { found |= n.op.find("sync") != n.op.npos || n.op.find("allreduce") != n.op.npos; });
  return found;
}

bool does_nothing(const Stmt& s) {
  bool nothing = true;
  walk(
      s,
      [&](const BufferStore&) { nothing = false; },
      [&](const AssertStmt&) { nothing = false; },
      [&](const While&) { nothing = false; },
      [&](const Evaluate& n) { nothing &= !has_side_effect(n.value); },
      [&](const Call& n) { nothing &= !has_side_effect(ref(n)); });
  return nothing;
}

/// Statements whose condition is known become one of their branches.
Stmt folded(const Stmt& s) {
  return transform(
      s,
      [](const IfThenElse& n) -> Stmt {
        const IntImm* known = n.condition.as<IntImm>();
        if (!known) return ref(n);
        return known->value ? n.then_case : n.else_case ? n.else_case : nothing();
      },
      [](const Seq& n) -> Stmt {
        std::vector<Stmt> kept;
        for (const Stmt& one : n.stmts)
          if (const Evaluate* e = one.as<Evaluate>(); !e || !e->value.as<IntImm>()) kept.push_back(one);
        if (kept.size() == n.stmts.size()) return ref(n);
        return kept.empty() ? nothing() : seq(std::move(kept));
      },
      [](const Call& n) -> Expr {
        const IntImm* known = n.op == "tir.if_then_else" ? n.args[0].as<IntImm>() : nullptr;
        return known ? n.args[known->value ? 1 : 2] : Expr(&n);
      },
      [](const And& n) -> Expr { return logical_and(n.a, n.b); },
      [](const Or& n) -> Expr { return logical_or(n.a, n.b); },
      [](const Not& n) -> Expr { return logical_not(n.a); });
}

Stmt with_known(const Stmt& s, const Expr& condition, bool holds) {
  Expr value = int_imm(holds, boolean);
  return folded(transform(s, [&](const ExprNode& n) -> Expr {
    return n.dtype == boolean && equal(Expr(&n), condition) ? value : Expr(&n);
  }));
}

class Hoister {
 public:
  Hoister(int64_t conditionals, int64_t bindings, const LowerOptions& options)
      : conditionals_(conditionals), bindings_(bindings), options_(options) {}

  Stmt run(const Stmt& s) {
    const VarRef thread = coordinate(*s);
    if (thread) threads_.insert(thread);
    if (is_level(*s)) {
      if (Found found = first(s); found.condition)
        return branched(s, found.condition);
      else if (found.var)
        return bound(s, found);
    }
    NodeRef out = s->info().map_children(*s, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* n = child->as<StmtNode>();
      return n ? NodeRef(run(ref(*n))) : child;
    });
    return cast<StmtNode>(out);
  }

 private:
  /// A condition, or a binding; neither if both are null.
  struct Found {
    Expr condition;
    VarRef var;
    Expr value;
  };

  static VarRef coordinate(const StmtNode& s) {
    if (const For* n = s.as<For>()) return n->kind == LoopKind::thread_binding ? n->var : nullptr;
    const AttrStmt* n = s.as<AttrStmt>();
    const ThreadAxis* axis = n ? n->node.as<ThreadAxis>() : nullptr;
    return axis ? axis->var : nullptr;
  }

  /// What conditions move out of: a loop, a launch.
  bool is_level(const StmtNode& s) const {
    return s.as<For>() || (s.as<AttrStmt>() && coordinate(s) && (conditionals_ & kUsingBlockVar));
  }

  /// The first thing inside of `level` that does not depend on it.
  Found first(const Stmt& level) {
    std::unordered_set<const Var*> inner;
    walk(
        level,
        [&](const For& n) { inner.insert(n.var.get()); },
        [&](const LetStmt& n) { inner.insert(n.var.get()); },
        [&](const Let& n) { inner.insert(n.var.get()); },
        [&](const IterVar& n) { inner.insert(n.var.get()); },
        [&](const AttrStmt& n) {
          if (VarRef v = coordinate(n)) inner.insert(v.get());
        });
    std::vector<Expr> conditions;
    Found found;
    auto movable = [&](const Expr& e) {
      if (e.as<IntImm>() || e->dtype.lanes != 1 || !may_be_early(e)) return false;
      bool by_thread = false;
      for (const VarRef& v : vars_in(e)) {
        if (inner.contains(v.get())) return false;
        by_thread |= threads_.contains(v);
      }
      // Threads may not part ways around a barrier.
      return !by_thread || ((conditionals_ & kUsingBlockVar) && !synchronises(level));
    };
    auto parts = [&](auto& self, const Expr& e) -> void {
      if (found.condition || found.var) return;
      if (movable(e)) {
        found.condition = e;
        return;
      }
      if (!(conditionals_ & kBooleanExpression)) return;
      if (const And* n = e.as<And>()) self(self, n->a), self(self, n->b);
      if (const Or* n = e.as<Or>()) self(self, n->a), self(self, n->b);
      if (const Not* n = e.as<Not>()) self(self, n->a);
    };
    auto binding = [&](const VarRef& var, const Expr& value) {
      if (!found.condition && !found.var && movable(value)) found.var = var, found.value = value;
    };
    walk(
        level,
        [&](const IfThenElse& n) {
          if (conditionals_ & kIfElseStmt) parts(parts, n.condition);
        },
        [&](const Call& n) {
          if ((conditionals_ & kIfElseExpr) && n.op == "tir.if_then_else") parts(parts, n.args[0]);
        },
        [&](const LetStmt& n) {
          if ((bindings_ & kLetStmt) || ((bindings_ & kRequiredByConditional) && decides(n.body, *n.var)))
            binding(n.var, n.value);
        },
        [&](const Let& n) {
          if (bindings_ & kLetExpr) binding(n.var, n.value);
        });
    return found;
  }

  static bool decides(const Stmt& s, const Var& var) {
    bool found = false;
    walk(s, [&](const IfThenElse& n) { found |= uses_var(n.condition, var); });
    return found;
  }

  Stmt branched(const Stmt& level, const Expr& condition) {
    // Of a condition around it one may follow.
    if (arith::is_index(condition->dtype) || condition->dtype.is_bool()) {
      const Expr known = analyzer_.simplify(condition);
      if (const IntImm* value = known.as<IntImm>()) return run(with_known(level, condition, value->value));
    }
    Stmt yes = with_known(level, condition, true), no = with_known(level, condition, false);
    int64_t copied = 0;
    bool both = !does_nothing(no);
    if (both) walk(no, [&](const StmtNode&) { ++copied; });
    if ((statements_ += copied) > options_.max_unrolled_copies) {
      if (options_.note)
        options_.note({.what = text("the condition ", condition, " stays inside of its loop"),
                       .needs = text("at most ", options_.max_unrolled_copies, " statements in copies of loops"),
                       .hint = "hoist fewer kinds of conditions"});
      conditionals_ = 0;
      return run(level);
    }
    auto given = [&](const Expr& holds, const Stmt& s) {
      auto inside = analyzer_.with_constraint(holds);
      return run(s);
    };
    const Expr opposite = logical_not(condition);
    if (does_nothing(yes))
      return both ? make<IfThenElse>(make<Not>(condition), given(opposite, no), Stmt()) : nothing();
    return make<IfThenElse>(condition, given(condition, yes), both ? given(opposite, fresh_copy(no)) : Stmt());
  }

  Stmt bound(const Stmt& level, const Found& found) {
    Stmt body = transform(
        level,
        [&](const LetStmt& n) -> Stmt { return n.var == found.var ? n.body : Stmt(&n); },
        [&](const Let& n) -> Expr { return n.var == found.var ? n.body : Expr(&n); });
    return make<LetStmt>(found.value, found.var, run(body));
  }

  int64_t conditionals_, bindings_, statements_ = 0;
  const LowerOptions& options_;
  arith::Analyzer analyzer_;
  std::unordered_set<VarRef> threads_;
};

}  // namespace

PrimFuncRef hoist_expression(const PrimFuncRef& func, const LowerOptions& options) {
  int64_t conditionals = option(options, "tir.HoistExpression.hoisted_conditionals", kAllConditionals);
  int64_t bindings = option(options, "tir.HoistExpression.hoisted_let_bindings", kAllBindings);
  return with_body(func, Hoister(conditionals, bindings, options).run(func->body));
}

PrimFuncRef hoist_if_then_else(const PrimFuncRef& func, const LowerOptions& options) {
  bool threads = option(options, "tir.HoistIfThenElse.support_block_scope_hosting", 0);
  int64_t conditionals = kIfElseStmt | (threads ? kUsingBlockVar : 0);
  return with_body(func, Hoister(conditionals, 0, options).run(func->body));
}

}  // namespace sator::passes
