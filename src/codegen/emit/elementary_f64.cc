#include "codegen/emit/elementary_f64.h"

#include <limits>

namespace sator::codegen::elementary {

namespace {

constexpr double kLn2High = 0x1.62e42fefa39efp-1, kLn2Low = 0x1.abc9e3b39803fp-56;
// With 42 bits: a product by an exponent is exact.
constexpr double kLn2Short = 0x1.62e42fefa3800p-1, kLn2Rest = 0x1.ef35793c76730p-45;
constexpr double kLog2eF64 = 1.4426950408889634;
constexpr double kPiHalf1F64 = 0x1.921fb54442d18p+0, kPiHalf2F64 = 0x1.1a62633145c07p-54,
                 kPiHalf3F64 = -0x1.f1976b7ed8fbcp-110;
constexpr int64_t kOneBits = 0x3ff0000000000000, kSqrtHalfBitsF64 = 0x3fe6a09e667f3bcd;

/// (e^r - 1 - r) / r^2 for |r| <= 0.347
Lane exp_tail(Lane r) {
  static constexpr double c[] = {0.5,
                                 0.1666666666666667,
                                 0.04166666666666667,
                                 0.00833333333332607,
                                 0.0013888888888883703,
                                 0.00019841269875048905,
                                 2.480158732571076e-05,
                                 2.755725511097889e-06,
                                 2.755727343657049e-07,
                                 2.510533724466521e-08,
                                 2.0914772832248085e-09};
  return polynomial(r, c);
}

/// x = n * ln(2) + r + rest.
struct Reduced {
  Rounded n;
  Lane r, rest;
};
Reduced without_ln2(Lane x) {
  const Rounded n = nearest(x * kLog2eF64);
  const Lane high = fma(n.value, -kLn2High, x);  // exact
  const Lane r = fma(n.value, -kLn2Low, high);
  return {n, r, fma(n.value, -kLn2Low, high - r)};
}

/// The value as f64 of whole numbers that 32 bits hold.
Lane small_whole_to_f64(Lane k) {
  const Lane narrow = k.of(k.b().CreateTrunc(k.v, k.like(k.b().getInt32Ty())));
  return k.of(k.b().CreateSIToFP(narrow.v, k.like(k.b().getDoubleTy())));
}

Lane biased_exponent_above_sqrt_half(Lane bits) {
  return bits.of(bits.b().CreateLShr(iadd(bits, kOneBits - kSqrtHalfBitsF64).v, bits.whole(52).v));
}

/// A sum or a product with what its rounding lost.
struct Pair {
  Lane high, low;
};
/// |a| >= |b|
Pair ordered_sum(Lane a, Lane b) {
  const Lane sum = a + b;
  return {sum, b - (sum - a)};
}
Pair product(Lane a, Lane b) {
  const Lane p = a * b;
  return {p, fma(a, b, -p)};
}

/// sin and cos of r + rest for |r| <= 0.786.
Lane sine_of(Lane r, Lane rest) {
  static constexpr double c[] = {-0.16666666666666666,
                                 0.008333333333330887,
                                 -0.0001984126983666588,
                                 2.755731605459391e-06,
                                 -2.5051121875169608e-08,
                                 1.5917412836707387e-10};
  const Lane square = r * r;
  return r + fma(square * r, polynomial(square, c), fma(square * -0.5, rest, rest));
}
Lane cosine_of(Lane r, Lane rest) {
  static constexpr double c[] = {0.041666666666666664,
                                 -0.0013888888888887359,
                                 2.48015872987077e-05,
                                 -2.755731724172776e-07,
                                 2.0876140031390975e-09,
                                 -1.138218421447753e-11};
  const Lane square = r * r, half = square * 0.5;
  const Pair first = ordered_sum(r.number(1.0), -half);
  return first.high + (first.low + fma(square * square, polynomial(square, c), -(r * rest)));
}

/// The function of lanes up to 2^19, the same of libm for larger ones; of infinity and NaN, NaN.
template <class Small>
Lane trigonometric(Lane x, const char* libm_name, const Small& small) {
  constexpr double kLarge = 0x1p19;
  Emit& e = *x.e;
  // x = quadrant * pi/2 + r + rest.
  const Rounded n = nearest(x * 0.6366197723675814);
  const Lane first = fma(n.value, -kPiHalf1F64, x);  // exact
  const Lane r = fma(n.value, -kPiHalf2F64, first);
  const Lane rest = fma(n.value, -kPiHalf3F64, fma(n.value, -kPiHalf2F64, first - r));
  const Lane fast = small(r, rest, n.integer);

  const Lane magnitude = fabs(x), is_large = magnitude > kLarge;
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x.v->getType());
  llvm::BasicBlock* from = e.b.GetInsertBlock();
  auto* slow = llvm::BasicBlock::Create(e.llvm, "large_angle", e.function);
  auto* done = llvm::BasicBlock::Create(e.llvm, "angle_done", e.function);
  llvm::Value* any = vector ? e.b.CreateOrReduce(is_large.v) : is_large.v;
  e.b.CreateCondBr(any, slow, done, llvm::MDBuilder(e.llvm).createBranchWeights(1, 1000));
  e.b.SetInsertPoint(slow);
  llvm::Type* f64 = e.b.getDoubleTy();
  llvm::FunctionCallee libm = e.module.getOrInsertFunction(libm_name, llvm::FunctionType::get(f64, {f64}, false));
  llvm::cast<llvm::Function>(libm.getCallee())->setDoesNotAccessMemory();
  llvm::Value* by_libm = x.v;
  if (!vector) by_libm = e.b.CreateCall(libm, {x.v});
  for (uint64_t i = 0; vector && i < vector->getNumElements(); ++i)
    by_libm = e.b.CreateInsertElement(by_libm, e.b.CreateCall(libm, {e.b.CreateExtractElement(x.v, i)}), i);
  const Lane mixed = select(is_large, x.of(by_libm), fast);
  e.b.CreateBr(done);
  e.b.SetInsertPoint(done);
  llvm::PHINode* value = e.b.CreatePHI(x.v->getType(), 2);
  value->addIncoming(fast.v, from);
  value->addIncoming(mixed.v, slow);
  return select(magnitude < std::numeric_limits<double>::infinity(), x.of(value), x - x);
}

Lane sin_or_cos(Lane x, const char* libm_name, int64_t first_quadrant) {
  return trigonometric(x, libm_name, [&](Lane r, Lane rest, Lane quadrant) {
    quadrant = iadd(quadrant, first_quadrant);
    const Lane value = select(is_set(quadrant, 1), cosine_of(r, rest), sine_of(r, rest));
    return ixor(value.as_i64(), shl(iand(quadrant, 2), 62)).as_f64();
  });
}

}  // namespace

