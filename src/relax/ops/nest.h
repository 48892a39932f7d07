// Loops around the statement of an op that writes its result itself.
#pragma once

#include <string>
#include <vector>

#include "relax/ops/formula.h"

namespace sator::relax {

/// Loops over all indices of a shape around `body`.
template <class Body>
tir::Stmt nest(const std::vector<Expr>& shape, const char* prefix, Body&& body) {
  std::vector<VarRef> loops;
  te::Indices i;
  for (size_t d = 0; d < shape.size(); ++d) {
    loops.push_back(make_var(text(prefix, d), shape[d]->dtype));
    i.push_back(loops.back());
  }
  tir::Stmt s = body(i);
  for (size_t d = shape.size(); d-- > 0;) s = tir::for_loop(loops[d], shape[d], s);
  return s;
}

}  // namespace sator::relax
