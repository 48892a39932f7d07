#include "codegen/emit/builtins.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include <unordered_map>

#include "codegen/emit/elementary.h"

namespace sator::codegen {

namespace {

using llvm::Intrinsic::ID;

llvm::Value* arg(Emit& e, const Call& n, size_t i) { return value_of(e, n.args[i]); }

/// A function of libm that gives an f64, on each lane.
///   args  as it takes them, which have the lanes of n
llvm::Value* from_libm(Emit& e, const Call& n, const char* name, const std::vector<llvm::Value*>& args) {
  DType wide = DType::Float(64, n.dtype.lanes);
  llvm::Type* f64 = e.b.getDoubleTy();
  std::vector<llvm::Type*> types;
  for (llvm::Value* v : args) types.push_back(v->getType()->getScalarType());
  llvm::FunctionCallee f = e.module.getOrInsertFunction(name, llvm::FunctionType::get(f64, types, false));
  llvm::cast<llvm::Function>(f.getCallee())->setDoesNotAccessMemory();
  if (n.dtype.lanes == 1) return convert(e, e.b.CreateCall(f, args), wide, n.dtype);
  llvm::Value* out = llvm::PoisonValue::get(type_of(e, wide));
  for (int i = 0; i < n.dtype.lanes; ++i) {
    std::vector<llvm::Value*> lane;
    for (llvm::Value* v : args) lane.push_back(e.b.CreateExtractElement(v, static_cast<uint64_t>(i)));
    out = e.b.CreateInsertElement(out, e.b.CreateCall(f, lane), static_cast<uint64_t>(i));
  }
  return convert(e, out, wide, n.dtype);
}

/// The same of f64s: what has no polynomial here. Rare in models.
llvm::Value* from_libm(Emit& e, const Call& n, const char* name) {
  DType wide = DType::Float(64, n.dtype.lanes);
  std::vector<llvm::Value*> args;
  for (size_t i = 0; i < n.args.size(); ++i) args.push_back(convert(e, arg(e, n, i), n.args[i]->dtype, wide));
  return from_libm(e, n, name, args);
}
#define FROM_LIBM(name) [](Emit& e, const Call& n) { return from_libm(e, n, name); }

/// The dtype in which elementary functions are computed: f16 and bf16 through f32.
DType computed(DType dtype) { return DType::Float(dtype.is_float() && dtype.bits == 64 ? 64 : 32, dtype.lanes); }

template <llvm::Value* (*F)(Emit&, llvm::Value*)>
llvm::Value* elementary_call(Emit& e, const Call& n) {
  const DType wide = computed(n.dtype);
  return convert(e, F(e, convert(e, arg(e, n, 0), n.args[0]->dtype, wide)), wide, n.dtype);
}
#define OURS(f) [](Emit& e, const Call& n) { return elementary_call<elementary::f>(e, n); }

llvm::Value* emit_erf(Emit& e, const Call& n) {
  return n.dtype.is_float() && n.dtype.bits == 64 ? from_libm(e, n, "erf") : elementary_call<elementary::erf>(e, n);
}

/// The same of two arguments.
template <llvm::Value* (*F)(Emit&, llvm::Value*, llvm::Value*)>
llvm::Value* elementary_pair(Emit& e, const Call& n, const char* name) {
  if (!n.dtype.is_float()) unsupported(text(name, " of integers"));
  const DType wide = computed(n.dtype);
  llvm::Value* a = convert(e, arg(e, n, 0), n.dtype, wide);
  llvm::Value* b = convert(e, arg(e, n, 1), n.args[1]->dtype, wide);
  return convert(e, F(e, a, b), wide, n.dtype);
}
#define OURS_OF_TWO(f) [](Emit& e, const Call& n) { return elementary_pair<elementary::f>(e, n, #f); }

/// x^y of integers, wrapped like their products, by squares; for a negative y, 1 / x^-y rounded towards 0, and 0 for x = 0.
llvm::Value* whole_power(Emit& e, llvm::Value* x, llvm::Value* y, bool is_signed) {
  llvm::Type* type = x->getType();
  auto number = [&](int64_t c) { return llvm::ConstantInt::get(type, static_cast<uint64_t>(c), true); };
  llvm::Value* exponent = is_signed ? e.b.CreateSelect(e.b.CreateICmpSLT(y, number(0)), number(0), y) : y;
  auto* before = e.b.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(e.llvm, "power", e.function);
  auto* done = llvm::BasicBlock::Create(e.llvm, "power_done", e.function);
  e.b.CreateBr(loop);
  e.b.SetInsertPoint(loop);
  llvm::PHINode *out = e.b.CreatePHI(type, 2), *square = e.b.CreatePHI(type, 2), *rest = e.b.CreatePHI(type, 2);
  llvm::Value* is_odd = e.b.CreateICmpNE(e.b.CreateAnd(rest, number(1)), number(0));
  llvm::Value* next = e.b.CreateSelect(is_odd, e.b.CreateMul(out, square), out);
  llvm::Value* halved = e.b.CreateLShr(rest, number(1));
  out->addIncoming(number(1), before), out->addIncoming(next, loop);
  square->addIncoming(x, before), square->addIncoming(e.b.CreateMul(square, square), loop);
  rest->addIncoming(exponent, before), rest->addIncoming(halved, loop);
  llvm::Value* left = type->isVectorTy() ? e.b.CreateOrReduce(halved) : halved;
  e.b.CreateCondBr(e.b.CreateICmpNE(left, llvm::ConstantInt::get(left->getType(), 0)), loop, done);
  e.b.SetInsertPoint(done);
  if (!is_signed) return next;
  llvm::Value* is_even = e.b.CreateICmpEQ(e.b.CreateAnd(y, number(1)), number(0));
  llvm::Value* of_minus_1 = e.b.CreateSelect(is_even, number(1), number(-1));
  llvm::Value* inverse = e.b.CreateSelect(e.b.CreateICmpEQ(x, number(-1)), of_minus_1, number(0));
  inverse = e.b.CreateSelect(e.b.CreateICmpEQ(x, number(1)), number(1), inverse);
  return e.b.CreateSelect(e.b.CreateICmpSLT(y, number(0)), inverse, next);
}

llvm::Value* emit_pow(Emit& e, const Call& n) {
  if (n.dtype.is_integer() && n.args[1]->dtype == n.dtype) {
    llvm::Value* x = arg(e, n, 0);
    return whole_power(e, x, arg(e, n, 1), n.dtype.is_int());
  }
  return elementary_pair<elementary::pow>(e, n, "pow");
}

/// An LLVM intrinsic that IEEE 754 defines exactly (or that works on bits).
llvm::Value* exact(Emit& e, const Call& n, ID id) {
  std::vector<llvm::Value*> args;
  for (size_t i = 0; i < n.args.size(); ++i) args.push_back(widened(e, arg(e, n, i), n.args[i]->dtype));
  llvm::Value* out = e.b.CreateIntrinsic(id, {args[0]->getType()}, args);
  return convert(e, out, widened(n.dtype), n.dtype);
}
/// Rounding to a whole number leaves an integer as it is.
template <ID id>
llvm::Value* rounding(Emit& e, const Call& n) {
  return n.dtype.is_float() ? exact(e, n, id) : arg(e, n, 0);
}
template <ID id>
llvm::Value* exactly(Emit& e, const Call& n) {
  return exact(e, n, id);
}

llvm::Value* emit_fabs(Emit& e, const Call& n) {
  if (n.dtype.is_float()) return exact(e, n, llvm::Intrinsic::fabs);
  llvm::Value* x = arg(e, n, 0);
  return n.dtype.is_int() ? e.b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, e.b.getFalse()) : x;
}

llvm::Value* emit_rsqrt(Emit& e, const Call& n) {
  DType wide = widened(n.dtype);
  llvm::Value* root = e.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, widened(e, arg(e, n, 0), n.dtype));
  return convert(e, e.b.CreateFDiv(llvm::ConstantFP::get(root->getType(), 1.0), root), wide, n.dtype);
}

