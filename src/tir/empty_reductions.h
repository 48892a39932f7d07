#pragma once

#include "tir/nodes.h"

namespace sator::tir {

/// The statement with the inits that no iteration would run: in front of a reduction's loops, where one of them may have no
/// iterations, the init runs alone for each value of the spatial iterators. Code in the loops themselves stays as it is.
///   for i: for k in range(n): with block: init: X(i); Y(i, k)
///   =>
///   if n <= 0: for i: X(i)
///   for i: for k in range(n): with block: init: X(i); Y(i, k)
/// A loop that feeds a spatial iterator and a reduction together (fused) has no values then: that iterator runs over its domain.
Stmt with_empty_reductions(const Stmt& stmt);

}  // namespace sator::tir
