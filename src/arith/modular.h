// Residue classes of integer expressions (internal to Analyzer).
#pragma once

#include <utility>
#include <vector>

#include "arith/facts.h"
#include "ir/expr.h"

namespace sator::arith {

class Analyzer;

class ModularAnalysis {
 public:
  explicit ModularAnalysis(Analyzer& parent) : parent_(parent) {}
  Modular operator()(const Expr& e);
  void bind(const VarRef& var, Modular m) { vars_[var] = m; }
  /// Notes `var % c == k`; `release` undoes what came after `mark`.
  void assume(const Expr& condition);
  size_t mark() const { return undo_.size(); }
  void release(size_t mark);

 private:
  Modular of_call(const Call& c);
  Modular quotient(const Expr& e, int64_t divisor, bool floored);
  Modular remainder(const Expr& e, int64_t divisor);
  Analyzer& parent_;
  PooledMap<VarRef, Modular> vars_;
  std::vector<std::pair<VarRef, Modular>> undo_;
};

/// {coeff * k + base} with base brought into [0, coeff); everything if the numbers leave 64 bits.
Modular make_modular(__int128 coeff, __int128 base);

}  // namespace sator::arith
