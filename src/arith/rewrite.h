// Simplification by rewrite rules (internal to Analyzer).
#pragma once

#include <vector>

#include "arith/facts.h"
#include "arith/kind.h"
#include "arith/rule.h"
#include "base/function_ref.h"

namespace sator::arith {

class Analyzer;

/// Rewrites an expression from its leaves; each node is offered to the rules of its kind. The canonical simplifier derives
/// from it and treats sums in its own way.
class Rewriter {
 public:
  explicit Rewriter(Analyzer& parent) : analyzer_(parent) {}
  virtual ~Rewriter() = default;

  /// At most two rounds over the expression.
  Expr operator()(const Expr& e);
  virtual Expr visit(const Expr& e) { return visit_node(e); }
  /// A rule's result, looked at once more; nested to a limited depth.
  Expr visit_again(const Expr& e);

  /// How a stands to b; to a constant by its bounds and residue.
  Order compare(const Expr& a, const Expr& b);
  Order compare(const Expr& a, int64_t b);
  /// Whether a guard of a rule is true.
  bool holds(const Pattern& guard, const Bindings& bindings);
  void note(const Rule& rule);
  /// Whether e is known to stay in its dtype's range.
  bool stays_in_range(const Expr& e);
  /// What `number`, a term or the factor of a term of `dividend`, becomes modulo `divisor`, neither of them 0: its floored
  /// residue, unless that may take the dividend out of its range; then the truncated one, which only makes terms smaller.
  int64_t residue(int64_t number, int64_t divisor, FunctionRef<Expr(int64_t)> dividend);
  Analyzer& analyzer() { return analyzer_; }

  void bind(const VarRef& var, const Expr& value) { vars_[var] = value; }
  void assume(const Expr& condition);
  size_t mark() const { return literals_.size(); }
  void release(size_t mark) { literals_.resize(mark); }

 protected:
  Expr visit_node(const Expr& e);

 private:
  Expr visit_arithmetic(const Expr& e, Kind kind);
  Expr visit_compare(const Expr& e, Kind kind);
  Expr visit_logic(const Expr& e, Kind kind);
  Expr visit_not(const Expr& e);
  Expr visit_select(const Expr& e);
  Expr visit_call(const Expr& e);
  Expr visit_if_then_else(const Expr& e);
  Expr visit_let(const Expr& e);
  Expr visit_cast(const Expr& e);
  Expr visit_other(const Expr& e);

  Expr with_visited(const Expr& e, Kind kind);
  Expr rewrite_eq(const Expr& e);
  Expr rewrite_lt(const Expr& e);
  Expr rewrite_not(const Expr& e);
  Expr merge_offsets(const Expr& a, const Expr& b);
  /// True or false if an assumption says so, else null.
  Expr by_assumption(const Expr& e) const;

  /// A condition in force: `expr` has this truth.
  struct Literal {
    Expr expr;
    bool truth;
  };
  Analyzer& analyzer_;
  VarMap vars_;
  std::vector<Literal> literals_;
  int depth_ = 0;
};

/// A condition with `not` pushed inward and comparisons brought to <, <=, ==, !=.
Expr normalize_condition(Expr e);

}  // namespace sator::arith
