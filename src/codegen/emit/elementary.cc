#include "codegen/emit/elementary.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "codegen/emit/elementary_f64.h"
#include "codegen/emit/lane_math.h"

namespace sator::codegen::elementary {

namespace {

// Constants in parts: the first with few enough bits that its product by a whole number is exact in a fused multiply-add.
constexpr double kLn2Hi = 0.693147182, kLn2Lo = -1.90465421e-09;
constexpr double kLn2Hi64 = 0x1.62e42fefa39efp-1, kLn2Lo64 = 0x1.abc9e3b39803fp-56;
constexpr double kLog2e = 1.44269504;
constexpr double kLog10Of2Hi = 0.30103001, kLog10Of2Lo = -1.43209888e-08;
constexpr double kPiHalf1 = 1.57079637, kPiHalf2 = -4.37113883e-08, kPiHalf3 = -1.71512451e-15;

/// p * 2^n by AVX-512's vscalefps and vscalefpd, register by register; null where the level or the number of lanes does not allow it.
llvm::Value* vscalef(Lane p, Lane n) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(p.v->getType());
  const int lanes = type ? static_cast<int>(type->getNumElements()) : 1, bits = p.is_f64() ? 64 : 32;
  const int width = std::min(lanes, 512 / bits), bytes = width * bits / 8;
  if (p.e->level.vector_bits != 512 || lanes % width != 0 || (bytes != 16 && bytes != 32 && bytes != 64))
    return nullptr;
  llvm::IRBuilder<>& b = p.b();
  auto* all = llvm::Constant::getAllOnesValue(width == 16 ? b.getInt16Ty() : b.getInt8Ty());
  using namespace llvm::Intrinsic;
  const ID of_f32 = bytes == 64   ? x86_avx512_mask_scalef_ps_512
                    : bytes == 32 ? x86_avx512_mask_scalef_ps_256
                                  : x86_avx512_mask_scalef_ps_128;
  const ID of_f64 = bytes == 64   ? x86_avx512_mask_scalef_pd_512
                    : bytes == 32 ? x86_avx512_mask_scalef_pd_256
                                  : x86_avx512_mask_scalef_pd_128;
  auto one = [&](llvm::Value* x, llvm::Value* y) -> llvm::Value* {
    std::vector<llvm::Value*> args = {x, y, x, all};
    if (bytes == 64) args.push_back(b.getInt32(4));  // rounds as always
    return b.CreateIntrinsic(p.is_f64() ? of_f64 : of_f32, {}, args);
  };
  if (lanes == width) return one(p.v, n.v);
  std::vector<llvm::Value*> parts;
  for (int at = 0; at < lanes; at += width) {
    std::vector<int> part(static_cast<size_t>(width));
    std::iota(part.begin(), part.end(), at);
    parts.push_back(one(b.CreateShuffleVector(p.v, part), b.CreateShuffleVector(n.v, part)));
  }
  return llvm::concatenateVectors(b, parts);
}

/// e^r for |r| <= 0.3475
Lane exp_reduced(Lane r) {
  static constexpr double c[] = {0.49999994, 0.166665211, 0.0416682884, 0.00836871564, 0.0013819033};
  return fma(r * r, polynomial(r, c), r) + 1.0;
}

/// e^x * 2^-halvings.
Lane exp_in_range(Lane x, int halvings) {
  if (x.is_f64()) return exp_f64(x, halvings);
  Rounded n = nearest(x * kLog2e);
  Lane r = fma(n.value, -kLn2Hi, x);
  r = fma(n.value, -kLn2Lo, r);
  return scale(exp_reduced(r), halvings ? Rounded{n.value - double(halvings), iadd(n.integer, -halvings)} : n);
}

/// Beyond the bounds the result is 0 or infinity. Where it is 0, another number is scaled and 0 put in its place: Intel's cores take over a
/// hundred cycles to scale to below the smallest normal number, and softmax asks for a 0 for each position that a mask hides.
Lane exp_of(Lane x) {
  if (x.is_f64()) return exp_f64(x);
  const Lane is_zero = x < -104.0, not_zero = select(is_zero, 0.0, x);
  return select(is_zero, 0.0, exp_in_range(select(not_zero > 89.0, 89.0, not_zero), 0));
}

constexpr int64_t kSqrtHalfBits = 0x3f3504f3;
Lane exponent_above_sqrt_half(Lane bits) { return sar(iadd(bits, 0x3f800000 - kSqrtHalfBits), 23); }

/// The exponent k of a positive, normal x = 2^k * (1 + f).
Lane exponent_of(Lane x) {
  if (x.is_f64()) return exponent_f64(x);
  return x.of(x.b().CreateSIToFP(iadd(exponent_above_sqrt_half(x.as_i32()), -127).v, x.v->getType()));
}

Split split(Lane x) {
  if (x.is_f64()) return split_f64(x);
  Lane subnormal = x < 0x1p-126;
  Lane scaled = select(subnormal, x * 0x1p23, x);
  Lane bits = scaled.as_i32();
  Lane exponent = iadd(exponent_above_sqrt_half(bits), -127);
  Lane mantissa = isub(bits, shl(exponent, 23)).as_f32();
  Lane k = x.of(x.b().CreateSIToFP(exponent.v, x.v->getType()));
  return {select(subnormal, k - 23.0, k), mantissa - 1.0};
}

/// log(1 + f) - f for f as in Split.
Lane log1p_tail(Lane f) {
  if (f.is_f64()) return log1p_tail_f64(f);
  static constexpr double c[] = {
      0.333333313, -0.250008196, 0.200012401, -0.166234076, 0.142016277, -0.131596833, 0.127618611, -0.0763575062};
  Lane square = f * f;
  return fma(square * f, polynomial(f, c), square * -0.5);
}

/// k * log(2) + f + tail.
Lane with_ln2(Lane k, Lane f, Lane tail) {
  const double hi = f.is_f64() ? kLn2Hi64 : kLn2Hi, lo = f.is_f64() ? kLn2Lo64 : kLn2Lo;
  return fma(k, hi, fma(k, lo, tail) + f);
}

/// The values of a logarithm outside its domain: 0, negative, infinity, NaN.
Lane log_edges(Lane x, Lane regular) {
  double inf = std::numeric_limits<double>::infinity();
  Lane out = select(x == 0.0, -inf, regular);
  out = select(x < 0.0, std::numeric_limits<double>::quiet_NaN(), out);
  return select(x == inf || is_nan(x), x, out);
}

/// log_b(2), whose product by an exponent is exact in the first part, and log_b(e).
struct Base {
  double two_hi, two_lo, e_hi, e_lo;
};

/// k * log_b(2) + log_b(e) * (f + tail), the constants in two parts.
Lane log_in_base(Lane x, const Base& of_f32, const Base& of_f64) {
  const auto [two_hi, two_lo, e_hi, e_lo] = x.is_f64() ? of_f64 : of_f32;
  Split s = split(x);
  Lane tail = log1p_tail(s.f);
  Lane high = s.f * e_hi;
  Lane low = fma(s.f, e_hi, -high);  // what the product lost
  low = fma(s.f, e_lo, low);
  low = fma(tail, e_hi, low);
  low = fma(s.k, two_lo, low);
  Lane k = s.k * two_hi;
  Lane sum = k + high;
  low = low + (high - (sum - k));  // what the sum lost; |k| >= |high| or k = 0
  return log_edges(x, sum + low);
}

/// sin and cos of r + quadrant * pi/2 for |r| <= 0.8; `cosine` is one quadrant further.
Lane sin_or_cos(Lane r, Lane quadrant) {
  static constexpr double s[] = {-0.166666672, 0.00833337754, -0.00019852072, 2.82045949e-06};
  static constexpr double c[] = {0.0416666679, -0.00138889765, 2.48204105e-05, -2.87043122e-07};
  Lane square = r * r;
  Lane sine = fma(square * r, polynomial(square, s), r);
  Lane cosine = fma(square * square, polynomial(square, c), fma(square, -0.5, r.number(1.0)));
  Lane value = select(is_set(quadrant, 1), cosine, sine);
  Lane sign = shl(iand(quadrant, 2), 30);
  return ixor(value.as_i32(), sign).as_f32();
}

/// x mod pi/2 for |x| >= 2^17, one lane: `float reduce(float x, int* quadrant)`. The bits of 2/pi that matter to x's
/// exponent are multiplied by its 24-bit mantissa exactly.
/// Source: Payne & Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter 18, 1983.
llvm::Function* large_reduction(Emit& e) {
  const char* name = "sator.reduce_pi_half";
  if (llvm::Function* f = e.module.getFunction(name)) return f;
  llvm::IRBuilder<> b(e.llvm);
  llvm::Type *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty(), *f64 = b.getDoubleTy();
  auto* type = llvm::FunctionType::get(b.getFloatTy(), {b.getFloatTy(), b.getPtrTy()}, false);
  auto* f = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, e.module);
  set_level(f, e.level);
  f->addFnAttr(llvm::Attribute::NoInline);
  b.SetInsertPoint(llvm::BasicBlock::Create(e.llvm, "entry", f));
  // 2/pi = 0.a2f9836e4e44...; one word of zeros in front so that every window begins inside the table.
  static constexpr uint32_t words[] = {
      0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
  auto* data = llvm::ConstantDataArray::get(e.llvm, llvm::ArrayRef<uint32_t>(words));
  auto* table =
      new llvm::GlobalVariable(e.module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "two_over_pi");

  llvm::Value* bits = b.CreateBitCast(f->getArg(0), i32);
  llvm::Value* exponent = b.CreateAnd(b.CreateLShr(bits, 23), 255);  // 144 .. 254: x = m * 2^(exponent - 150)
  llvm::Value* mantissa = b.CreateZExt(b.CreateOr(b.CreateAnd(bits, 0x7fffff), 0x800000), i64);
  // Bits of 2/pi worth 2^2 and more in the product do not change the quadrant: the window of 96 bits begins at the bit
  // of weight 2^(1 - 23 - (exponent - 150) + 24 - 24), counted below from the front of the table.
  llvm::Value* first = b.CreateAdd(b.CreateSub(exponent, b.getInt32(150)), b.getInt32(32 - 2));
  llvm::Value *word = b.CreateLShr(first, 5), *shift = b.CreateZExt(b.CreateAnd(first, 31), i64);
  auto load = [&](int i) {
    llvm::Value* at =
        b.CreateInBoundsGEP(i32, table, b.CreateZExt(b.CreateAdd(word, b.getInt32(static_cast<uint32_t>(i))), i64));
    return b.CreateZExt(b.CreateAlignedLoad(i32, at, llvm::Align(4)), i64);
  };
  llvm::Value* w[4] = {load(0), load(1), load(2), load(3)};
  auto window = [&](int i) {  // 32 bits from bit `first` + 32 i on
    llvm::Value* pair = b.CreateOr(b.CreateShl(w[i], 32), w[i + 1]);
    return b.CreateLShr(b.CreateShl(pair, shift), 32);
  };
  // m * window, modulo 2^96: the top two bits are the quadrant, the rest the fraction.
  llvm::Value *p0 = b.CreateMul(window(0), mantissa), *p1 = b.CreateMul(window(1), mantissa),
              *p2 = b.CreateMul(window(2), mantissa);
  llvm::Value* middle = b.CreateAdd(p1, b.CreateLShr(p2, 32));
  llvm::Value* high = b.CreateAdd(b.CreateShl(p0, 32), middle);  // bits 95 .. 32
  // Nearest quarter turn: the fraction, as a signed number, is in [-1/2, 1/2) of a quarter turn.
  llvm::Value* quadrant = b.CreateLShr(b.CreateAdd(high, b.getInt64(1ull << 61)), 62);
  llvm::Value* fraction = b.CreateSub(high, b.CreateShl(quadrant, 62));
  llvm::Value* turns = b.CreateFMul(b.CreateSIToFP(fraction, f64), llvm::ConstantFP::get(f64, 0x1p-62));
  llvm::Value* r = b.CreateFMul(turns, llvm::ConstantFP::get(f64, 1.5707963267948966));
  llvm::Value* negative = b.CreateICmpSLT(bits, b.getInt32(0));
  llvm::Value* q = b.CreateTrunc(quadrant, i32);
  b.CreateStore(b.CreateSelect(negative, b.CreateNeg(q), q), f->getArg(1));
  b.CreateRet(b.CreateFPTrunc(b.CreateSelect(negative, b.CreateFNeg(r), r), b.getFloatTy()));
  return f;
}

/// r and quadrant of the lanes whose |x| is too large for three-part constants, by the function above; rarely entered.
std::pair<Lane, Lane> with_large(Emit& e, Lane x, Lane r, Lane quadrant, Lane is_large) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x.v->getType());
  int lanes = vector ? static_cast<int>(vector->getNumElements()) : 1;
  llvm::Value* any = vector ? e.b.CreateOrReduce(is_large.v) : is_large.v;
  llvm::Function* reduce = large_reduction(e);
  llvm::IRBuilder<> entry(&e.function->getEntryBlock(), e.function->getEntryBlock().begin());
  llvm::Value* slot = entry.CreateAlloca(e.b.getInt32Ty());

  llvm::BasicBlock* from = e.b.GetInsertBlock();
  auto* slow = llvm::BasicBlock::Create(e.llvm, "large_angle", e.function);
  auto* done = llvm::BasicBlock::Create(e.llvm, "reduced", e.function);
  e.b.CreateCondBr(any, slow, done, llvm::MDBuilder(e.llvm).createBranchWeights(1, 1000));
  e.b.SetInsertPoint(slow);
  llvm::Value *slow_r = r.v, *slow_q = quadrant.v;
  for (int i = 0; i < lanes; ++i) {
    auto lane = [&](llvm::Value* v) { return vector ? e.b.CreateExtractElement(v, static_cast<uint64_t>(i)) : v; };
    llvm::Value* large = lane(is_large.v);
    // A lane that is not large reduces some large number instead, and keeps its own result.
    llvm::Value* xi = e.b.CreateSelect(large, lane(x.v), llvm::ConstantFP::get(e.b.getFloatTy(), 0x1p20));
    llvm::Value* ri = e.b.CreateCall(reduce, {xi, slot});
    llvm::Value* qi = e.b.CreateLoad(e.b.getInt32Ty(), slot);
    ri = e.b.CreateSelect(large, ri, lane(r.v));
    qi = e.b.CreateSelect(large, qi, lane(quadrant.v));
    slow_r = vector ? e.b.CreateInsertElement(slow_r, ri, static_cast<uint64_t>(i)) : ri;
    slow_q = vector ? e.b.CreateInsertElement(slow_q, qi, static_cast<uint64_t>(i)) : qi;
  }
  llvm::BasicBlock* slow_end = e.b.GetInsertBlock();
  e.b.CreateBr(done);
  e.b.SetInsertPoint(done);
  auto join = [&](llvm::Value* fast, llvm::Value* slow_value) {
    llvm::PHINode* phi = e.b.CreatePHI(fast->getType(), 2);
    phi->addIncoming(fast, from);
    phi->addIncoming(slow_value, slow_end);
    return phi;
  };
  llvm::PHINode* phi_r = join(r.v, slow_r);
  return {r.of(phi_r), quadrant.of(join(quadrant.v, slow_q))};
}