Lane exp_f64(Lane x, int halvings) {
  const Reduced a = without_ln2(clamp(x, -746.0, 711.0));
  const Lane p = fma(a.r * a.r, exp_tail(a.r), a.r) + 1.0;
  return scale(p, halvings ? Rounded{a.n.value - double(halvings), iadd(a.n.integer, -halvings)} : a.n);
}

Lane exp2_f64(Lane x) {
  static constexpr double c[] = {0.6931471805599453,
                                 0.24022650695910072,
                                 0.055504108664821625,
                                 0.00961812910762848,
                                 0.0013333558146406436,
                                 0.00015403530393370715,
                                 1.5252733841601815e-05,
                                 1.3215486808727859e-06,
                                 1.0178057064573359e-07,
                                 7.054897292691627e-09,
                                 4.455822025014915e-10,
                                 2.5729344553786755e-11};
  x = clamp(x, -1076.0, 1025.0);
  const Rounded n = nearest(x);
  const Lane r = x - n.value;
  return scale(fma(r, polynomial(r, c), 1.0), n);
}

Lane exp10_f64(Lane x) {
  static constexpr double c[] = {2.302585092994046,
                                 2.650949055239199,
                                 2.034678592293478,
                                 1.1712551489122673,
                                 0.5393829291946838,
                                 0.2069958486967205,
                                 0.06808936524306514,
                                 0.019597694654207347,
                                 0.005013914516236667,
                                 0.0011544974246063937,
                                 0.0002422269194213764,
                                 4.6463639550347033e-05};
  constexpr double log10_of_2_high = 0x1.34413509f79ffp-2, log10_of_2_low = -0x1.9dc1da994fd21p-59;
  x = clamp(x, -324.5, 309.0);
  const Rounded n = nearest(x * 3.321928094887362);
  Lane r = fma(n.value, -log10_of_2_high, x);
  r = fma(n.value, -log10_of_2_low, r);
  return scale(fma(r, polynomial(r, c), 1.0), n);
}

Lane expm1_f64(Lane a) {
  const Reduced x = without_ln2(a);
  const Lane p = x.r + fma(x.r * x.r, exp_tail(x.r), fma(x.rest, x.r, x.rest));
  const Lane power = shl(iadd(x.n.integer, 1023), 52).as_f64();
  return fma(p, power, power - 1.0);
}

Lane exponent_f64(Lane x) { return small_whole_to_f64(iadd(biased_exponent_above_sqrt_half(x.as_i64()), -1023)); }

Split split_f64(Lane x) {
  const Lane subnormal = x < 0x1p-1022;
  const Lane bits = select(subnormal, x * 0x1p52, x).as_i64();
  const Lane exponent = iadd(biased_exponent_above_sqrt_half(bits), -1023);
  const Lane mantissa = isub(bits, shl(exponent, 52)).as_f64(), k = small_whole_to_f64(exponent);
  return {select(subnormal, k - 52.0, k), mantissa - 1.0};
}

Lane log1p_tail_f64(Lane f) {
  // With s = f / (2 + f), log(1 + f) = 2 atanh(s) = f - (f^2 / 2 - s * (f^2 / 2 + s^2 R(s^2))).
  static constexpr double c[] = {0.6666666666666666,
                                 0.4000000000000088,
                                 0.28571428570801954,
                                 0.22222222392089008,
                                 0.18181795600060793,
                                 0.15386241881938595,
                                 0.13268714792348096,
                                 0.1308723619665962};
  const Lane s = f / (f + 2.0), square = s * s, half = f * f * 0.5;
  return fma(s, fma(square, polynomial(square, c), half), -half);
}