llvm::Value* emit_fma(Emit& e, const Call& n) {
  if (n.dtype.is_float()) return exact(e, n, llvm::Intrinsic::fma);
  llvm::Value* product = e.b.CreateMul(arg(e, n, 0), arg(e, n, 1));
  return e.b.CreateAdd(product, arg(e, n, 2));
}

llvm::Value* emit_fmod(Emit& e, const Call& n) {
  llvm::Value* x = widened(e, arg(e, n, 0), n.dtype);
  return convert(e, e.b.CreateFRem(x, widened(e, arg(e, n, 1), n.dtype)), widened(n.dtype), n.dtype);
}

/// x * 2^exponent. In f64 no float32 leaves the range, so the only rounding is the one to the dtype.
llvm::Value* emit_ldexp(Emit& e, const Call& n) {
  DType given = n.args[1]->dtype;
  if (!n.dtype.is_float() || !given.is_integer()) unsupported(text("ldexp of ", n.args[0]->dtype, " and ", given));
  llvm::Value* exponent = convert(e, arg(e, n, 1), given, DType::Int(64, n.dtype.lanes));
  // Beyond these, every number is 0 or infinite.
  auto bound = [&](int64_t v) { return integer(e, v, DType::Int(64, n.dtype.lanes)); };
  exponent = e.b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, exponent, bound(-5000));
  exponent = e.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, exponent, bound(5000));
  llvm::Value* x = convert(e, arg(e, n, 0), n.args[0]->dtype, DType::Float(64, n.dtype.lanes));
  exponent = convert(e, exponent, DType::Int(64, n.dtype.lanes), DType::Int(32, n.dtype.lanes));
  return from_libm(e, n, "ldexp", {x, exponent});
}

