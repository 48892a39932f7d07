// Elementary functions as straight-line code in f32 and f64, the same bits for every number of lanes and at every level.
//
// Each is accurate to 1.5 ulp (sigmoid, tan, the inverse and the hyperbolic functions to 2.5, but tanh of f32) over the whole
// range, subnormal arguments and results included; infinities and NaN as in C. Angles of f64 above 2^19 are libm's.
// Method: argument reduction by multiples of a constant in two or three parts (Cody & Waite, "Software Manual for the
// Elementary Functions", 1980), then a minimax polynomial; coefficients by tools/fit_elementary.py.
#pragma once

#include "codegen/emit/emit.h"

namespace sator::codegen::elementary {

// `x`: f32 or f64 with any number of lanes.
llvm::Value* exp(Emit& e, llvm::Value* x);
llvm::Value* exp2(Emit& e, llvm::Value* x);
llvm::Value* exp10(Emit& e, llvm::Value* x);
llvm::Value* log(Emit& e, llvm::Value* x);
llvm::Value* log2(Emit& e, llvm::Value* x);
llvm::Value* log10(Emit& e, llvm::Value* x);
llvm::Value* log1p(Emit& e, llvm::Value* x);
llvm::Value* tanh(Emit& e, llvm::Value* x);
/// 1 + tanh(x) of f32, in half the steps of tanh and without its loss of digits where x is negative: 2.5 ulp for x > -43, and 0 for
/// x < -44.5.
llvm::Value* one_plus_tanh(Emit& e, llvm::Value* x);
llvm::Value* sigmoid(Emit& e, llvm::Value* x);
llvm::Value* erf(Emit& e, llvm::Value* x);  ///< f32 alone
llvm::Value* sin(Emit& e, llvm::Value* x);
llvm::Value* cos(Emit& e, llvm::Value* x);
llvm::Value* tan(Emit& e, llvm::Value* x);
llvm::Value* sinh(Emit& e, llvm::Value* x);
llvm::Value* cosh(Emit& e, llvm::Value* x);
llvm::Value* asin(Emit& e, llvm::Value* x);
llvm::Value* acos(Emit& e, llvm::Value* x);
llvm::Value* atan(Emit& e, llvm::Value* x);
llvm::Value* asinh(Emit& e, llvm::Value* x);
llvm::Value* acosh(Emit& e, llvm::Value* x);
llvm::Value* atanh(Emit& e, llvm::Value* x);
/// The angle of the point (x, y).
llvm::Value* atan2(Emit& e, llvm::Value* y, llvm::Value* x);
/// In more digits than x has: y * log2(x) needs them.
llvm::Value* pow(Emit& e, llvm::Value* x, llvm::Value* y);

}  // namespace sator::codegen::elementary
