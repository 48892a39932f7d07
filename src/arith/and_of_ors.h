// Conditions as a conjunction of disjunctions.
#pragma once

#include "arith/analyzer.h"

namespace sator::arith {

/// The condition as (a or b) and (c or d) and ...: a or (b and c) is (a or b) and (a or c). Terms that say the same as others are
/// joined, within a group (i == 20 or i != 30 is i != 30) and of groups that differ in one term. The condition itself if it
/// would have too many groups, or if a part of it may fail where another guards it (a load, a division).
Expr as_and_of_ors(const Expr& condition, Analyzer& analyzer);

}  // namespace sator::arith