/// x as r + quadrant * pi/2 with |r| <= 0.8; of infinities and NaN, something.
struct Angle {
  Lane r, quadrant, finite;
};
Angle reduced_angle(Emit& e, Lane x) {
  Lane magnitude = fabs(x);
  Lane finite = magnitude < std::numeric_limits<double>::infinity();
  Lane is_large = magnitude > 0x1p17 && finite;
  Rounded n = nearest(x * 0.636619772);
  Lane r = fma(n.value, -kPiHalf1, x);
  r = fma(n.value, -kPiHalf2, r);
  r = fma(n.value, -kPiHalf3, r);
  auto [angle, quadrant] = with_large(e, x, r, n.integer, is_large);
  return {angle, quadrant, finite};
}

llvm::Value* trigonometric(Emit& e, llvm::Value* value, int64_t first_quadrant) {
  Lane x{&e, value};
  if (x.is_f64()) return (first_quadrant ? cos_f64(x) : sin_f64(x)).v;
  Angle a = reduced_angle(e, x);
  Lane out = sin_or_cos(a.r, iadd(a.quadrant, first_quadrant));
  if (first_quadrant == 0) out = select(x == 0.0, x, out);  // with its sign
  return select(a.finite, out, x - x).v;                    // of infinity and NaN: NaN
}

}  // namespace