/// The number next to x on the way to y: the next bits, or those before, by the magnitude.
llvm::Value* emit_nextafter(Emit& e, const Call& n) {
  DType d = n.dtype;
  if (!d.is_float() || d.bits == 8 || n.args[1]->dtype != d)
    unsupported(text("nextafter of ", d, " and ", n.args[1]->dtype));
  DType of_bits = DType::Int(d.bits, d.lanes);
  llvm::Value *x = arg(e, n, 0), *y = arg(e, n, 1);
  llvm::Value *a = widened(e, x, d), *b = widened(e, y, d);
  llvm::Type* bits = type_of(e, of_bits);
  llvm::Value *own = e.b.CreateBitCast(x, bits), *other = e.b.CreateBitCast(y, bits);
  llvm::Value *zero = llvm::Constant::getNullValue(a->getType()), *one = integer(e, 1, of_bits);
  llvm::Value* grows = e.b.CreateICmpEQ(e.b.CreateFCmpOLT(a, b), e.b.CreateFCmpOGT(a, zero));
  llvm::Value* next = e.b.CreateSelect(grows, e.b.CreateAdd(own, one), e.b.CreateSub(own, one));
  llvm::Value* sign = e.b.CreateAnd(other, e.b.CreateShl(one, integer(e, d.bits - 1, of_bits)));
  next = e.b.CreateSelect(e.b.CreateFCmpOEQ(a, zero), e.b.CreateOr(sign, one), next);
  next = e.b.CreateSelect(e.b.CreateFCmpOEQ(a, b), other, next);
  llvm::Value* no_number = convert(e, e.b.CreateFAdd(a, b), widened(d), d);
  return e.b.CreateSelect(e.b.CreateFCmpUNO(a, b), no_number, e.b.CreateBitCast(next, x->getType()));
}

template <bool finite, bool infinite>
llvm::Value* classify(Emit& e, const Call& n) {
  DType d = n.args[0]->dtype;
  if (!d.is_float()) return integer(e, finite, DType::Bool(d.all_lanes()));
  llvm::Value* x = widened(e, arg(e, n, 0), d);
  if (!finite && !infinite) return e.b.CreateFCmpUNO(x, x);
  llvm::Value* size = e.b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  llvm::Value* inf = llvm::ConstantFP::getInfinity(size->getType());
  return finite ? e.b.CreateFCmpOLT(size, inf) : e.b.CreateFCmpOEQ(size, inf);
}

