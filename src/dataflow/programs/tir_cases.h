#pragma once

#include "dataflow/programs/tir_index.h"

namespace sator::dataflow {

/// Conditions that all hold: each expression is >= 0.
using Guards = std::vector<QuasiAffine>;

/// Where `condition` comes out as `outcome`: disjoint sets of points, each stated by its guards. Comparisons of quasi-affine
/// expressions joined by and, or, not are split exactly: `not (a and b)` is `not a`, and `a and not b` beside it.
/// Nothing where a part is no such comparison (it asks data), or more than 16 sets result.
std::optional<std::vector<Guards>> cases_of(const Expr& condition, bool outcome, const VarValues& values);

/// True if the guards exclude each other, or one of them no point of the box meets.
bool certainly_empty(const Guards& guards, const Domain& domain);

/// A stored value on a part of its domain.
struct Arm {
  Guards guards;
  Expr value;
};

/// A value with its choices on indices made: `if_then_else(c, x, y)` and `select` are x where c holds, y where it does not.
/// The arms' sets of points are disjoint and together the whole. A choice that asks data stays in its value, as does what
/// goes beyond 16 arms; `undecided` is then set.
std::vector<Arm> arms_of(const Expr& value, const VarValues& values, const Domain& domain, bool& undecided);

}  // namespace sator::dataflow