/// Without vscalef in two steps, the first of which is exact.
Lane scale(Lane p, Rounded n) {
  if (llvm::Value* scaled = vscalef(p, n.value)) return p.of(scaled);
  const Lane half = sar(n.integer, 1), rest = isub(n.integer, half);
  auto power = [&](Lane k) { return p.is_f64() ? shl(iadd(k, 1023), 52).as_f64() : shl(iadd(k, 127), 23).as_f32(); };
  return p * power(half) * power(rest);
}

llvm::Value* exp(Emit& e, llvm::Value* x) { return exp_of(Lane{&e, x}).v; }

/// 2^r for |r| <= 0.5 in f32
static Lane exp2_reduced(Lane r) {
  static constexpr double c[] = {
      0.693147182, 0.240226507, 0.0555040501, 0.00961808674, 0.00133379654, 0.000154522029, 1.43214174e-05};
  return fma(r, polynomial(r, c), 1.0);
}

llvm::Value* exp2(Emit& e, llvm::Value* value) {
  if (Lane{&e, value}.is_f64()) return exp2_f64({&e, value}).v;
  Lane x = clamp(Lane{&e, value}, -151.0, 129.0);
  Rounded n = nearest(x);
  return scale(exp2_reduced(x - n.value), n).v;
}

llvm::Value* exp10(Emit& e, llvm::Value* value) {
  static constexpr double c[] = {2.30258512, 2.65094924, 2.03466845, 1.17121899, 0.54017818, 0.208743244, 0.0502525754};
  if (Lane{&e, value}.is_f64()) return exp10_f64({&e, value}).v;
  Lane x = clamp(Lane{&e, value}, -45.5, 39.0);
  Rounded n = nearest(x * 3.32192809);
  Lane r = fma(n.value, -kLog10Of2Hi, x);
  r = fma(n.value, -kLog10Of2Lo, r);
  return scale(fma(r, polynomial(r, c), 1.0), n).v;
}