template <llvm::Instruction::BinaryOps op>
llvm::Value* bitwise(Emit& e, const Call& n) {
  llvm::Value* x = arg(e, n, 0);
  return e.b.CreateBinOp(op, x, arg(e, n, 1));
}

/// As NumPy shifts: by the width or more, or by a negative number, nothing of the value is left but its sign. LLVM leaves
/// such shifts undefined; where it sees that the distance is smaller, the guard goes.
llvm::Value* emit_shift_right(Emit& e, const Call& n) {
  const DType distance = n.args[1]->dtype;
  llvm::Value *x = arg(e, n, 0), *by = arg(e, n, 1);
  llvm::Value* last = integer(e, n.dtype.bits - 1, distance);
  if (n.dtype.is_int()) {
    by = e.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, by, last);
    return e.b.CreateAShr(x, convert(e, by, distance, n.dtype));
  }
  llvm::Value* shifted = e.b.CreateLShr(x, convert(e, by, distance, n.dtype));
  return e.b.CreateSelect(e.b.CreateICmpULE(by, last), shifted, integer(e, 0, n.dtype));
}
llvm::Value* emit_shift_left(Emit& e, const Call& n) {
  const DType distance = n.args[1]->dtype;
  llvm::Value *x = arg(e, n, 0), *by = arg(e, n, 1);
  llvm::Value* shifted = e.b.CreateShl(x, convert(e, by, distance, n.dtype));
  return e.b.CreateSelect(
      e.b.CreateICmpULE(by, integer(e, n.dtype.bits - 1, distance)), shifted, integer(e, 0, n.dtype));
}

llvm::Value* emit_clz(Emit& e, const Call& n) {
  llvm::Value* zeros = e.b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, arg(e, n, 0), e.b.getFalse());
  DType counted = DType::UInt(n.args[0]->dtype.bits, n.dtype.lanes);
  return convert(e, zeros, counted, n.dtype);
}

/// round(x * y * 2^-shift), y with q fraction bits: (x * y + half) >> (q + shift), in 64 bits.
llvm::Value* emit_q_multiply_shift(Emit& e, const Call& n) {
  DType wide = DType::Int(64, n.dtype.lanes);
  auto as64 = [&](size_t i) { return convert(e, arg(e, n, i), n.args[i]->dtype, wide); };
  llvm::Value* one = integer(e, 1, wide);
  llvm::Value* shift = e.b.CreateAdd(as64(2), as64(3));
  llvm::Value* half = e.b.CreateShl(one, e.b.CreateSub(shift, one));
  llvm::Value* product = e.b.CreateMul(as64(0), as64(1));
  return convert(e, e.b.CreateAShr(e.b.CreateAdd(product, half), shift), wide, n.dtype);
}

llvm::Value* emit_if_then_else(Emit& e, const Call& n) { return emit_choice(e, n.args[0], n.args[1], n.args[2]); }

llvm::Value* emit_likely(Emit& e, const Call& n) {
  llvm::Value* x = arg(e, n, 0);
  return n.dtype.lanes > 1 ? x : e.b.CreateIntrinsic(llvm::Intrinsic::expect, {x->getType()}, {x, e.b.getTrue()});
}

llvm::Value* emit_assume(Emit& e, const Call& n) {
  llvm::Value* x = arg(e, n, 0);
  if (n.args[0]->dtype.lanes == 1 && !e.mask) e.b.CreateAssumption(x);
  return x;
}

llvm::Value* emit_reinterpret(Emit& e, const Call& n) {
  DType from = n.args[0]->dtype;
  if (from.bits * from.lanes != n.dtype.bits * n.dtype.lanes)
    unsupported(text("reinterpret of ", from, " as ", n.dtype));
  return e.b.CreateBitCast(arg(e, n, 0), type_of(e, n.dtype));
}

llvm::Value* emit_vector_half(Emit& e, const Call& n, bool high) {
  std::vector<int> lanes;
  for (int i = 0; i < n.dtype.lanes; ++i) lanes.push_back(i + (high ? n.args[0]->dtype.lanes - n.dtype.lanes : 0));
  return e.b.CreateShuffleVector(arg(e, n, 0), lanes);
}
llvm::Value* emit_vector_combine(Emit& e, const Call& n) {
  std::vector<int> lanes;
  for (int i = 0; i < n.dtype.lanes; ++i) lanes.push_back(i);
  llvm::Value* low = arg(e, n, 0);
  return e.b.CreateShuffleVector(low, arg(e, n, 1), lanes);
}

