// Sums of scaled, split terms: the canonical form of index expressions (internal to Analyzer).
#pragma once

#include <variant>
#include <vector>

#include "arith/numbers.h"
#include "ir/expr.h"

namespace sator::arith {

enum class Rounding : uint8_t { truncated, floored };

/// ((index % upper) / lower) * scale, where lower > 0 divides upper; upper may be absent (kPosInf), or negative.
struct Split {
  Expr index;
  int64_t lower = 1, upper = kPosInf, scale = 1;
  Rounding rounding = Rounding::truncated;
  DType dtype;

  bool plain() const { return lower == 1 && upper == kPosInf; }
  bool can_round(Rounding r) const { return rounding == r || plain(); }
  /// The expression times `factor`; the scale must have been checked to fit.
  Expr expr(int64_t factor = 1) const;
};

/// The sum of its terms and a constant. Terms of one index stand together, by falling `lower`.
struct Sum {
  PooledVector<Split> terms;
  int64_t base = 0;
  DType dtype;

  /// The sum as an expression: neighbouring splits are merged, positive scales come first, larger before smaller, then
  /// the constant, then what is subtracted.
  Expr expr() const;
  bool is_zero() const { return base == 0 && terms.empty(); }
  /// Whether the constant and all scales fit the dtype.
  bool fits() const;
  // Each returns false, and leaves the sum unusable, if a number leaves 64 bits.
  bool add(Split term, int64_t factor);
  bool add(const Sum& other, int64_t factor);
  bool add(int64_t value);
  bool multiply(int64_t factor);
  /// By a divisor of the constant and every scale.
  void divide(int64_t divisor);
};

/// An expression on its way: plain, one term, or a sum.
using Form = std::variant<Expr, Split, Sum>;
Expr to_expr(const Form& form);

}  // namespace sator::arith
