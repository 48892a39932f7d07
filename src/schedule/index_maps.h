// Index maps as primitives apply them.
#pragma once

#include "schedule/schedule.h"

namespace sator::schedule {

using IndexMapRef = Ref<const arith::IndexMap>;

/// The map in the dtype of the shape that it is for: lambdas are written without one.
IndexMapRef in_dtype(const IndexMapRef& map, DType dtype);
/// A composed index in its simple form. A variable or constant stays: an iterator of extent 1 keeps its place.
Expr simple_index(const Expr& e, arith::Analyzer& a);
/// The map's outputs for these inputs, in their simple form.
std::vector<Expr> mapped_access(const arith::IndexMap& map, const std::vector<Expr>& indices, arith::Analyzer& a);

}  // namespace sator::schedule
