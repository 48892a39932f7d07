// Operators between values, as Python defines them.
#pragma once

#include "engine/jinja/value.h"

namespace sator::jinja {

/// "-", "+" and "not". Errors: the sign of what is no number.
Value unary(const std::string& op, const Value& v);
/// "~", "+", "-", "*", "/", "//", "%" and "**". Errors: values of other types; a division by 0; a result that is too large.
Value binary(const std::string& op, const Value& a, const Value& b);
/// "==", "!=", "<", "<=", ">", ">=", "in" and "not in". Errors: values that have no order, or no elements.
bool compares(const std::string& op, const Value& a, const Value& b);
/// of[from:to:step]; none where a bound is absent.
Value slice(const Value& of, const Value& from, const Value& to, const Value& step);

}  // namespace sator::jinja
