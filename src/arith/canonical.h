// Simplification through the canonical form of sums (internal to Analyzer).
#pragma once

#include "arith/rewrite.h"
#include "arith/sum.h"

namespace sator::arith {

/// Index sums, products and divisions become `Sum`s, so that like terms meet and splits of one index merge; all else is
/// done by the rules.
class Canonicalizer final : public Rewriter {
 public:
  using Rewriter::Rewriter;
  Expr visit(const Expr& e) override { return to_expr(form(e)); }

 private:
  Form form(const Expr& e);
  Form of_sum(const Expr& e, Kind kind);
  Form of_product(const Expr& e);
  Form of_division(const Expr& e, Kind kind);
  Form of_cast(const Expr& e);
  Form of_lt(const Expr& e);

  /// x / divisor and x % divisor by a positive constant.
  Form quotient(const Form& x, int64_t divisor, Rounding rounding);
  Form remainder(const Form& x, int64_t divisor, Rounding rounding);
  Split quotient(Split x, int64_t divisor, Rounding rounding);
  Split remainder(Split x, int64_t divisor, Rounding rounding);
  /// Whether a part of a sum may be divided apart from the rest: it leaves no range that the whole is known to keep.
  bool stands_alone(const Expr& part, const Sum& whole);
  bool within(const Expr& e, int64_t limit);
};

}  // namespace sator::arith
