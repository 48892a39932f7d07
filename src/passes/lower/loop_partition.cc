// Full tiles run without the conditions that only the last one needs.
//
// A condition of a tile, such as i0 * 16 + i1 < n in a loop i1 of 16, holds for all i1 where i0 * 16 + 15 < n. Its
// *anchor* is the loop i0: the innermost one in the condition outside of the tile, where the tile is its vectorized and
// unrolled loops, or else its innermost loop of constant extent.
//   a serial anchor is cut:       for i0 in [0, n // 16): S;   for i0 in [n // 16, ...): if i0 * 16 + i1 < n: S
//   any other one gets a branch:  if i0 * 16 + 15 < n: S   else: if i0 * 16 + i1 < n: S
// What is left of a serial anchor whose tile is an unrolled loop runs at its exact height, without conditions:
//   if n - i0 * 16 == 1: S of 1 iteration;  if n - i0 * 16 == 2: S of 2 iterations;  ...
#include <algorithm>
#include <set>

#include "arith/analyzer.h"
#include "arith/intset.h"
#include "ir/builtins.h"
#include "passes/lower/lower.h"
#include "passes/lower/partition_hinted.h"
#include "tir/copy.h"

namespace sator::passes {

using namespace tir;

namespace {

/// A comparison that a condition is made of, as `excess < 0`, and its largest excess in the tile.
struct LoopCondition {
  Expr expr;          ///< as it stands in the program
  Expr excess;        ///< over the anchor and what is around it: below 0 where the condition holds in the whole tile
  Expr least;         ///< the same, at 0 or above where it holds nowhere in the tile; null: nobody knows
  VarRef step;        ///< the only loop of the tile in it, unrolled from 0 on and counted once; null if it is not so
  int64_t steps = 0;  ///< the iterations of that loop
};

Expr bare(const Expr& e) {
  const Call* c = e.as<Call>();
  return c && c->op == "tir.likely" ? bare(c->args[0]) : e;
}

/// The comparisons whose conjunction e is.
void conjuncts(const Expr& e, std::vector<Expr>& out) {
  if (const And* n = bare(e).as<And>()) {
    conjuncts(n->a, out);
    conjuncts(n->b, out);
  } else {
    out.push_back(e);
  }
}

/// a < b and its kin as `excess < 0`; null for anything else.
Expr excess_of(const Expr& e) {
  Expr c = bare(e);
  auto index = [](const Expr& x) { return x->dtype.lanes == 1 && arith::is_index(x->dtype) && is_pure(x); };
  auto both = [&](const Expr& a, const Expr& b) { return index(a) && index(b); };
  if (const LT* n = c.as<LT>(); n && both(n->a, n->b)) return n->a - n->b;
  if (const GT* n = c.as<GT>(); n && both(n->a, n->b)) return n->b - n->a;
  if (const LE* n = c.as<LE>(); n && both(n->a, n->b)) return n->a - n->b - 1;
  if (const GE* n = c.as<GE>(); n && both(n->a, n->b)) return n->b - n->a - 1;
  return nullptr;
}

/// An index expression computed in 64 bits.
Expr in_64_bits(const Expr& e) {
  if (e->dtype == i32) {
    if (const Add* n = e.as<Add>()) return in_64_bits(n->a) + in_64_bits(n->b);
    if (const Sub* n = e.as<Sub>()) return in_64_bits(n->a) - in_64_bits(n->b);
    if (const Mul* n = e.as<Mul>()) return in_64_bits(n->a) * in_64_bits(n->b);
  }
  return cast_to(i64, e);
}

int64_t count_stores(const Stmt& stmt) {
  int64_t n = 0;
  walk(stmt, [&](const BufferStore&) { ++n; });
  return n;
}

/// Conditions known to hold are taken out; `holds` tells by the node.
Stmt without(const Stmt& stmt, const std::vector<LoopCondition>& holding) {
  auto holds = [&](const Expr& e) {
    return std::any_of(holding.begin(), holding.end(), [&](const LoopCondition& c) { return c.expr == e; });
  };
  std::function<Expr(const Expr&)> left = [&](const Expr& e) -> Expr {
    if (holds(e)) return bool_imm(true);
    if (const And* n = bare(e).as<And>()) {
      Expr a = left(n->a), b = left(n->b);
      return a == n->a && b == n->b ? e : logical_and(a, b);
    }
    return e;
  };
  return transform(
      stmt,
      [&](const IfThenElse& n) -> NodeRef {
        Expr c = left(n.condition);
        if (c == n.condition) return NodeRef(&n);
        if (is_one(c)) return n.then_case;
        return make<IfThenElse>(c, n.then_case, n.else_case);
      },
      [&](const Call& n) -> NodeRef {
        if (n.op != "tir.if_then_else") return NodeRef(&n);
        Expr c = left(n.args[0]);
        if (c == n.args[0]) return NodeRef(&n);
        if (is_one(c)) return n.args[1];
        return make<Call>(n.dtype, n.op, std::vector<Expr>{c, n.args[1], n.args[2]});
      });
}

class Partitioner {
 public:
  Stmt run(const Stmt& stmt) {
    const For* loop = stmt.as<For>();
    if (!loop) {
      if (const LetStmt* n = stmt.as<LetStmt>(); n && arith::is_index(n->var->dtype)) {
        analyzer_.bind(n->var, analyzer_.bounds(n->value));
        ranges_.bind(n->var, ranges_.bounds(n->value));
      }
      NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
        const StmtNode* s = child->as<StmtNode>();
        return s ? NodeRef(run(ref(*s))) : child;
      });
      return cast<StmtNode>(out);
    }
    ranges_.bind(loop->var, make<Range>(loop->min, cast_to(loop->min->dtype, loop->extent)));
    // Inner anchors first; what they handled has other nodes, or is remembered.
    Stmt body = run(loop->body);
    std::vector<LoopCondition> conditions = anchored_at(*loop, body);
    Ref<const For> current = body == loop->body ? ref(*loop) : with(*loop, &For::body, body);
    if (conditions.empty() || count_stores(body) > kMaxStores) return current;
    for (const LoopCondition& c : conditions) handled_.push_back(c.expr);
    if (loop->kind == LoopKind::serial)
      if (Stmt cut = cut_range(*current, conditions)) return cut;
    return with_branch(*current, conditions);
  }