// 0 keeps its sign.
Lane sin_f64(Lane x) { return select(x == 0.0, x, sin_or_cos(x, "sin", 0)); }
Lane cos_f64(Lane x) { return sin_or_cos(x, "cos", 1); }
Lane tan_f64(Lane x) {
  const Lane out = trigonometric(x, "tan", [](Lane r, Lane rest, Lane quadrant) {
    const Lane sine = sine_of(r, rest), cosine = cosine_of(r, rest), is_odd = is_set(quadrant, 1);
    return select(is_odd, -cosine, sine) / select(is_odd, sine, cosine);
  });
  return select(x == 0.0, x, out);
}

Lane small_sinh_f64(Lane x) {
  static constexpr double c[] = {0.16666666666666666,
                                 0.008333333333333333,
                                 0.00019841269841269773,
                                 2.755731922404034e-06,
                                 2.505210836405804e-08,
                                 1.6059048396350562e-10,
                                 7.646625361656657e-13,
                                 2.8445264169895285e-15};
  const Lane square = x * x;
  return fma(square * x, polynomial(square, c), x);
}

Lane small_asin_f64(Lane x) {
  static constexpr double c[] = {0.16666666666666669,
                                 0.07499999999998433,
                                 0.04464285714635543,
                                 0.030381944138531247,
                                 0.02237217294214989,
                                 0.017352392720869973,
                                 0.013971212973552933,
                                 0.011479177415184906,
                                 0.01032281435018578,
                                 0.005457506718640358,
                                 0.01740087944269402,
                                 -0.014851887071247204,
                                 0.028757851367421566};
  const Lane square = x * x;
  return fma(square * x, polynomial(square, c), x);
}

Lane small_atan_f64(Lane x) {
  static constexpr double c[] = {-0.3333333333333333,
                                 0.19999999999999804,
                                 -0.14285714285659806,
                                 0.11111111105153429,
                                 -0.09090908753400499,
                                 0.07692296372129964,
                                 -0.06666424833613552,
                                 0.05878928398517232,
                                 -0.052304498567092406,
                                 0.04551573086664191,
                                 -0.034570044186095536,
                                 0.016285183029865667};
  const Lane square = x * x;
  return fma(square * x, polynomial(square, c), x);
}

Lane pow_f64(Lane a, Lane y) {
  // (2 atanh(s) - 2 s - 2/3 s^3) / s^5, of s^2
  static constexpr double c[] = {0.4,
                                 0.2857142857142937,
                                 0.22222222221654733,
                                 0.1818181833565416,
                                 0.15384594934597917,
                                 0.13334806212100603,
                                 0.11706195689881364,
                                 0.11723603622905411};
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double two_thirds = 0x1.5555555555555p-1, two_thirds_low = 0x1.5555555555555p-55;
  // log(a) = k log(2) + 2 atanh(s) in twice the digits, s = f / (2 + f).
  const Split x = split_f64(a);
  const Pair below = ordered_sum(a.number(2.0), x.f);
  const Lane inverse = 1.0 / below.high, s = x.f * inverse;
  const Lane s_low = fma(-s, below.low, fma(-s, below.high, x.f)) * inverse;
  const Pair square = product(s, s);
  const Lane square_low = fma(s * 2.0, s_low, square.low);
  const Pair cubic = product(square.high, a.number(two_thirds));
  const Lane cubic_low = fma(square.high, two_thirds_low, fma(square_low, two_thirds, cubic.low));
  const Pair tail = ordered_sum(cubic.high, square.high * square.high * polynomial(square.high, c));
  const Pair factor = ordered_sum(a.number(2.0), tail.high);
  const Lane factor_low = factor.low + (tail.low + cubic_low);
  const Pair mantissa = product(s, factor.high);
  const Lane mantissa_low = fma(s_low, factor.high, fma(s, factor_low, mantissa.low));
  const Pair sum = ordered_sum(x.k * kLn2Short, mantissa.high);
  const Lane log_low = sum.low + fma(x.k, kLn2Rest, mantissa_low);
  const Lane log = select(a == 0.0, -inf, select(a == inf, inf, sum.high));
  // e^(y log(a)); beyond the bounds it is 0 or infinity anyway.
  const Pair exponent = product(y, log);
  const Lane high = clamp(exponent.high, -800.0, 800.0);
  const Lane low = select(fabs(exponent.high) < 800.0, fma(y, log_low, exponent.low), y.number(0.0));
  const Rounded n = nearest(high * kLog2eF64);
  const Lane r = fma(n.value, -kLn2Low, fma(n.value, -kLn2High, high)) + low;
  return scale(fma(r * r, exp_tail(r), r) + 1.0, n);
}

}  // namespace sator::codegen::elementary
