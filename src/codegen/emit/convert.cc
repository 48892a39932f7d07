// Conversions between dtypes. Rounding is to nearest, ties to even; a float becomes an integer by truncation, which is
// undefined where the integer dtype cannot hold it.
#include <llvm/IR/Constants.h>

#include <cmath>

#include "codegen/emit/emit.h"

namespace sator::codegen {

namespace {

llvm::Type* like(llvm::Value* shape, llvm::Type* element) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(shape->getType());
  return vector ? llvm::FixedVectorType::get(element, vector->getNumElements()) : element;
}
llvm::Constant* bits(llvm::Value* shape, llvm::Type* element, uint64_t value) {
  return llvm::ConstantInt::get(like(shape, element), value);
}

/// Behind a fence LLVM does not narrow what is compared with a constant to comparisons of halves, which it does lane by lane where the
/// processor has none.
llvm::Value* f16_to_f32(Emit& e, llvm::Value* v) {
  llvm::Value* wide = e.b.CreateFPExt(v, like(v, e.b.getFloatTy()));
  return v->getType()->isVectorTy() ? e.b.CreateUnaryIntrinsic(llvm::Intrinsic::arithmetic_fence, wide) : wide;
}

llvm::Value* bf16_to_f32(Emit& e, llvm::Value* v) {
  llvm::Type* i32 = e.b.getInt32Ty();
  llvm::Value* wide = e.b.CreateShl(e.b.CreateZExt(v, like(v, i32)), bits(v, i32, 16));
  return e.b.CreateBitCast(wide, like(v, e.b.getFloatTy()));
}

llvm::Value* f32_to_bf16(Emit& e, llvm::Value* v) {
  llvm::Type* i32 = e.b.getInt32Ty();
  llvm::Value* word = e.b.CreateBitCast(v, like(v, i32));
  llvm::Value* high = e.b.CreateLShr(word, bits(v, i32, 16));
  llvm::Value* odd = e.b.CreateAnd(high, bits(v, i32, 1));
  llvm::Value* rounded =
      e.b.CreateLShr(e.b.CreateAdd(e.b.CreateAdd(word, bits(v, i32, 0x7fff)), odd), bits(v, i32, 16));
  llvm::Value* quiet_nan = e.b.CreateOr(high, bits(v, i32, 0x40));
  llvm::Value* out = e.b.CreateSelect(e.b.CreateFCmpUNO(v, v), quiet_nan, rounded);
  return e.b.CreateTrunc(out, like(v, e.b.getInt16Ty()));
}

/// An 8-bit float, exactly. e5m2 is the upper half of a float16; the bits of e4m3 are moved there too, where their exponent
/// counts 8 too little.
llvm::Value* f8_to_f32(Emit& e, llvm::Value* v, DType from) {
  llvm::Type* i16 = e.b.getInt16Ty();
  llvm::Type* real = like(v, e.b.getFloatTy());
  auto half = [&](llvm::Value* word) {
    return e.b.CreateFPExt(e.b.CreateBitCast(word, like(v, e.b.getHalfTy())), real);
  };
  llvm::Value* word = e.b.CreateZExt(v, like(v, i16));
  if (from.code == DType::Code::e5m2) return half(e.b.CreateShl(word, bits(v, i16, 8)));
  llvm::Value* sign = e.b.CreateShl(e.b.CreateAnd(word, bits(v, i16, 0x80)), bits(v, i16, 8));
  llvm::Value* magnitude = e.b.CreateAnd(word, bits(v, i16, 0x7f));
  llvm::Value* moved = e.b.CreateOr(e.b.CreateShl(magnitude, bits(v, i16, 7)), sign);
  llvm::Value* value = e.b.CreateFMul(half(moved), llvm::ConstantFP::get(real, 256.0));
  llvm::Value* is_nan = e.b.CreateICmpEQ(magnitude, bits(v, i16, 0x7f));
  return e.b.CreateSelect(is_nan, llvm::ConstantFP::getNaN(real), value);
}

/// The nearest 8-bit float: the steps of f32_to_f8 (base/float8.h) on each lane.
llvm::Value* f32_to_f8(Emit& e, llvm::Value* v, DType to) {
  const bool is_e4m3 = to.code == DType::Code::e4m3;
  const int mantissa = is_e4m3 ? 3 : 2, bias = is_e4m3 ? 7 : 15, shift = 23 - mantissa;
  const uint64_t infinite = is_e4m3 ? 0x7f : 0x7c, quiet_nan = is_e4m3 ? 0x7f : 0x7e;
  llvm::Type* i32 = e.b.getInt32Ty();
  auto number = [&](uint64_t x) { return bits(v, i32, x); };
  llvm::Value* all = e.b.CreateBitCast(v, like(v, i32));
  llvm::Value* sign = e.b.CreateAnd(e.b.CreateLShr(all, number(24)), number(0x80));
  llvm::Value* magnitude = e.b.CreateAnd(all, number(0x7fffffff));
  const uint64_t least = static_cast<uint64_t>(127 + 1 - bias) << 23;
  llvm::Constant* steps = number(least + (static_cast<uint64_t>(shift) << 23));
  llvm::Value* added =
      e.b.CreateFAdd(e.b.CreateBitCast(magnitude, v->getType()), e.b.CreateBitCast(steps, v->getType()));
  llvm::Value* small = e.b.CreateSub(e.b.CreateBitCast(added, like(v, i32)), steps);
  llvm::Value* odd = e.b.CreateAnd(e.b.CreateLShr(magnitude, number(static_cast<uint64_t>(shift))), number(1));
  llvm::Value* up = e.b.CreateAdd(e.b.CreateAdd(magnitude, number((uint64_t{1} << (shift - 1)) - 1)), odd);
  llvm::Value* normal = e.b.CreateSub(e.b.CreateLShr(up, number(static_cast<uint64_t>(shift))),
                                      number(static_cast<uint64_t>(127 - bias) << mantissa));
  llvm::Value* bounded = e.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, normal, number(infinite));
  llvm::Value* code = e.b.CreateSelect(e.b.CreateICmpULT(magnitude, number(least)), small, bounded);
  code = e.b.CreateSelect(e.b.CreateFCmpUNO(v, v), number(quiet_nan), code);
  return e.b.CreateTrunc(e.b.CreateOr(code, sign), like(v, e.b.getInt8Ty()));
}

