// Arithmetic of all dtypes.
//
// Where a sum or difference of f32 or f64 has a product as an operand (the right one is looked at first), both become
// one fused multiply-add: a + b * c is rounded once. The rule reads the program alone, so that it holds at every level
// and for every number of lanes; against two roundings (the interpreter) the difference is at most half an ulp of b * c.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "arith/eval.h"
#include "codegen/emit/elementary.h"
#include "codegen/emit/emit.h"
#include "codegen/emit/lanes.h"
#include "ir/builtins.h"

namespace sator::codegen {

namespace {

bool fuses(DType d) { return d.is_ieee_float() && d.bits >= 32; }

/// a * b + c
llvm::Value* fused(Emit& e, const Mul& product, bool negate, llvm::Value* addend) {
  llvm::Value* a = value_of(e, product.a);
  llvm::Value* b = value_of(e, product.b);
  if (negate) a = e.b.CreateFNeg(a);
  return e.b.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, addend});
}

/// Float arithmetic in the dtype, f16 and bf16 through f32.
template <class F>
llvm::Value* in_float(Emit& e, const Expr& a, const Expr& b, F op) {
  DType d = a->dtype;
  llvm::Value* x = widened(e, value_of(e, a), d);
  llvm::Value* y = widened(e, value_of(e, b), d);
  return convert(e, op(x, y), widened(d), d);
}

/// The divisor, with 1 in the lanes that do not run: vector division is done lane by lane. The instruction would end the process on
/// zero; the kernel fails instead.
llvm::Value* safe_divisor(Emit& e, const Expr& divisor) {
  llvm::Value* b = value_of(e, divisor);
  if (llvm::isa<llvm::Constant>(b)) return b;
  const int lanes = divisor->dtype.lanes;
  if (e.mask && lanes > 1) b = e.b.CreateSelect(mask_for(e, lanes), b, llvm::ConstantInt::get(b->getType(), 1));
  llvm::Value* is_zero = e.b.CreateIsNull(b);
  fail_if(e, lanes > 1 ? e.b.CreateOrReduce(is_zero) : is_zero, text("a division by zero: the divisor is ", divisor));
  return b;
}

Expr in_lanes(const Expr& x) {
  const Broadcast* b = x.as<Broadcast>();
  return b ? b->value : x;
}

/// Whether a float is always an integer of at most 8 bits, or with `sums` the sum or difference of two.
bool is_small_integer(const Expr& x, bool sums = true) {
  constexpr int64_t kMost = 255;
  const Expr one = in_lanes(x);
  if (const FloatImm* c = one.as<FloatImm>()) return std::abs(c->value) <= kMost && c->value == std::round(c->value);
  if (const Add* n = one.as<Add>(); n && sums) return is_small_integer(n->a, false) && is_small_integer(n->b, false);
  if (const Sub* n = one.as<Sub>(); n && sums) return is_small_integer(n->a, false) && is_small_integer(n->b, false);
  const Cast* cast = one.as<Cast>();
  if (!cast) return false;
  if (const DType from = cast->value->dtype; (from.is_int() || from.is_uint()) && from.bits == 8) return true;
  const Call* code = cast->value.as<Call>();
  const auto mask = code && code->op == "tir.bitwise_and" ? as_int(in_lanes(code->args[1])) : std::nullopt;
  return mask && *mask >= 0 && *mask <= kMost;
}

