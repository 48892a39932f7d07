// Arithmetic on LLVM values written as formulas: what elementary functions are made of.
#pragma once

#include <llvm/IR/Constants.h>

#include "codegen/emit/emit.h"

namespace sator::codegen::elementary {

/// A value of any number of lanes; constants take the lanes and the element type of the other operand.
struct Lane {
  Emit* e;
  llvm::Value* v;

  llvm::IRBuilder<>& b() const { return e->b; }
  llvm::Type* like(llvm::Type* element) const {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
    return vector ? llvm::FixedVectorType::get(element, vector->getNumElements()) : element;
  }
  Lane of(llvm::Value* value) const { return {e, value}; }
  Lane number(double c) const { return of(llvm::ConstantFP::get(v->getType(), c)); }
  Lane whole(int64_t c) const { return of(llvm::ConstantInt::get(v->getType(), static_cast<uint64_t>(c), true)); }
  Lane as_f32() const { return of(b().CreateBitCast(v, like(b().getFloatTy()))); }
  Lane as_f64() const { return of(b().CreateBitCast(v, like(b().getDoubleTy()))); }
  Lane as_i32() const { return of(b().CreateBitCast(v, like(b().getInt32Ty()))); }
  Lane as_i64() const { return of(b().CreateBitCast(v, like(b().getInt64Ty()))); }
  bool is_f64() const { return v->getType()->getScalarType()->isDoubleTy(); }
  Lane as_bits() const { return is_f64() ? as_i64() : as_i32(); }
  Lane to_f32() const { return of(b().CreateFPTrunc(v, like(b().getFloatTy()))); }
  Lane to_f64() const { return of(b().CreateFPExt(v, like(b().getDoubleTy()))); }
};

inline Lane operator+(Lane a, Lane b) { return a.of(a.b().CreateFAdd(a.v, b.v)); }
inline Lane operator-(Lane a, Lane b) { return a.of(a.b().CreateFSub(a.v, b.v)); }
inline Lane operator*(Lane a, Lane b) { return a.of(a.b().CreateFMul(a.v, b.v)); }
inline Lane operator/(Lane a, Lane b) { return a.of(a.b().CreateFDiv(a.v, b.v)); }
inline Lane operator+(Lane a, double c) { return a + a.number(c); }
inline Lane operator-(Lane a, double c) { return a - a.number(c); }
inline Lane operator*(Lane a, double c) { return a * a.number(c); }
inline Lane operator+(double c, Lane a) { return a.number(c) + a; }
inline Lane operator-(double c, Lane a) { return a.number(c) - a; }
inline Lane operator/(double c, Lane a) { return a.number(c) / a; }
inline Lane operator-(Lane a) { return a.of(a.b().CreateFNeg(a.v)); }
inline Lane operator<(Lane a, double c) { return a.of(a.b().CreateFCmpOLT(a.v, a.number(c).v)); }
inline Lane operator>(Lane a, double c) { return a.of(a.b().CreateFCmpOGT(a.v, a.number(c).v)); }
inline Lane operator>(Lane a, Lane b) { return a.of(a.b().CreateFCmpOGT(a.v, b.v)); }
inline Lane operator==(Lane a, double c) { return a.of(a.b().CreateFCmpOEQ(a.v, a.number(c).v)); }
inline Lane operator!=(Lane a, Lane b) { return a.of(a.b().CreateFCmpUNE(a.v, b.v)); }
inline Lane operator&&(Lane a, Lane b) { return a.of(a.b().CreateAnd(a.v, b.v)); }
inline Lane operator||(Lane a, Lane b) { return a.of(a.b().CreateOr(a.v, b.v)); }
inline Lane operator!(Lane a) { return a.of(a.b().CreateNot(a.v)); }
inline Lane is_nan(Lane a) { return a.of(a.b().CreateFCmpUNO(a.v, a.v)); }

/// Negative, or a negative zero or NaN.
inline Lane has_minus(Lane a) { return a.of(a.b().CreateICmpSLT(a.as_bits().v, a.as_bits().whole(0).v)); }

/// a * b + c, rounded once.
inline Lane fma(Lane a, Lane b, Lane c) {
  return a.of(a.b().CreateIntrinsic(llvm::Intrinsic::fma, {a.v->getType()}, {a.v, b.v, c.v}));
}
inline Lane fma(Lane a, double b, Lane c) { return fma(a, a.number(b), c); }
inline Lane fma(Lane a, Lane b, double c) { return fma(a, b, a.number(c)); }
inline Lane select(Lane condition, Lane yes, Lane no) { return yes.of(yes.b().CreateSelect(condition.v, yes.v, no.v)); }
inline Lane select(Lane condition, double yes, Lane no) { return select(condition, no.number(yes), no); }
inline Lane fabs(Lane a) { return a.of(a.b().CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a.v)); }
inline Lane sqrt(Lane a) { return a.of(a.b().CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a.v)); }
inline Lane copysign(Lane magnitude, Lane sign) {
  return magnitude.of(magnitude.b().CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude.v, sign.v));
}
/// Within [low, high]; NaN stays NaN.
inline Lane clamp(Lane x, double low, double high) {
  x = select(x < low, low, x);
  return select(x > high, high, x);
}

// On integer lanes.
inline Lane iadd(Lane a, Lane b) { return a.of(a.b().CreateAdd(a.v, b.v)); }
inline Lane iadd(Lane a, int64_t c) { return iadd(a, a.whole(c)); }
inline Lane isub(Lane a, Lane b) { return a.of(a.b().CreateSub(a.v, b.v)); }
inline Lane iand(Lane a, int64_t c) { return a.of(a.b().CreateAnd(a.v, a.whole(c).v)); }
inline Lane ixor(Lane a, Lane b) { return a.of(a.b().CreateXor(a.v, b.v)); }
inline Lane shl(Lane a, int64_t c) { return a.of(a.b().CreateShl(a.v, a.whole(c).v)); }
inline Lane sar(Lane a, int64_t c) { return a.of(a.b().CreateAShr(a.v, a.whole(c).v)); }
inline Lane is_set(Lane a, int64_t bits) { return a.of(a.b().CreateICmpNE(iand(a, bits).v, a.whole(0).v)); }

/// c[0] + x * (c[1] + x * (...)), by fused multiply-adds.
template <size_t N>
Lane polynomial(Lane x, const double (&c)[N]) {
  Lane p = x.number(c[N - 1]);
  for (size_t i = N - 1; i-- > 0;) p = fma(p, x, c[i]);
  return p;
}

/// The nearest whole number, ties to even, as a float and as an integer. |x| < 2^22 (f32) or 2^51 (f64); else the
/// integer is some number, never a trap.
struct Rounded {
  Lane value;
  Lane integer;
};
inline Rounded nearest(Lane x) {
  // Adding 1.5 * 2^(digits - 1) leaves the whole number in the lowest bits.
  bool f64 = x.is_f64();
  double magic = f64 ? 0x1.8p52 : 0x1.8p23;
  Lane shifted = x + magic;
  Lane bits = f64 ? shifted.as_i64() : shifted.as_i32();
  int64_t magic_bits = f64 ? 0x4338000000000000 : 0x4b400000;
  return {shifted - magic, iadd(bits, -magic_bits)};
}

}  // namespace sator::codegen::elementary