/// f64 to f32 such that a later rounding to 16 or 8 bits is the right one: toward zero, with the last bit set when inexact.
llvm::Value* f64_to_f32_odd(Emit& e, llvm::Value* v) {
  llvm::Type* i32 = e.b.getInt32Ty();
  llvm::Value* near = e.b.CreateFPTrunc(v, like(v, e.b.getFloatTy()));
  llvm::Value* back = e.b.CreateFPExt(near, v->getType());
  llvm::Value* word = e.b.CreateBitCast(near, like(v, i32));
  auto magnitude = [&](llvm::Value* x) { return e.b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); };
  llvm::Value* over = e.b.CreateFCmpOGT(magnitude(back), magnitude(v));
  llvm::Value* down = e.b.CreateSub(word, e.b.CreateZExt(over, like(v, i32)));
  llvm::Value* odd = e.b.CreateOr(down, e.b.CreateZExt(e.b.CreateFCmpONE(back, v), like(v, i32)));
  return e.b.CreateBitCast(odd, like(v, e.b.getFloatTy()));
}

llvm::Value* float_to_float(Emit& e, llvm::Value* v, DType from, DType to) {
  if (from.is_float8()) {
    v = f8_to_f32(e, v, from);
    from = f32;
  } else if (from.is_bfloat()) {
    v = bf16_to_f32(e, v);
    from = f32;
  } else if (from.bits == 16) {
    v = f16_to_f32(e, v);
    from = f32;
  }
  if (to.bits <= 16) {
    if (from.bits == 64) v = f64_to_f32_odd(e, v);
    if (to.is_float8()) return f32_to_f8(e, v, to);
    return to.is_bfloat() ? f32_to_bf16(e, v) : e.b.CreateFPTrunc(v, like(v, e.b.getHalfTy()));
  }
  llvm::Type* type = like(v, to.bits == 64 ? e.b.getDoubleTy() : e.b.getFloatTy());
  return to.bits > from.bits ? e.b.CreateFPExt(v, type) : to.bits < from.bits ? e.b.CreateFPTrunc(v, type) : v;
}