/// float32(float16(q * s)) for a small integer q and s = float32(a float16), where the product is finite as float16: two products and
/// a difference in place of two conversions, which can take as long as all else of a product of one row (docs/speed.md). 8193 s has 24 bits and 8192 q s at most 20, so that
/// t = q * 8193 s rounds once, to a multiple of what float16 rounds q s to (its numbers have 13 bits less), and t - 8192 q s is that
/// multiple. Ties fall alike, since 8192 q s is an even number of such steps. Below float16's normal numbers q s is one of its numbers, as a
/// multiple of s, and has at most 10 bits. Source: T. J. Dekker, "A floating-point technique for extending the available precision",
/// Numerische Mathematik 18, 1971. Null where the cast is of another form.
llvm::Value* rounded_multiple(Emit& e, const Cast& n) {
  const Cast* half = e.casts_are_finite && n.dtype.with_lanes(1) == f32 ? n.value.as<Cast>() : nullptr;
  const Mul* product = half && half->dtype.with_lanes(1) == f16 ? half->value.as<Mul>() : nullptr;
  if (!product || product->dtype.with_lanes(1) != f32) return nullptr;
  auto is_half = [](const Expr& x) {
    const Cast* cast = in_lanes(x).as<Cast>();
    return cast && cast->value->dtype.with_lanes(1) == f16;
  };
  const bool first = is_small_integer(product->a) && is_half(product->b);
  if (!first && !(is_small_integer(product->b) && is_half(product->a))) return nullptr;
  llvm::Value* q = value_of(e, first ? product->a : product->b);
  llvm::Value* s = value_of(e, first ? product->b : product->a);
  constexpr double kStep = 1 << 13;
  llvm::Value* sum = e.b.CreateFMul(q, e.b.CreateFMul(s, number(e, kStep + 1, n.dtype)));
  llvm::Value* large = e.b.CreateFMul(s, number(e, kStep, n.dtype));
  return e.b.CreateIntrinsic(llvm::Intrinsic::fma, {q->getType()}, {e.b.CreateFNeg(q), large, sum});
}

/// integer(max(min(nearbyint(x), high), low)) of a float32, as a quantized number is made, for whole bounds below 2^22 that the integer
/// has: bounded first, x + 1.5 * 2^23 has the integer in its lowest bits. NaN becomes 0, as in every conversion, which has the bounds of its
/// dtype too. Null where the cast is of another form.
llvm::Value* rounded_in_range(Emit& e, const Cast& n) {
  const Max* most = n.value.as<Max>();
  const Min* least = most ? most->a.as<Min>() : nullptr;
  const Call* rounded = least ? least->a.as<Call>() : nullptr;
  if (!rounded || rounded->op != "tir.nearbyint" || rounded->dtype.with_lanes(1) != f32) return nullptr;
  const FloatImm *high = in_lanes(least->b).as<FloatImm>(), *low = in_lanes(most->b).as<FloatImm>();
  const DType to = n.dtype;
  if (!(to.is_int() || to.is_uint()) || !high || !low) return nullptr;
  const double beyond = std::ldexp(1.0, std::min(22, to.is_int() ? to.bits - 1 : to.bits));
  auto fits = [&](double x) { return x == std::round(x) && x < beyond && x >= (to.is_int() ? -beyond : 0); };
  if (!fits(high->value) || !fits(low->value) || low->value > 0 || high->value < 0) return nullptr;
  llvm::Value* x = value_of(e, rounded->args[0]);
  auto bound = [&](double c) { return llvm::ConstantFP::get(x->getType(), c); };
  x = e.b.CreateSelect(e.b.CreateFCmpORD(x, x), x, bound(0));
  x = e.b.CreateSelect(e.b.CreateFCmpOLT(x, bound(high->value)), x, bound(high->value));
  x = e.b.CreateSelect(e.b.CreateFCmpOGT(x, bound(low->value)), x, bound(low->value));
  constexpr double kMagic = 0x1.8p23;
  constexpr uint64_t kMagicBits = 0x4b400000;
  llvm::Type* word = type_of(e, i32.with_lanes(to.lanes));
  llvm::Value* bits = e.b.CreateBitCast(e.b.CreateFAdd(x, bound(kMagic)), word);
  return e.b.CreateSExtOrTrunc(e.b.CreateSub(bits, llvm::ConstantInt::get(word, kMagicBits)), type_of(e, to));
}

