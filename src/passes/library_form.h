#pragma once

#include "tir/nodes.h"

namespace sator::passes {

/// A legalised program in the form of TVM's operator library, for who compares programs with its ones: maxima and minima begin
/// at the greatest finite value in place of infinity, a division by a constant is a multiplication by its reciprocal, a
/// maximum's position ignores NaN, halves are rounded away from 0, nn.nll_loss reads the class of an ignored target too, and
/// its gradient that of one below 0. The results differ from NumPy's for rows of infinities and of NaN, for halves, and in the
/// last bit.
/// Source: TVM v0.17, include/tvm/topi/reduction.h, nn/pooling.h, src/arith/rewrite_simplify.cc.
tir::PrimFuncRef in_library_form(const tir::PrimFuncRef& f);

}  // namespace sator::passes