/// NaN becomes 0, what is too large the nearest integer of the dtype: the processor's own conversion gives other numbers, and
/// other ones on each processor.
llvm::Value* float_to_integer(Emit& e, llvm::Value* v, DType from, DType to) {
  const int mantissa = from.bits == 64 ? 53 : 24, magnitude = to.is_int() ? to.bits - 1 : to.bits;
  const double beyond = std::ldexp(1.0, magnitude);
  // The largest float that is not beyond: below 2^24 or 2^53 each integer is a float.
  const bool is_exact = magnitude <= mantissa;
  const double high = is_exact ? beyond - 1 : beyond * (1 - std::ldexp(1.0, -mantissa));
  auto number = [&](double x) { return llvm::ConstantFP::get(v->getType(), x); };
  llvm::Value* real = e.b.CreateSelect(e.b.CreateFCmpORD(v, v), v, number(0));
  llvm::Value* low = number(to.is_int() ? -beyond : 0);
  llvm::Value* clamped = e.b.CreateSelect(e.b.CreateFCmpOGT(real, low), real, low);
  clamped = e.b.CreateSelect(e.b.CreateFCmpOLT(clamped, number(high)), clamped, number(high));
  llvm::Type* type = type_of(e, to);
  llvm::Value* out = to.is_int() ? e.b.CreateFPToSI(clamped, type) : e.b.CreateFPToUI(clamped, type);
  if (is_exact) return out;
  const unsigned bits = static_cast<unsigned>(to.bits);
  llvm::Constant* most =
      llvm::ConstantInt::get(type, to.is_int() ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits));
  return e.b.CreateSelect(e.b.CreateFCmpOGE(real, number(beyond)), most, out);
}

}  // namespace

DType widened(DType d) { return d.is_float() && d.bits <= 16 ? DType::Float(32, d.lanes) : d; }

llvm::Value* widened(Emit& e, llvm::Value* v, DType d) { return convert(e, v, d, widened(d)); }

llvm::Value* convert(Emit& e, llvm::Value* v, DType from, DType to) {
  if (from == to) return v;
  if (from.lanes != to.lanes) unsupported(text("a cast of ", from, " to ", to));
  llvm::Type* type = type_of(e, to);
  if (from.is_handle() || to.is_handle()) {
    if (from.is_handle() && to.is_handle()) return v;
    return from.is_handle() ? e.b.CreatePtrToInt(v, type) : e.b.CreateIntToPtr(v, type);
  }
  if (from.is_float() && to.is_float()) return float_to_float(e, v, from, to);
  if (to.is_bool()) {
    v = widened(e, v, from);
    llvm::Value* zero = llvm::Constant::getNullValue(v->getType());
    return from.is_float() ? e.b.CreateFCmpUNE(v, zero) : e.b.CreateICmpNE(v, zero);
  }
  if (from.is_float()) return float_to_integer(e, widened(e, v, from), widened(from), to);
  if (to.is_float()) {
    DType wide = widened(to);
    llvm::Type* wide_type = type_of(e, wide);
    v = from.is_int() ? e.b.CreateSIToFP(v, wide_type) : e.b.CreateUIToFP(v, wide_type);
    return convert(e, v, wide, to);
  }
  return from.is_int() ? e.b.CreateSExtOrTrunc(v, type) : e.b.CreateZExtOrTrunc(v, type);
}

}  // namespace sator::codegen