/// float32(code) - c for a code of a word, (word >> n) & mask: bits n and up in the fraction of 2^(23-n) are the float
/// 2^(23-n) + code, and both the constant and the difference are numbers that f32 holds. Neither shift nor conversion.
/// Null where the difference is of another form.
llvm::Value* code_minus_constant(Emit& e, const Sub& n) {
  const Cast* cast = n.dtype.with_lanes(1) == f32 ? n.a.as<Cast>() : nullptr;
  const Call* code = cast && cast->value->dtype.with_lanes(1) == u32 ? cast->value.as<Call>() : nullptr;
  if (!code || code->op != "tir.bitwise_and") return nullptr;
  const auto mask = as_int(in_lanes(code->args[1]));
  const FloatImm* c = in_lanes(n.b).as<FloatImm>();
  constexpr int64_t kFraction = 23, kHalfWord = 16;
  if (!mask || *mask < 1 || *mask >= int64_t{1} << kFraction || !c || c->value != std::round(c->value)) return nullptr;
  const int64_t bits = std::bit_width(static_cast<uint64_t>(*mask));
  Expr word = code->args[0];
  int64_t shift = 0;
  const Call* shifted = word.as<Call>();
  const Expr places = shifted && shifted->op == "tir.shift_right" ? in_lanes(shifted->args[1]) : nullptr;
  // One place in all lanes.
  if (auto by = places && places->dtype.lanes == 1 ? arith::evaluate(places, {}) : std::nullopt) {
    // What does not lie in the fraction does after a shift that many codes share.
    const bool in_place = *by + bits <= kFraction, in_half = *by >= kHalfWord && *by - kHalfWord + bits <= kFraction;
    if (*by >= 0 && (in_place || in_half)) {
      word = shifted->args[0];
      shift = *by;
    }
  }
  llvm::Value* v = value_of(e, word);
  auto integer = [&](int64_t x) { return llvm::ConstantInt::get(v->getType(), static_cast<uint64_t>(x)); };
  if (shift + bits > kFraction) {
    v = e.b.CreateLShr(v, integer(kHalfWord));
    shift -= kHalfWord;
  }
  const double base = static_cast<double>(int64_t{1} << (kFraction - shift));
  if (std::abs(c->value) > base) return nullptr;
  constexpr int64_t kBias = 127;
  v = e.b.CreateOr(e.b.CreateAnd(v, integer(*mask << shift)), integer((kBias + kFraction - shift) << kFraction));
  return e.b.CreateFSub(e.b.CreateBitCast(v, type_of(e, n.dtype)), number(e, base + c->value, n.dtype));
}

/// 1 + tanh(x), as GELU has it. Null where the sum is of another form.
llvm::Value* one_plus_tanh(Emit& e, const Add& n) {
  const bool first = n.b.as<Call>() != nullptr;
  const FloatImm* one = in_lanes(first ? n.a : n.b).as<FloatImm>();
  const Call* tanh = (first ? n.b : n.a).as<Call>();
  if (n.dtype.with_lanes(1) != f32 || !one || one->value != 1 || !tanh || tanh->op != "tir.tanh") return nullptr;
  return elementary::one_plus_tanh(e, value_of(e, tanh->args[0]));
}

}  // namespace

llvm::Value* emit_add(Emit& e, const Add& n) {
  DType d = n.dtype;
  if (llvm::Value* v = one_plus_tanh(e, n)) return v;
  if (fuses(d)) {
    if (const Mul* product = n.b.as<Mul>()) return fused(e, *product, false, value_of(e, n.a));
    if (const Mul* product = n.a.as<Mul>()) return fused(e, *product, false, value_of(e, n.b));
  }
  if (d.is_float()) return in_float(e, n.a, n.b, [&](auto* x, auto* y) { return e.b.CreateFAdd(x, y); });
  llvm::Value* x = value_of(e, n.a);
  return e.b.CreateAdd(x, value_of(e, n.b), "", false, e.in_index && does_not_wrap(d));
}

llvm::Value* emit_sub(Emit& e, const Sub& n) {
  DType d = n.dtype;
  if (llvm::Value* difference = code_minus_constant(e, n)) return difference;
  if (fuses(d)) {
    if (const Mul* product = n.b.as<Mul>()) return fused(e, *product, true, value_of(e, n.a));
    if (const Mul* product = n.a.as<Mul>()) return fused(e, *product, false, e.b.CreateFNeg(value_of(e, n.b)));
  }
  if (d.is_float()) return in_float(e, n.a, n.b, [&](auto* x, auto* y) { return e.b.CreateFSub(x, y); });
  llvm::Value* x = value_of(e, n.a);
  return e.b.CreateSub(x, value_of(e, n.b), "", false, e.in_index && does_not_wrap(d));
}