 private:
  static constexpr int64_t kMaxStores = 4096;
  static constexpr int64_t kMaxHeights = 16;  ///< more copies of a tile cost more code than they save time

  static bool is_tile_loop(const For& n) { return n.kind == LoopKind::vectorized || n.kind == LoopKind::unrolled; }

  /// Whether the bounds of an expression lie beyond its dtype. Of sizes nobody knows a bound: they are not so large.
  bool may_wrap(const Expr& e) {
    const arith::Bounds b = ranges_.bounds(e);
    auto leaves = [&](int64_t bound) { return !arith::is_inf(bound) && !arith::fits(bound, e->dtype); };
    return leaves(b.min) || leaves(b.max);
  }

  /// The conditions below `anchor` whose anchor it is.
  std::vector<LoopCondition> anchored_at(const For& anchor, const Stmt& body) {
    std::vector<LoopCondition> found;
    std::vector<const For*> loops;  // between the anchor and here
    std::function<void(const Stmt&)> visit = [&](const Stmt& s) {
      if (const For* n = s.as<For>()) {
        loops.push_back(n);
        visit(n->body);
        loops.pop_back();
        return;
      }
      auto consider = [&](const Expr& condition) {
        std::vector<Expr> parts;
        conjuncts(condition, parts);
        for (const Expr& p : parts)
          if (auto c = condition_in_tile(anchor, loops, p)) found.push_back(*c);
      };
      if (const IfThenElse* n = s.as<IfThenElse>())
        if (n->condition->dtype.lanes == 1) consider(n->condition);
      s->info().each_child(*s, [&](const NodeRef& child) {
        if (const StmtNode* inner = child->as<StmtNode>()) return visit(ref(*inner));
        walk(child, [&](const Call& c) {
          if (c.op == "tir.if_then_else" && c.args[0]->dtype.lanes == 1) consider(c.args[0]);
        });
      });
    };
    visit(body);
    return found;
  }

