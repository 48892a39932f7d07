// Tensors of formulas as Python objects.
#pragma once

#include "bind/node.h"
#include "relax/ops/op.h"
#include "tir/te.h"

namespace sator::bind {

/// One extent, or a list or tuple of them. Errors: TypeError for what is no expression.
std::vector<Expr> extents_of(nb::handle shape);
/// A tensor, a list of tensors, an expression or a list of expressions.
nb::object te_to_python(const relax::TeInput& input);
/// One tensor, or a list or tuple of them. Errors: TypeError for anything else.
std::vector<te::Tensor> te_tensors_of(nb::handle object);

}  // namespace sator::bind
