// Products of symbolic factors (internal).
#pragma once

#include <optional>

#include "ir/expr.h"

namespace sator::arith {

/// a * b as ((x * y) * z) * c: factors from left to right, the constant last.
Expr multiply_normal(const Expr& a, const Expr& b);

/// a = a' * factor, b = b' * factor, with as much taken out as the two products share.
struct Cancelled {
  Expr a, b, factor;
};
/// Nothing if they share nothing, or b is a constant. What is left has the same quotient; remainders scale by `factor`.
std::optional<Cancelled> cancel_common_factors(const Expr& a, const Expr& b);

}  // namespace sator::arith
