// Index arithmetic and conditions in their simplest form, given the ranges of the loops and the conditions around them.
// Only expressions without loads are touched: their arithmetic is taken not to overflow.
#include "arith/analyzer.h"
#include "arith/and_of_ors.h"
#include "ir/builtins.h"
#include "passes/lower/contents.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// tir.Simplify.*
struct Options {
  bool chains = false;            ///< transitively_prove_inequalities: a <= b and b <= c give a <= c
  bool and_of_ors = false;        ///< convert_boolean_to_and_of_ors
  bool operands = false;          ///< apply_constraints_to_boolean_branches: those of and, or given the other one
  bool known_conditions = false;  ///< propagate_knowns_to_prove_conditional: conditions by what buffers hold
  bool known_values = false;      ///< propagate_knowns_to_simplify_expressions: values too
};

class Simplifier {
 public:
  explicit Simplifier(const Options& options)
      : options_(options), follows_(options.known_conditions || options.known_values) {
    analyzer_.chain_inequalities = options.chains;
  }
  Stmt run(const Stmt& stmt) {
    if (follows_) {
      if (const Seq* n = stmt.as<Seq>()) return sequence(*n);
      if (const Evaluate* n = stmt.as<Evaluate>()) return evaluate(*n);
      if (const AttrStmt* n = stmt.as<AttrStmt>()) return attribute(*n);
      if (stmt.as<While>() || stmt.as<Block>()) contents_.forget_all();
    }
    if (const For* n = stmt.as<For>()) return loop(*n);
    if (const IfThenElse* n = stmt.as<IfThenElse>()) return branch(*n);
    if (const AssertStmt* n = stmt.as<AssertStmt>()) return assertion(*n);
    if (const LetStmt* n = stmt.as<LetStmt>()) return binding(*n);
    if (const BlockRealize* n = stmt.as<BlockRealize>(); n && n->predicate) return realize(*n);
    if (const BufferStore* n = stmt.as<BufferStore>()) return store(*n);
    const Block* block = stmt.as<Block>();
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      if (!s) return part(child);
      Stmt inside = run(ref(*s));
      if (block && child == block->init) contents_.forget_all();  // it does not run in each instance
      return inside;
    });
    if (stmt.as<While>() || stmt.as<Block>()) contents_.forget_all();
    return cast<StmtNode>(out);
  }

 private:
  /// What an assumption says holds until the end of the sequence.
  Stmt sequence(const Seq& n) {
    std::vector<arith::Analyzer::Scope> scopes;
    std::vector<Stmt> stmts;
    for (const Stmt& s : n.stmts) {
      const Evaluate* e = s.as<Evaluate>();
      const Call* c = e ? e->value.as<Call>() : nullptr;
      stmts.push_back(run(s));
      if (c && c->op == "tir.assume" && reads_nothing(c->args[0]))
        scopes.push_back(analyzer_.with_constraint(c->args[0]));
    }
    while (!scopes.empty()) scopes.pop_back();
    return stmts == n.stmts ? Stmt(&n) : seq(std::move(stmts));
  }

  Stmt evaluate(const Evaluate& n) {
    if (const Call* c = n.value.as<Call>(); c && c->op == "tir.assume") {
      contents_.assume(c->args[0], analyzer_);
      return ref(n);
    }
    Expr value = expr(n.value);
    contents_.calls_of(n.value);
    return value == n.value ? Stmt(&n) : make<Evaluate>(value);
  }

  Stmt attribute(const AttrStmt& n) {
    auto repeat = Contents::Repeat::of(n);
    if (repeat) contents_.enter(*repeat);
    Expr value = expr(n.value);
    Stmt body = run(n.body);
    if (repeat) contents_.leave(*repeat, analyzer_);
    return value == n.value && body == n.body ? Stmt(&n) : make<AttrStmt>(n.node, std::string(n.key), value, body);
  }

  Stmt loop(const For& n) {
    Expr min = expr(n.min), extent = expr(n.extent);
    if (is_zero(extent)) return nothing();
    analyzer_.bind(n.var, make<Range>(min, extent));
    // Inside, there is at least one iteration.
    auto inside = analyzer_.with_constraint(gt(extent, int_imm(0, extent->dtype)));
    auto repeat = Contents::Repeat::of(n);
    if (follows_) contents_.enter(repeat);
    Stmt body = run(n.body);
    if (follows_) contents_.leave(repeat, analyzer_);
    if (min == n.min && extent == n.extent && body == n.body) return ref(n);
    For copy = n;
    copy.min = min;
    copy.extent = extent;
    copy.body = body;
    return Stmt(new For(copy));
  }

  /// An element that is stored where it lies changes nothing.
  Stmt store(const BufferStore& n) {
    Expr value = expr(n.value);
    std::vector<Expr> indices;
    for (const Expr& i : n.indices) indices.push_back(expr(i));
    const BufferLoad* load = value.as<BufferLoad>();
    if (load && load->buffer == n.buffer &&
        std::ranges::equal(indices, load->indices, [&](const Expr& a, const Expr& b) { return is_same(a, b); }))
      return nothing();
    Ref<const BufferStore> out =
        value == n.value && indices == n.indices ? ref(n) : make<BufferStore>(n.buffer, value, std::move(indices));
    if (follows_) {
      contents_.calls_of(n.value);
      contents_.store(*out, analyzer_);
    }
    return out;
  }
  bool is_same(const Expr& a, const Expr& b) {
    if (!is_pure(a) || !of_indices(a)) return false;
    return equal(a, b) || (a->dtype.lanes == 1 && analyzer_.prove_equal(a, b));
  }

  /// The condition, or what is known of it where the variables that bindings name are put in.
  Expr decided(const Expr& condition) {
    if (condition.as<IntImm>() || bound_.empty()) return condition;
    Expr written_out = substitute(condition, bound_);
    if (written_out == condition || !is_pure(written_out) || !of_indices(written_out)) return condition;
    Expr known = analyzer_.simplify(written_out);
    return known.as<IntImm>() ? known : condition;
  }

  Stmt branch(const IfThenElse& n) {
    Expr condition = by_contents(decided(expr(n.condition)));
    if (const IntImm* known = condition.as<IntImm>()) {
      if (known->value) return run(n.then_case);
      return n.else_case ? run(n.else_case) : nothing();
    }
    Stmt then, otherwise;
    const Contents before = contents_;
    if (follows_ && condition->dtype.lanes == 1) contents_.assume(condition, analyzer_);
    if (condition->dtype.lanes == 1) {
      auto inside = analyzer_.with_constraint(condition);
      then = run(n.then_case);
    } else {
      then = run(n.then_case);
    }
    const Contents then_end = std::exchange(contents_, before);
    if (n.else_case) {
      if (condition->dtype.lanes == 1) {
        if (follows_) contents_.assume(logical_not(condition), analyzer_);
        auto inside = analyzer_.with_constraint(logical_not(condition));
        otherwise = run(n.else_case);
      } else {
        otherwise = run(n.else_case);
      }
    }
    if (follows_) {
      const Contents else_end = std::exchange(contents_, before);
      contents_.merge(condition, then_end, else_end);
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
    if (value->dtype.lanes == 1 && is_pure(value) && of_indices(value))
      bound_[n.var] = substitute(value, bound_);
    else if (arith::is_index(value->dtype))
      analyzer_.bind(n.var, analyzer_.bounds(value));
    Stmt body = run(n.body);
    bound_.erase(n.var);
    contents_.drop(*n.var);
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

  /// The condition, or what is known of it from what buffers hold.
  Expr by_contents(const Expr& condition) {
    if (!options_.known_conditions || condition.as<IntImm>() || condition->dtype.lanes != 1) return condition;
    Expr written_out = contents_.with_known(condition, analyzer_);
    if (written_out == condition) return condition;
    Expr known = analyzer_.simplify(written_out);
    return known.as<IntImm>() ? known : condition;
  }

  Expr expr(const Expr& given) {
    Expr e = options_.known_values ? contents_.with_known(given, analyzer_) : given;
    Expr out = plain(e);
    if (!options_.and_of_ors || !(out.as<And>() || out.as<Or>()) || out->dtype != boolean || has_side_effect(out))
      return out;
    return arith::as_and_of_ors(out, analyzer_);
  }

  Expr plain(const Expr& e) {
    if (e.as<Var>() && e->dtype == boolean) return analyzer_.simplify(e);
    if (e.as<Var>() || e.as<IntImm>() || e.as<FloatImm>() || e.as<StringImm>()) return e;
    bool simplifiable =
        e->dtype.lanes == 1 && (arith::is_index(e->dtype) || e->dtype.is_bool()) && is_pure(e) && of_indices(e);
    if (simplifiable) return options_.operands ? given_each_other(analyzer_.simplify(e)) : analyzer_.simplify(e);
    if (options_.operands && e->dtype == boolean && (e.as<And>() || e.as<Or>()) && !has_side_effect(e))
      return given_each_other(e);
    if (const Call* c = e.as<Call>(); c && c->op == "tir.if_then_else" && c->args[0]->dtype.lanes == 1)
      return choice(*c);
    NodeRef out = e->info().map_children(*e, [&](const NodeRef& child) { return part(child); });
    return cast<ExprNode>(out);
  }

  /// a and b: each simplified where the other holds; a or b: where the other does not.
  Expr given_each_other(const Expr& e) {
    const And* both = e.as<And>();
    const Or* either = e.as<Or>();
    if (!both && !either) return e;
    Expr a = both ? both->a : either->a, b = both ? both->b : either->b;
    auto given = [&](const Expr& known, const Expr& rest) {
      auto inside = analyzer_.with_constraint(both ? known : analyzer_.simplify(logical_not(known)));
      return expr(rest);
    };
    Expr left = expr(a), right = given(left, b);
    left = given(right, left);
    if (left == a && right == b) return e;
    return both ? logical_and(left, right) : logical_or(left, right);
  }

  Expr choice(const Call& c) {
    Expr condition = by_contents(expr(c.args[0]));
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
  VarMap bound_;  ///< what bindings around name, as index arithmetic
  Options options_;
  bool follows_;       ///< what buffers hold
  Contents contents_;  ///< here, if it is followed
};

}  // namespace

PrimFuncRef simplify(const PrimFuncRef& func, const LowerOptions& options) {
  auto asked = [&](const char* name) { return option(options, std::string("tir.Simplify.") + name, 0) != 0; };
  Options chosen{.chains = asked("transitively_prove_inequalities"),
                 .and_of_ors = asked("convert_boolean_to_and_of_ors"),
                 .operands = asked("apply_constraints_to_boolean_branches"),
                 .known_conditions = asked("propagate_knowns_to_prove_conditional"),
                 .known_values = asked("propagate_knowns_to_simplify_expressions")};
  return with_body(func, Simplifier(chosen).run(func->body));
}

}  // namespace sator::passes