/// Lane l holds where base + l < limit; in 64 bits, where the sum cannot wrap.
llvm::Value* emit_active_lane_mask(Emit& e, const Call& n) {
  auto wide = [&](int i) {
    return splat(e, convert(e, arg(e, n, i), n.args[static_cast<size_t>(i)]->dtype, i64), n.dtype.lanes);
  };
  std::vector<llvm::Constant*> steps;
  for (int l = 0; l < n.dtype.lanes; ++l) steps.push_back(e.b.getInt64(static_cast<uint64_t>(l)));
  return e.b.CreateICmpSLT(e.b.CreateAdd(wide(0), llvm::ConstantVector::get(steps)), wide(1));
}

const BufferLoad& address_argument(const Call& n) {
  const BufferLoad* place = n.args[0].as<BufferLoad>();
  if (!place) unsupported("the address of something that is not a place in a buffer");
  return *place;
}
llvm::Value* emit_address_of(Emit& e, const Call& n) { return address_of(e, address_argument(n)); }
/// tvm_access_ptr(dtype, data, offset, extent, access): the address of element `offset`
llvm::Value* emit_access_ptr(Emit& e, const Call& n) {
  llvm::Value* offset = convert(e, arg(e, n, 2), n.args[2]->dtype, i64);
  llvm::Value* bytes = e.b.CreateMul(offset, integer(e, n.args[0]->dtype.bytes(), i64));
  return e.b.CreateGEP(e.b.getInt8Ty(), arg(e, n, 1), bytes);
}

/// prefetch(address_of(place), write, locality, kind of cache)
llvm::Value* emit_prefetch_call(Emit& e, const Call& n) {
  const Call* address = n.args[0].as<Call>();
  auto option = [&](size_t i) { return static_cast<int>(as_int(n.args[i]).value_or(0)); };
  emit_prefetch(e,
                address && address->op == "tir.address_of" ? address_argument(*address) : address_argument(n),
                option(1),
                option(2));
  return integer(e, 0, i32);
}

/// A function outside, called by its C name.
llvm::Value* emit_extern(Emit& e, const Call& n) {
  const StringImm* name = n.args[0].as<StringImm>();
  if (!name) unsupported("call_extern without a name");
  std::vector<llvm::Value*> args;
  std::vector<llvm::Type*> types;
  for (size_t i = 1; i < n.args.size(); ++i) {
    args.push_back(arg(e, n, i));
    types.push_back(args.back()->getType());
  }
  llvm::Type* result = n.dtype.is_void() ? e.b.getVoidTy() : type_of(e, n.dtype);
  llvm::FunctionCallee f = e.module.getOrInsertFunction(name->value, llvm::FunctionType::get(result, types, false));
  return e.b.CreateCall(f, args);
}