llvm::Value* emit_cast(Emit& e, const Cast& n) {
  if (llvm::Value* rounded = rounded_multiple(e, n)) return rounded;
  if (llvm::Value* rounded = rounded_in_range(e, n)) return rounded;
  return convert(e, value_of(e, n.value), n.value->dtype, n.dtype);
}

llvm::Value* emit_mul(Emit& e, const Mul& n) {
  DType d = n.dtype;
  if (d.is_float()) return in_float(e, n.a, n.b, [&](auto* x, auto* y) { return e.b.CreateFMul(x, y); });
  llvm::Value* x = value_of(e, n.a);
  return e.b.CreateMul(x, value_of(e, n.b), "", false, e.in_index && does_not_wrap(d));
}

/// Quotient or remainder of signed integers, whose quotient is representable; y is not 0.
static llvm::Value* divide_signed(Emit& e, llvm::Value* x, llvm::Value* y, bool floor, bool remainder) {
  if (!floor) return remainder ? e.b.CreateSRem(x, y) : e.b.CreateSDiv(x, y);
  // By a power of two the rounding down is a shift.
  if (auto* c = llvm::dyn_cast<llvm::Constant>(y)) {
    auto* one = llvm::dyn_cast_or_null<llvm::ConstantInt>(c->getType()->isVectorTy() ? c->getSplatValue() : c);
    if (one && one->getValue().isStrictlyPositive() && one->getValue().isPowerOf2()) {
      if (remainder) return e.b.CreateAnd(x, llvm::ConstantInt::get(x->getType(), one->getValue() - 1));
      return e.b.CreateAShr(x, llvm::ConstantInt::get(x->getType(), one->getValue().logBase2()));
    }
  }
  // C rounds toward zero: one less where the remainder is not zero and the signs differ.
  llvm::Value* zero = llvm::ConstantInt::get(x->getType(), 0);
  llvm::Value* r = e.b.CreateSRem(x, y);
  llvm::Value* differ = e.b.CreateICmpSLT(e.b.CreateXor(r, y), zero);
  llvm::Value* below = e.b.CreateAnd(e.b.CreateICmpNE(r, zero), differ);
  if (remainder) return e.b.CreateAdd(r, e.b.CreateSelect(below, y, zero));
  return e.b.CreateAdd(e.b.CreateSDiv(x, y), e.b.CreateSExt(below, x->getType()));
}

llvm::Value* emit_division(Emit& e, const Expr& a, const Expr& b, bool floor, bool remainder) {
  DType d = a->dtype;
  if (d.is_float()) {
    return in_float(e, a, b, [&](llvm::Value* x, llvm::Value* y) -> llvm::Value* {
      if (remainder && !floor) return e.b.CreateFRem(x, y);
      llvm::Value* q = e.b.CreateFDiv(x, y);
      if (floor) q = e.b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, q);
      if (!remainder) return q;
      return e.b.CreateFSub(x, e.b.CreateFMul(q, y));
    });
  }
  llvm::Value* x = value_of(e, a);
  llvm::Value* y = safe_divisor(e, b);
  if (d.is_uint() || d.is_bool()) return remainder ? e.b.CreateURem(x, y) : e.b.CreateUDiv(x, y);
  if (llvm::isa<llvm::Constant>(y)) return divide_signed(e, x, y, floor, remainder);
  // The least value by -1 has no quotient, and the instruction ends the process: what wraps is the negative.
  llvm::Value* minus_one = e.b.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(y->getType()));
  y = e.b.CreateSelect(minus_one, llvm::ConstantInt::get(y->getType(), 1), y);
  llvm::Value* z = divide_signed(e, x, y, floor, remainder);
  return remainder ? z : e.b.CreateSelect(minus_one, e.b.CreateNeg(x), z);
}

