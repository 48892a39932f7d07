// What an inequality says of one of its variables.
#pragma once

#include "arith/intset.h"

namespace sator::arith {

/// The values of `var` for which the condition surely holds: b + a * 4 < 17 with b in [0, 4] gives a <= 3.
///   hints   what is known of other variables: signs of factors are told from it
///   relaxed variables that take all values of these sets at once; others of the condition stay symbols of the result
///   →       an interval; nothing() if the condition is no comparison of integers, `var` occurs more than once, or it stands
///           under anything but +, -, * and //
IntSet deduce_bound(const VarRef& var, const Expr& condition, const SetMap& hints, const SetMap& relaxed);

/// The bounds that a conjunction of linear comparisons states of each variable, each conjunct of one variable of `vars` with
/// the factor 1 or -1: `a < b * 6 and a > 1` gives a in [2, b * 6 - 1]. No sets at all if a conjunct has another form.
std::vector<IntSet> detect_clip_bound(const Expr& condition, const std::vector<VarRef>& vars);

/// A condition without the variables of `free` that implies the given one for all of their values: i < n with n in [0, 8)
/// gives i < 0. What is not monotonic in them, and what is read from memory, counts as unknown: the comparison is then
/// false, or true below a `not`.
Expr narrow_predicate(const Expr& condition, const RangeMap& free);

}  // namespace sator::arith