  std::optional<LoopCondition> condition_in_tile(const For& anchor, const std::vector<const For*>& loops,
                                                 const Expr& part) {
    if (std::find(handled_.begin(), handled_.end(), part) != handled_.end()) return {};
    Expr excess = excess_of(part);
    if (!excess || !uses_var(excess, *anchor.var)) return {};
    if (may_wrap(excess)) excess = in_64_bits(excess);
    std::vector<const For*> inner;
    for (const For* n : loops)
      if (uses_var(excess, *n->var)) inner.push_back(n);
    if (inner.empty()) return {};
    bool all_tile = std::all_of(inner.begin(), inner.end(), [](const For* n) { return is_tile_loop(*n); });
    if (!all_tile && inner.size() > 1) return {};  // the anchor is one of them
    arith::SetMap domains;
    for (const For* n : inner) {
      if (!as_int(n->extent) || !as_int(n->min)) return {};
      domains[n->var] = arith::IntSet::from_min_extent(n->min, n->extent);
    }
    arith::IntSet set = arith::eval_set(excess, domains);
    if (!set.has_upper() || !is_pure(set.max)) return {};
    for (const For* n : loops)
      if (uses_var(set.max, *n->var)) return {};
    LoopCondition found{.expr = part, .excess = analyzer_.simplify(set.max)};
    if (set.has_lower() && is_pure(set.min)) found.least = analyzer_.simplify(set.min);
    if (inner.size() == 1 && inner[0]->kind == LoopKind::unrolled && is_zero(inner[0]->min)) {
      const VarRef& i = inner[0]->var;
      Expr slope = analyzer_.simplify(substitute(excess, {{i, i + 1}}) - excess);
      if (is_one(slope)) found.step = i, found.steps = *as_int(inner[0]->extent);
    }
    return found;
  }

  /// Whether a statement does nothing where one of the conditions fails: only then can iterations be left out. What stands
  /// beside a condition, and its else, run there too.
  static bool idles_without(const Stmt& s, const std::vector<LoopCondition>& conditions) {
    auto idle = [&](const Stmt& inner) { return idles_without(inner, conditions); };
    if (const Seq* n = s.as<Seq>()) return std::ranges::all_of(n->stmts, idle);
    if (const For* n = s.as<For>()) return idle(n->body);
    if (const LetStmt* n = s.as<LetStmt>()) return idle(n->body);
    if (const AttrStmt* n = s.as<AttrStmt>()) return idle(n->body);
    if (const Allocate* n = s.as<Allocate>()) return idle(n->body);
    if (const DeclBuffer* n = s.as<DeclBuffer>()) return idle(n->body);
    const IfThenElse* n = s.as<IfThenElse>();
    if (!n) return false;
    if (n->else_case) return idle(n->then_case) && idle(n->else_case);
    std::vector<Expr> parts;
    conjuncts(n->condition, parts);
    auto is_one_of_them = [&](const Expr& part) {
      return std::ranges::any_of(conditions, [&](const LoopCondition& c) { return c.expr == part; });
    };
    return std::ranges::any_of(parts, is_one_of_them) || idle(n->then_case);
  }

  /// The loop's body for each number of iterations that the tile may have left where the loop begins with `from`; nothing
  /// if the conditions do not say the same, or something runs without them.
  Stmt exact_heights(const For& loop, const Expr& from, const std::vector<LoopCondition>& conditions) {
    const LoopCondition& first = conditions.front();
    std::set<VarRef> steps;
    for (const LoopCondition& c : conditions) {
      if (!c.step || c.steps != first.steps || !equal(c.excess, first.excess)) return nullptr;
      steps.insert(c.step);
    }
    if (first.steps > kMaxHeights) return nullptr;
    // The condition holds for i < left, where excess is that of the last i.
    Expr left = analyzer_.simplify(int_imm(first.steps - 1, first.excess->dtype) - first.excess);
    auto left_at = [&](const Expr& i) { return as_int(analyzer_.simplify(substitute(left, {{loop.var, i}}))); };
    auto known = left_at(from);
    if (left_at(from + 1).value_or(1) > 0) known.reset();
    bool all_under = true;
    walk(loop.body, [&](const For& n) {
      std::vector<LoopCondition> own;
      std::ranges::copy_if(
          conditions, std::back_inserter(own), [&](const LoopCondition& c) { return c.step == n.var; });
      all_under &= own.empty() || idles_without(n.body, own);
    });
    if (!all_under) return nullptr;
    Stmt bare_body = without(loop.body, conditions);
    std::vector<Stmt> all;
    for (int64_t height = 1; height < first.steps; ++height) {
      if (known && *known != height) continue;
      Stmt copy = transform(bare_body, [&](const For& n) -> Stmt {
        return steps.count(n.var) ? with(n, &For::extent, int_imm(height, n.extent->dtype)) : Stmt(&n);
      });
      all.push_back(make<IfThenElse>(eq(left, int_imm(height, left->dtype)), fresh_copy(copy, {}), nullptr));
    }
    return seq(std::move(all));
  }

