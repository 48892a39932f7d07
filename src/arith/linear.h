// Expressions as linear functions of chosen variables.
#pragma once

#include <optional>
#include <vector>

#include "ir/expr.h"

namespace sator::arith {

/// e = coefficients[0] * vars[0] + ... + base, where neither coefficients nor base hold a variable of `vars`.
struct Linear {
  std::vector<Expr> coefficients;
  Expr base;
};

/// The linear form, simplified: stride and offset of an index along its loops. Nothing if a variable stands under anything
/// but +, - and products with what is free of variables.
std::optional<Linear> detect_linear(const Expr& e, const std::vector<VarRef>& vars);

}  // namespace sator::arith
