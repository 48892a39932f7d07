// Building expressions with constants folded, without wrapping: where a folded constant would not fit the dtype, the
// operation is left standing.
#pragma once

#include <optional>

#include "arith/kind.h"
#include "ir/expr.h"

namespace sator::arith {

/// The value of a constant operation, exact: nothing if it leaves 64 bits or divides by zero. Comparisons and logic give
/// 0 or 1.
std::optional<int64_t> fold_value(Kind kind, int64_t a, int64_t b);

/// What `a kind b` folds to (2 + 3, x + 0, x * 1, 0 // x, true and x, ...), or null if it stays an operation. Both
/// operands have one dtype.
Expr try_fold(Kind kind, const Expr& a, const Expr& b);
/// The folded expression, or the plain operation.
Expr fold(Kind kind, Expr a, Expr b);
Expr fold_not(Expr a);

/// What divides in `a kind given` once `given` is simplified. Where a divisor comes out as the constant 0, under conditions
/// that no run meets, it stays as it was written: a program without a division by 0 keeps none.
Expr kept_divisor(Kind kind, const Expr& given, Expr simplified);

/// A constant of the dtype, broadcast to its lanes.
Expr int_constant(int64_t value, DType dtype);

}  // namespace sator::arith
