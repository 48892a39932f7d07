// Constants as values of a dtype.
#pragma once

#include <optional>

#include "base/error.h"
#include "ir/expr.h"

namespace sator {

/// Why a dtype cannot hold a constant: it would wrap around, or become infinite. Nothing of an expression that is no constant.
std::optional<Reason> cannot_hold(const Expr& value, DType dtype);

/// A number as a program writes it without a dtype: float32, float64 where it is finite and beyond float32's range.
Expr float_literal(double value);

/// A value that meets one of a wider float, or is stored as such: cast_to, but a constant has the number that was written and
/// not the one that its narrower dtype would round it to.
Expr promoted(DType dtype, Expr value);

}  // namespace sator
