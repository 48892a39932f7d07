// Evaluates expressions over intervals (internal to Analyzer and intset.h).
#pragma once

#include "arith/analyzer.h"
#include "arith/intset.h"
#include "arith/kind.h"

namespace sator::arith {

struct SetConstraint {
  VarRef var;
  IntSet set;
};

class IntervalEvaluator {
 public:
  IntervalEvaluator(Analyzer& analyzer, const SetMap& domains, const std::vector<SetConstraint>* constraints = nullptr)
      : analyzer_(analyzer), domains_(domains), constraints_(constraints) {}
  IntSet operator()(const Expr& e);
  /// A set whose ends may hold variables of the domains: they are relaxed too.
  IntSet relax(const IntSet& set);

 private:
  IntSet of_var(const Expr& e);
  IntSet of_ramp(const Ramp& n);
  IntSet of_cast(const Cast& n);
  IntSet combine(Kind kind, const IntSet& a, const IntSet& b, DType dtype);
  IntSet scaled(Kind kind, const IntSet& a, const Expr& b);
  IntSet remainder(Kind kind, const IntSet& a, const Expr& divisor);

  Analyzer& analyzer_;
  const SetMap& domains_;
  const std::vector<SetConstraint>* constraints_;
  size_t depth_ = 0;
};

/// The bounds on variables that a condition states.
std::vector<SetConstraint> set_constraints(const Expr& condition);

/// a kind b with folding; operands of different dtypes are brought to one.
Expr combine_exprs(Kind kind, const Expr& a, const Expr& b);

}  // namespace sator::arith
