// Comparisons that are known to hold between expressions (internal to Analyzer).
#pragma once

#include <vector>

#include "arith/facts.h"
#include "ir/expr.h"

namespace sator::arith {

/// Keeps statements `a <= b + c`, `a == b + c`, ... from ranges, bindings and conditions, and answers comparisons that
/// one of them settles; on request also chains of them.
class KnownComparisons {
 public:
  /// var is in [min, min + extent); replaces what an earlier bind said.
  void bind(const VarRef& var, const Range& range);
  void bind(const VarRef& var, const Expr& value);
  void assume(const Expr& condition) { add(condition, scoped_); }
  size_t mark() const { return scoped_.size(); }
  void release(size_t mark) { scoped_.resize(mark); }

  /// How a stands to b.
  ///   chained   also through other expressions: a <= b, b <= c give a <= c
  Order compare(const Expr& a, const Expr& b, bool chained) const;

 private:
  using Key = size_t;
  /// lhs (le | ge | eq | ne) rhs + offset
  struct Known {
    Key lhs, rhs;
    int64_t offset;
    Order order;
    bool implies(const Known& o) const;
  };
  Key key(const Expr& e);
  std::optional<Key> find(const Expr& e) const;
  void add(const Expr& condition, PooledVector<Known>& to);
  void forget(const VarRef& var);
  PooledVector<Known> direct(Key a, Key b) const;
  PooledVector<Known> reachable(Key a, Key b) const;

  PooledVector<Expr> exprs_;
  PooledVector<Known> global_, scoped_;
};

}  // namespace sator::arith
