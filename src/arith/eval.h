// The value of an integer expression at given values of its variables: the meaning that rules and analyses are tested
// against.
#pragma once

#include <optional>
#include <unordered_map>

#include "ir/expr.h"

namespace sator::arith {

using Values = std::unordered_map<VarRef, int64_t>;

/// The value, computed exactly: nothing if a variable is missing, a divisor is zero, a value leaves 64 bits, or a part is
/// not integer arithmetic (floats, loads, most calls). Of a vector, that lane. `and`, `or`, `select` and if_then_else
/// evaluate only what decides.
std::optional<int64_t> evaluate(const Expr& e, const Values& values, int lane = 0);

}  // namespace sator::arith