  /// The loop's body behind the iterations where conditions hold: nothing but a comparison where they hold nowhere. Of these there may be
  /// many, as where tiles of rows are in blocks.
  ///   count   iterations behind
  Stmt with_idle_iterations(const For& loop, const Expr& count, const std::vector<LoopCondition>& conditions) {
    const Expr least = conditions.front().least;
    auto same = [&](const LoopCondition& c) { return c.least && equal(c.least, least); };
    if (analyzer_.bounds(analyzer_.simplify(count)).max <= 1 || !std::ranges::all_of(conditions, same) ||
        !idles_without(loop.body, conditions))
      return loop.body;
    return make<IfThenElse>(lt(least, int_imm(0, least->dtype)), loop.body, Stmt());
  }

  /// if all hold: S without them; else: S
  Stmt with_branch(const For& loop, const std::vector<LoopCondition>& conditions) {
    Expr all = bool_imm(true);
    std::vector<Expr> seen;
    for (const LoopCondition& c : conditions) {
      bool known = std::any_of(seen.begin(), seen.end(), [&](const Expr& e) { return equal(e, c.excess); });
      if (known) continue;
      seen.push_back(c.excess);
      all = logical_and(all, lt(c.excess, int_imm(0, c.excess->dtype)));
    }
    return with(
        loop, &For::body, Stmt(make<IfThenElse>(all, without(loop.body, conditions), fresh_copy(loop.body, {}))));
  }

  /// Iterations [low, high) without the conditions, those before and behind with them. Nothing if a condition is not
  /// monotonic in the loop variable.
  Stmt cut_range(const For& loop, const std::vector<LoopCondition>& conditions) {
    const DType d = loop.var->dtype;
    Expr begin = loop.min, end = analyzer_.simplify(loop.min + cast_to(d, loop.extent));
    Expr low = begin, high = end;
    for (const LoopCondition& c : conditions) {
      // excess = slope * i + rest
      Expr next = substitute(c.excess, {{loop.var, loop.var + 1}});
      auto slope = as_int(analyzer_.simplify(next - c.excess));
      if (!slope || *slope == 0) return nullptr;
      Expr rest = analyzer_.simplify(substitute(c.excess, {{loop.var, int_imm(0, d)}}));
      // The bound may lie where the loop's dtype does not reach.
      const Expr steep = int_imm(std::abs(*slope), i64);
      const bool beyond = rest->dtype.bits > d.bits || !arith::fits(std::abs(*slope), rest->dtype) ||
                          may_wrap(rest - cast_to(rest->dtype, steep)) || may_wrap(cast_to(rest->dtype, steep) - rest);
      const DType wide = beyond ? i64 : d;
      rest = wide == i64 ? in_64_bits(rest) : rest;
      auto bound = [&](const Expr& e) {
        if (wide == d) return analyzer_.simplify(e);
        return cast_to(d, analyzer_.simplify(min(max(e, cast_to(wide, begin)), cast_to(wide, end))));
      };
      if (*slope > 0)  // i < ceildiv(-rest, slope)
        high = min(high, bound(ceildiv(-rest, int_imm(*slope, wide))));
      else  // i > rest / -slope
        low = max(low, bound(floordiv(rest, int_imm(-*slope, wide)) + 1));
    }
    low = analyzer_.simplify(min(low, end));
    high = analyzer_.simplify(max(high, low));
    auto part = [&](const Expr& from, const Expr& to, const Stmt& body) {
      VarRef i(new Var(*loop.var));
      For copy = loop;
      copy.var = i;
      copy.min = from;
      copy.extent = analyzer_.simplify(to - from);
      copy.body = fresh_copy(body, {{loop.var, i}});
      return Stmt(new For(copy));
    };
    std::vector<Stmt> parts;
    if (!analyzer_.prove_equal(low, begin)) parts.push_back(part(begin, low, loop.body));
    parts.push_back(part(low, high, without(loop.body, conditions)));
    if (!analyzer_.prove_equal(high, end)) {
      Stmt heights = exact_heights(loop, high, conditions);
      parts.push_back(part(high, end, heights ? heights : with_idle_iterations(loop, end - high, conditions)));
    }
    return seq(std::move(parts));
  }

  arith::Analyzer analyzer_;
  arith::Analyzer ranges_;  ///< knows those of loops too, for `may_wrap` alone
  std::vector<Expr> handled_;
};

}  // namespace

PrimFuncRef loop_partition(const PrimFuncRef& func, const LowerOptions& options) {
  if (option(options, "tir.LoopPartition.partition_const_loop", 0) != 0) {
    const bool unroll = option(options, "tir.LoopPartition.unroll_loop_with_partition_hint_no_interval", 0) != 0;
    return with_body(func, partition_hinted(func->body, unroll));
  }
  return with_body(func, Partitioner().run(func->body));
}

}  // namespace sator::passes