llvm::Value* log(Emit& e, llvm::Value* value) {
  Lane x{&e, value};
  Split s = split(x);
  return log_edges(x, with_ln2(s.k, s.f, log1p_tail(s.f))).v;
}

llvm::Value* log2(Emit& e, llvm::Value* x) {
  constexpr Base of_f32{1.0, 0.0, 1.44269502, 1.92596303e-08};
  constexpr Base of_f64{1.0, 0.0, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
  return log_in_base({&e, x}, of_f32, of_f64).v;
}

llvm::Value* log10(Emit& e, llvm::Value* x) {
  constexpr Base of_f32{kLog10Of2Hi, kLog10Of2Lo, 0.434294492, -1.010305e-08};
  constexpr Base of_f64{0x1.34413509f7800p-2, 0x1.fef311f12b358p-46, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};
  return log_in_base({&e, x}, of_f32, of_f64).v;
}

llvm::Value* log1p(Emit& e, llvm::Value* value) {
  Lane x{&e, value};
  // 1 + x = 2^k (1 + f) where f is computed from x itself, so that a small x loses nothing.
  Lane sum = x + 1.0;
  const Lane k = exponent_of(sum);
  // 2^-k, subnormal for the largest k: from 2^(-k / 2) twice.
  Lane inverse = scale(x.number(1.0), nearest(-k));
  Lane f = fma(x, inverse, inverse - 1.0);
  Lane out = with_ln2(k, f, log1p_tail(f));
  double inf = std::numeric_limits<double>::infinity();
  out = select(x == -1.0, -inf, out);
  out = select(x < -1.0, std::numeric_limits<double>::quiet_NaN(), out);
  // x itself: infinity, NaN, and 0 with its sign.
  return select(x == inf || is_nan(x) || x == 0.0, x, out).v;
}

llvm::Value* tanh(Emit& e, llvm::Value* value) {
  static constexpr double c[] = {-0.333332986, 0.133319363, -0.0537847169, 0.0207986254, -0.00589796668};
  Lane x{&e, value};
  if (x.is_f64()) {
    const Lane a = clamp(fabs(x), 0.0, 22.0), t = expm1_f64(a + a);
    return copysign(t / (t + 2.0), x).v;
  }
  Lane square = x * x;
  Lane small = fma(square * x, polynomial(square, c), x);
  // 1 - 2 / (e^2|x| + 1); 9.1 and more round to 1.
  Lane a = clamp(fabs(x), 0.0, 10.0);
  Lane large = 1.0 - 2.0 / (exp_of(a + a) + 1.0);
  return copysign(select(fabs(x) < 0.6, small, large), x).v;  // also that of 0
}

llvm::Value* one_plus_tanh(Emit& e, llvm::Value* x) {
  // 2 / (e^-2x + 1): 0 where that is infinite. No exponential is subnormal, which would take a hundred cycles.
  return (2.0 / (exp_in_range(clamp(Lane{&e, x} * -2.0, -87.0, 89.0), 0) + 1.0)).v;
}

llvm::Value* sigmoid(Emit& e, llvm::Value* value) {
  // 1 / (1 + e^-|x|), or e^-|x| times that: nothing overflows and small results keep their digits.
  Lane x{&e, value};
  Lane t = exp_of(-fabs(x));
  Lane denominator = t + 1.0;
  return (select(x < 0.0, t, t.number(1.0)) / denominator).v;
}

llvm::Value* erf(Emit& e, llvm::Value* value) {
  static constexpr double near[] = {
      0.128379166, -0.376126289, 0.112836257, -0.0268557314, 0.00519240508, -0.000804976968, 7.99664995e-05};
  static constexpr double far[] = {0.000298358354,
                                   -1.130144,
                                   -0.631981671,
                                   -0.109930135,
                                   0.0263335537,
                                   -0.00472780922,
                                   0.000589796458,
                                   -4.51984015e-05,
                                   1.59219201e-06};
  Lane x{&e, value};
  Lane square = x * x;
  Lane small = fma(x, polynomial(square, near), x);
  // 1 - erfc(|x|) through log(erfc); 3.92 and more round to 1.
  Lane a = clamp(fabs(x), 0.0, 4.0);
  Lane large = copysign(1.0 - exp_of(polynomial(a, far)), x);
  return select(is_nan(x), x, select(fabs(x) < 0.93, small, large)).v;
}

namespace {

/// e^|x| / 2, in range where e^|x| is too large: what the hyperbolic functions add.
Lane half_exp(Lane x) { return exp_in_range(clamp(fabs(x), 0.0, x.is_f64() ? 711.0 : 90.0), 1); }

}  // namespace

llvm::Value* sinh(Emit& e, llvm::Value* value) {
  static constexpr double c[] = {0.166666672, 0.00833331048, 0.000198428956, 2.78221319e-06};
  Lane x{&e, value};
  Lane square = x * x;
  Lane small = x.is_f64() ? small_sinh_f64(x) : fma(square * x, polynomial(square, c), x);
  Lane half = half_exp(x);
  Lane large = copysign(half - 0.25 / half, x);
  return select(is_nan(x), x, select(fabs(x) < 1.0, small, large)).v;
}

llvm::Value* cosh(Emit& e, llvm::Value* value) {
  Lane x{&e, value};
  Lane half = half_exp(x);
  return (half + 0.25 / half).v;
}

llvm::Value* sin(Emit& e, llvm::Value* x) { return trigonometric(e, x, 0); }
llvm::Value* cos(Emit& e, llvm::Value* x) { return trigonometric(e, x, 1); }

llvm::Value* tan(Emit& e, llvm::Value* value) {
  static constexpr double c[] = {
      0.333333552, 0.133324683, 0.0540826768, 0.0211620051, 0.0111529455, -0.000318390143, 0.0045799301};
  Lane x{&e, value};
  if (x.is_f64()) return tan_f64(x).v;
  Angle a = reduced_angle(e, x);
  Lane square = a.r * a.r;
  Lane t = fma(square * a.r, polynomial(square, c), a.r);
  t = select(x == 0.0, x, select(is_set(a.quadrant, 1), -1.0 / t, t));  // 0 with its sign
  return select(a.finite, t, x - x).v;
}

namespace {

/// a^y for 0 < a < infinity and a finite y in f32. log2(a) and its product by y are f64: what they have behind the point decides,
/// with up to 7 bits before it. The power of two is f32's.
Lane pow_f32(Lane a, Lane y) {
  static constexpr double c[] = {
      2.885390081789993, 0.9617966734431901, 0.5770835677170658, 0.4116736574941043, 0.34071415355851437};
  // log2(a) = k + log2(1 + f), s = f / (2 + f)
  const Split parts = split(a);
  const Lane f = parts.f.to_f64(), s = f / (f + 2.0);
  const Lane log = fma(s, polynomial(s * s, c), parts.k.to_f64());
  const Lane t = clamp(y.to_f64() * log, -151.0, 129.0);
  const Rounded n = nearest(t);
  const Lane whole = n.value.to_f32();
  return scale(exp2_reduced((t - n.value).to_f32()), {whole, nearest(whole).integer});
}

/// What pow says of bases that are not positive, infinities and NaN; `out` is |x|^y elsewhere.
Lane pow_edges(Lane x, Lane y, Lane out) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Lane a = fabs(x), infinite_y = fabs(y) == inf;
  const Lane falls = y < 0.0;
  out = select(a == 0.0, select(falls, inf, out.number(0)), out);
  out = select(a == inf, select(falls, 0.0, out.number(inf)), out);
  const Lane to_zero = a > out.number(1);
  out = select(infinite_y, select((falls && to_zero) || (!falls && !to_zero), 0.0, out.number(inf)), out);

  auto trunc = [&](Lane v) { return v.of(v.b().CreateUnaryIntrinsic(llvm::Intrinsic::trunc, v.v)); };
  const Lane is_whole = !(trunc(y) != y), is_odd = is_whole && (trunc(y * 0.5) != y * 0.5);
  out = select(has_minus(x) && is_odd, -out, out);
  out = select(x < 0.0 && !is_whole && a < inf, std::numeric_limits<double>::quiet_NaN(), out);
  out = select(is_nan(x) || is_nan(y), x + y, out);
  // 1 to any power is 1, (-1) to an infinite one too, anything to the power 0 as well: also with NaN.
  return select(x == 1.0 || y == 0.0 || (a == 1.0 && infinite_y), 1.0, out);
}

}  // namespace

