// Constant bounds of integer expressions (internal to Analyzer).
#pragma once

#include <vector>

#include "arith/facts.h"
#include "ir/expr.h"

namespace sator::arith {

class BoundsAnalysis {
 public:
  Bounds operator()(const Expr& e);
  void bind(const VarRef& var, Bounds bounds) { vars_[var] = bounds; }
  void bind(const VarRef& var, const Range& range);
  /// Notes what the condition says of expressions against constants; `release` forgets what came after `mark`.
  void assume(const Expr& condition);
  size_t mark() const { return assumed_.size(); }
  void release(size_t mark) { assumed_.resize(mark); }

 private:
  struct Assumed {
    Expr expr;
    Bounds bounds;
  };
  Bounds of(const ExprNode& e);
  Bounds of_call(const Call& c);
  Bounds of_cast(const Cast& c);
  PooledMap<VarRef, Bounds> vars_;
  std::vector<Assumed> assumed_;
};

/// All values of a dtype.
Bounds bounds_of(DType dtype);

}  // namespace sator::arith