/// A comparison of what differs between lanes by constants, where it takes several registers: x + o[i] < y is o[i] < y - x for a scalar
/// y - x, which may be cut to just beyond the offsets. Then bytes hold both sides. Null where the operands are of another form, or have
/// data, which wraps around.
static llvm::Value* compare_offsets(Emit& e, const Expr& a, const Expr& b, llvm::CmpInst::Predicate for_signed) {
  const DType d = a->dtype;
  if (!does_not_wrap(d) || d.lanes * d.bits <= e.level.vector_bits) return nullptr;
  const std::optional<Lanes> x = lanes_of(a), y = lanes_of(b);
  auto is_index = [&](const std::optional<Lanes>& l) {
    return l && (!l->base || (is_pure(l->base) && !has_data(e, l->base)));
  };
  if (!is_index(x) || !is_index(y) || (!x->base && !y->base)) return nullptr;
  std::vector<int64_t> offsets;
  for (size_t i = 0; i < x->offsets.size(); ++i) offsets.push_back(x->offsets[i] - y->offsets[i]);
  const auto [least, most] = std::ranges::minmax(offsets);
  const int64_t range = most - least;
  if (range >= std::numeric_limits<int16_t>::max()) return nullptr;
  llvm::Type* narrow = range < std::numeric_limits<int8_t>::max() ? e.b.getInt8Ty() : e.b.getInt16Ty();
  std::vector<llvm::Constant*> lanes;
  for (int64_t o : offsets) lanes.push_back(llvm::ConstantInt::get(narrow, static_cast<uint64_t>(o - least)));
  auto base = [&](const Lanes& l) -> llvm::Value* { return l.base ? wide_index_of(e, l.base) : e.b.getInt64(0); };
  auto wide = [&](int64_t v) { return llvm::ConstantInt::getSigned(e.b.getInt64Ty(), v); };
  llvm::Value* of_y = base(*y);
  llvm::Value* scalar = e.b.CreateSub(e.b.CreateSub(of_y, base(*x)), wide(least));
  scalar = e.b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, scalar, wide(-1));
  scalar = e.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, scalar, wide(range + 1));
  return e.b.CreateICmp(
      for_signed, llvm::ConstantVector::get(lanes), splat(e, e.b.CreateTrunc(scalar, narrow), d.lanes));
}

llvm::Value* emit_compare(Emit& e, const Expr& a, const Expr& b, llvm::CmpInst::Predicate for_signed,
                          llvm::CmpInst::Predicate for_unsigned, llvm::CmpInst::Predicate for_float) {
  DType d = a->dtype;
  if (llvm::Value* narrow = compare_offsets(e, a, b, for_signed)) return narrow;
  llvm::Value* x = widened(e, value_of(e, a), d);
  llvm::Value* y = widened(e, value_of(e, b), d);
  if (d.is_float()) return e.b.CreateFCmp(for_float, x, y);
  return e.b.CreateICmp(d.is_int() ? for_signed : for_unsigned, x, y);
}

llvm::Value* emit_min_max(Emit& e, const Expr& a, const Expr& b, bool is_max) {
  DType d = a->dtype;
  // a < b ? a : b, a > b ? a : b are minps and maxps: with a NaN on either side the second operand is the result. A NaN
  // in the first one is put in its place; a constant, which is none, comes first and needs nothing more.
  if (d.is_float())
    return in_float(e, a, b, [&](llvm::Value* x, llvm::Value* y) {
      if (llvm::isa<llvm::Constant>(y)) std::swap(x, y);
      llvm::Value* better = is_max ? e.b.CreateFCmpOGT(x, y) : e.b.CreateFCmpOLT(x, y);
      llvm::Value* out = e.b.CreateSelect(better, x, y);
      if (llvm::isa<llvm::Constant>(x)) return out;
      // LLVM would make one choice of both, by two comparisons in a row, and no longer find the one instruction.
      out = e.b.CreateArithmeticFence(out, out->getType());
      return e.b.CreateSelect(e.b.CreateFCmpUNO(x, x), x, out);
    });
  llvm::Value* x = value_of(e, a);
  llvm::Value* y = value_of(e, b);
  llvm::Intrinsic::ID id = d.is_int() ? (is_max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                                      : (is_max ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
  return e.b.CreateBinaryIntrinsic(id, x, y);
}

}  // namespace sator::codegen