llvm::Value* pow(Emit& e, llvm::Value* base, llvm::Value* exponent) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Lane x{&e, base}, y{&e, exponent}, a = fabs(x);
  const Lane usual = a.is_f64() ? pow_f64(a, y) : pow_f32(a, y);
  // A positive base and finite numbers need no more; where they are in all lanes, nothing more is asked.
  const Lane is_edge = !(x > x.number(0) && x < inf && fabs(y) < inf);
  llvm::BasicBlock* from = e.b.GetInsertBlock();
  auto* edges = llvm::BasicBlock::Create(e.llvm, "pow_edges", e.function);
  auto* done = llvm::BasicBlock::Create(e.llvm, "pow_done", e.function);
  llvm::Value* any = base->getType()->isVectorTy() ? e.b.CreateOrReduce(is_edge.v) : is_edge.v;
  e.b.CreateCondBr(any, edges, done);
  e.b.SetInsertPoint(edges);
  const Lane all = pow_edges(x, y, usual);
  e.b.CreateBr(done);
  e.b.SetInsertPoint(done);
  llvm::PHINode* phi = e.b.CreatePHI(base->getType(), 2);
  phi->addIncoming(usual.v, from);
  phi->addIncoming(all.v, edges);
  return phi;
}

}  // namespace sator::codegen::elementary
