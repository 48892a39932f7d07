#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "dataflow/counts/relation.h"
#include "ir/expr.h"

namespace sator::dataflow {

/// What variables of a tensor program stand for: iterators of a statement, values of symbolic sizes, sums of them.
using VarValues = std::unordered_map<VarRef, QuasiAffine>;

/// An integer expression of a tensor program as a quasi-affine one; nothing if it is none (a product of iterators, a load,
/// an unknown variable). Truncated division is read as rounded down: indices are not negative.
std::optional<QuasiAffine> to_quasi_affine(const Expr& e, const VarValues& values);

/// Conditions joined by `and` as expressions that are >= 0, appended to `guards`. False if some part is no comparison of
/// quasi-affine expressions; the other parts are appended all the same.
bool to_guards(const Expr& condition, const VarValues& values, std::vector<QuasiAffine>& guards);

/// The largest and the smallest value of e over the box of the domain, guards aside.
int64_t largest(const QuasiAffine& e, const Domain& domain);
int64_t smallest(const QuasiAffine& e, const Domain& domain);

}  // namespace sator::dataflow