/// An intrinsic of LLVM's that every machine has and that touches no memory.
llvm::Value* emit_llvm_intrinsic(Emit& e, const Call& n) {
  if (const Expr ours = builtin_of_llvm(n)) return value_of(e, ours);
  const StringImm* name = n.args.empty() ? nullptr : n.args[0].as<StringImm>();
  const ID id = name ? llvm::Function::lookupIntrinsicID(name->value) : llvm::Intrinsic::not_intrinsic;
  auto refuse = [&](std::string_view why) {
    fail({.what = text("a CPU kernel calls ", n.args.empty() ? "an intrinsic" : text(n.args[0]), " of LLVM's, ", why),
          .needs =
              "the name of an intrinsic that every machine has, that touches no memory, with arguments of its types",
          .hint = "T.call_llvm_pure_intrin(\"float32\", \"llvm.fabs\", x); or write it by builtins of T"});
  };
  if (!name) refuse("whose number means something to one release of it alone");
  if (id == llvm::Intrinsic::not_intrinsic) refuse("which it has not");
  if (llvm::Function::isTargetIntrinsic(id)) refuse("which one maker's machines have");
  for (const bool tells : {false, true}) {  // of how many arguments the signature is made
    if (tells && (n.args.size() < 2 || !n.args[1].as<IntImm>())) break;
    std::vector<llvm::Value*> args;
    std::vector<llvm::Type*> types;
    for (size_t i = tells ? 2 : 1; i < n.args.size(); ++i) {
      args.push_back(arg(e, n, i));
      types.push_back(args.back()->getType());
    }
    llvm::SmallVector<llvm::Type*> overloaded;
    if (!llvm::Intrinsic::getIntrinsicSignature(
            id, llvm::FunctionType::get(type_of(e, n.dtype), types, false), overloaded))
      continue;
    llvm::Function* f = llvm::Intrinsic::getDeclaration(&e.module, id, overloaded);
    if (!f->doesNotAccessMemory()) refuse("which touches memory");
    for (unsigned i = 0; i < args.size(); ++i)
      if (f->hasParamAttribute(i, llvm::Attribute::ImmArg) && !llvm::isa<llvm::ConstantInt>(args[i]))
        refuse(text("whose argument ", i + 1, " must be a constant"));
    return e.b.CreateCall(f, args);
  }
  refuse(text("of arguments or a result (", n.dtype, ") that it does not take"));
  return nullptr;
}

/// Nothing to do on a CPU: a lane reads only what its own thread wrote.
llvm::Value* emit_nothing(Emit& e, const Call& n) { return n.dtype.is_void() ? nullptr : integer(e, 0, n.dtype); }

llvm::Value* emit_ret(Emit& e, const Call& n) {
  auto status = as_int(n.args[0]);
  if (!status || *status != 0)
    fail({.what = "machine code has no form for a kernel that returns something",
          .needs = "a program that stores its results",
          .hint = "run ReturnByStore before (`sator opt FILE --passes ReturnByStore`): it stores the number in a last "
                  "parameter, `result`"});
  return integer(e, 0, i32);
}

constexpr EmitBuiltin kTable[] = {
    {"tir.exp", OURS(exp)},
    {"tir.exp2", OURS(exp2)},
    {"tir.exp10", OURS(exp10)},
    {"tir.log", OURS(log)},
    {"tir.log2", OURS(log2)},
    {"tir.log10", OURS(log10)},
    {"tir.log1p", OURS(log1p)},
    {"tir.tanh", OURS(tanh)},
    {"tir.erf", emit_erf},
    {"tir.sin", OURS(sin)},
    {"tir.cos", OURS(cos)},
    {"tir.sigmoid", OURS(sigmoid)},
    {"tir.pow", emit_pow},
    {"tir.tan", OURS(tan)},
    {"tir.cosh", OURS(cosh)},
    {"tir.sinh", OURS(sinh)},
    {"tir.acos", OURS(acos)},
    {"tir.acosh", OURS(acosh)},
    {"tir.asin", OURS(asin)},
    {"tir.asinh", OURS(asinh)},
    {"tir.atan", OURS(atan)},
    {"tir.atanh", OURS(atanh)},
    {"tir.atan2", OURS_OF_TWO(atan2)},
    {"tir.hypot", FROM_LIBM("hypot")},
    {"tir.sqrt", exactly<llvm::Intrinsic::sqrt>},
    {"tir.rsqrt", emit_rsqrt},
    {"tir.floor", rounding<llvm::Intrinsic::floor>},
    {"tir.ceil", rounding<llvm::Intrinsic::ceil>},
    {"tir.trunc", rounding<llvm::Intrinsic::trunc>},
    {"tir.round", rounding<llvm::Intrinsic::round>},
    {"tir.nearbyint", rounding<llvm::Intrinsic::roundeven>},
    {"tir.fabs", emit_fabs},
    {"tir.copysign", exactly<llvm::Intrinsic::copysign>},
    {"tir.ldexp", emit_ldexp},
    {"tir.nextafter", emit_nextafter},
    {"tir.fma", emit_fma},
    {"tir.fmod", emit_fmod},
    {"tir.isnan", classify<false, false>},
    {"tir.isinf", classify<false, true>},
    {"tir.isfinite", classify<true, false>},
    {"tir.popcount", exactly<llvm::Intrinsic::ctpop>},
    {"tir.clz", emit_clz},
    {"tir.bitwise_and", bitwise<llvm::Instruction::And>},
    {"tir.bitwise_or", bitwise<llvm::Instruction::Or>},
    {"tir.bitwise_xor", bitwise<llvm::Instruction::Xor>},
    {"tir.bitwise_not", [](Emit& e, const Call& n) { return e.b.CreateNot(arg(e, n, 0)); }},
    {"tir.shift_left", emit_shift_left},
    {"tir.shift_right", emit_shift_right},
    {"tir.q_multiply_shift", emit_q_multiply_shift},
    {"tir.if_then_else", emit_if_then_else},
    {"tir.likely", emit_likely},
    {"tir.assume", emit_assume},
    {"tir.undef",
     [](Emit& e, const Call& n) -> llvm::Value* { return llvm::Constant::getNullValue(type_of(e, n.dtype)); }},
    {"tir.ret", emit_ret},
    {"tir.reinterpret", emit_reinterpret},
    {"tir.vectorlow", [](Emit& e, const Call& n) { return emit_vector_half(e, n, false); }},
    {"tir.vectorhigh", [](Emit& e, const Call& n) { return emit_vector_half(e, n, true); }},
    {"tir.vectorcombine", emit_vector_combine},
    {"tir.get_active_lane_mask", emit_active_lane_mask},
    {"tir.dot4", emit_dot4},
    {"tir.dp4a", emit_dot4},
    {"tir.dot2", emit_dot2},
    {"tir.tile_product", emit_tile_product},
    {"tir.tile_dot", emit_tile_dot},
    {"tir.tile_store", emit_tile_store},
    {"tir.has_matrix_tiles", [](Emit& e, const Call&) -> llvm::Value* { return e.b.getInt1(e.level.tiles); }},
    {"tir.lookup16", emit_lookup16},
    {"tir.address_of", emit_address_of},
    {"tir.tvm_access_ptr", emit_access_ptr},
    {"tir.prefetch", emit_prefetch_call},
    {"tir.isnullptr", [](Emit& e, const Call& n) { return e.b.CreateIsNull(arg(e, n, 0)); }},
    {"tir.call_extern", emit_extern},
    {"tir.call_pure_extern", emit_extern},
    {"tir.call_llvm_intrin", emit_llvm_intrinsic},
    {"tir.call_llvm_pure_intrin", emit_llvm_intrinsic},
    {"tir.tvm_storage_sync", emit_nothing},
    {"tir.tvm_thread_invariant", [](Emit& e, const Call& n) { return arg(e, n, 0); }},
};

}  // namespace

llvm::Value* emit_call(Emit& e, const Call& n) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const EmitBuiltin*> out;
    for (const EmitBuiltin& row : kTable) out.emplace(row.op, &row);
    return out;
  }();
  auto at = index.find(n.op);
  if (at == index.end() && n.op.starts_with("global:"))
    fail({.what = text("a CPU kernel calls the function ", n.op.substr(7), " of its module"),
          .needs = "a function that can take the place of its call: it does not call itself, returns at its end alone, "
                   "and takes "
                   "numbers and data pointers",
          .hint = "write it as a macro (T.macro), or call it from a graph by R.call_tir"});
  if (at == index.end() && n.op == "tir.tvm_call_packed")
    fail({.what = text("a CPU kernel calls a packed function, ", n.args.empty() ? "without a name" : text(n.args[0])),
          .needs = "Python, which has packed functions: sator.build(mod), relax.build(mod)",
          .hint = "without Python, call a function of C: T.call_extern"});
  if (at == index.end())
    fail({.what = text("a CPU kernel calls ", n.op),
          .needs = "a builtin that machine code for a CPU has",
          .hint = "rewrite the call by arithmetic, or by call_extern of a C function"});
  bool outer = std::exchange(e.in_index, false);
  llvm::Value* value = at->second->emit(e, n);
  e.in_index = outer;
  return value;
}

}  // namespace sator::codegen
