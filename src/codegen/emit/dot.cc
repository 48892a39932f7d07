// Products of 8-bit integers, summed by fours into 32 bits: exact for all values at every level; products of 16-bit floats,
// summed by pairs into float32.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/emit/builtins.h"

namespace sator::codegen {

namespace {

std::vector<int> range(int begin, int count) {
  std::vector<int> out;
  for (int i = 0; i < count; ++i) out.push_back(begin + i);
  return out;
}

/// Operands of one group of lanes: acc has n lanes, a and b `group` times as many.
struct Dot {
  llvm::Value *acc, *a, *b;
  DType a_type, b_type;
  int lanes;
  int group() const { return a_type.lanes / lanes; }
};

llvm::Value* words(Emit& e, llvm::Value* bytes, int lanes) {
  return e.b.CreateBitCast(bytes, llvm::FixedVectorType::get(e.b.getInt32Ty(), static_cast<unsigned>(lanes)));
}

/// vpdpbusd: unsigned bytes x signed bytes.
llvm::Value* vpdpbusd(Emit& e, llvm::Value* acc, llvm::Value* u, llvm::Value* s, int lanes) {
  llvm::Intrinsic::ID id = lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                           : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                                        : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
  return e.b.CreateIntrinsic(id, {}, {acc, words(e, u, lanes), words(e, s, lanes)});
}

/// Even and odd bytes as 16-bit numbers, then the pairwise products of vpmaddwd: nothing saturates, for a sum of two
/// products of 9-bit numbers fits 32 bits.
llvm::Value* by_pairs(Emit& e, const Dot& d) {
  auto* shorts = llvm::FixedVectorType::get(e.b.getInt16Ty(), static_cast<unsigned>(d.lanes) * 2);
  llvm::Constant* eight = llvm::ConstantInt::get(shorts, 8);
  auto odd = [&](llvm::Value* v, bool is_signed) {
    v = e.b.CreateBitCast(v, shorts);
    return is_signed ? e.b.CreateAShr(v, eight) : e.b.CreateLShr(v, eight);
  };
  auto even = [&](llvm::Value* v, bool is_signed) {
    v = e.b.CreateBitCast(v, shorts);
    if (!is_signed) return e.b.CreateAnd(v, llvm::ConstantInt::get(shorts, 255));
    return e.b.CreateAShr(e.b.CreateShl(v, eight), eight);
  };
  auto madd = [&](llvm::Value* x, llvm::Value* y) {
    llvm::Intrinsic::ID id = d.lanes == 16  ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                             : d.lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                            : llvm::Intrinsic::x86_sse2_pmadd_wd;
    return e.b.CreateIntrinsic(id, {}, {x, y});
  };
  llvm::Value* evens = madd(even(d.a, d.a_type.is_int()), even(d.b, d.b_type.is_int()));
  llvm::Value* odds = madd(odd(d.a, d.a_type.is_int()), odd(d.b, d.b_type.is_int()));
  return e.b.CreateAdd(d.acc, e.b.CreateAdd(evens, odds));
}

/// udot and sdot of Armv8.2.
llvm::Value* arm_dot(Emit& e, const Dot& d) {
  llvm::Intrinsic::ID id = d.a_type.is_int() ? llvm::Intrinsic::aarch64_neon_sdot : llvm::Intrinsic::aarch64_neon_udot;
  return e.b.CreateIntrinsic(id, {d.acc->getType(), d.a->getType()}, {d.acc, d.a, d.b});
}

/// Any number of lanes, in plain arithmetic.
llvm::Value* plain(Emit& e, const Dot& d) {
  llvm::Value* sum = d.acc;
  auto* wide = llvm::FixedVectorType::get(e.b.getInt32Ty(), static_cast<unsigned>(d.lanes));
  for (int j = 0; j < 4; ++j) {
    std::vector<int> every_fourth;
    for (int i = 0; i < d.lanes; ++i) every_fourth.push_back(4 * i + j);
    auto pick = [&](llvm::Value* v, bool is_signed) {
      llvm::Value* part = e.b.CreateShuffleVector(v, every_fourth);
      return is_signed ? e.b.CreateSExt(part, wide) : e.b.CreateZExt(part, wide);
    };
    sum = e.b.CreateAdd(sum, e.b.CreateMul(pick(d.a, d.a_type.is_int()), pick(d.b, d.b_type.is_int())));
  }
  return sum;
}

llvm::Value* integer_dot(Emit& e, const Dot& d) {
  bool is_x86 = e.level.triple.starts_with("x86_64");
  if (!is_x86) {
    if (d.lanes == 4 && d.a_type.is_int() == d.b_type.is_int()) return arm_dot(e, d);
    return plain(e, d);
  }
  if (d.lanes < 4) return plain(e, d);
  if (e.level.dot_u8s8 && d.a_type.is_int() != d.b_type.is_int())
    return d.a_type.is_int() ? vpdpbusd(e, d.acc, d.b, d.a, d.lanes) : vpdpbusd(e, d.acc, d.a, d.b, d.lanes);
  if (e.level.dot_u8s8 && d.a_type.is_int()) {
    // a + 128 is unsigned; what that adds, 128 times the sum of b, is taken off again.
    llvm::Constant* top = llvm::ConstantInt::get(d.a->getType(), 128);
    llvm::Value* zero = llvm::Constant::getNullValue(d.acc->getType());
    llvm::Value* excess = vpdpbusd(e, zero, top, d.b, d.lanes);
    return e.b.CreateSub(vpdpbusd(e, d.acc, e.b.CreateXor(d.a, top), d.b, d.lanes), excess);
  }
  return by_pairs(e, d);
}

/// The even (0) or odd (1) elements of a vector of pairs, as float32: a vector, or the one of a pair as a number.
llvm::Value* half_of_pairs(Emit& e, llvm::Value* v, DType dtype, int lanes, int which, bool as_vector) {
  if (dtype.element() == bf16 && as_vector) {
    // A bfloat16 is the upper half of its float32.
    auto* words = llvm::FixedVectorType::get(e.b.getInt32Ty(), static_cast<unsigned>(lanes));
    v = e.b.CreateBitCast(v, words);
    v = which == 0 ? e.b.CreateShl(v, llvm::ConstantInt::get(words, 16))
                   : e.b.CreateAnd(v, llvm::ConstantInt::get(words, 0xffff0000U));
    return e.b.CreateBitCast(v, llvm::FixedVectorType::get(e.b.getFloatTy(), static_cast<unsigned>(lanes)));
  }
  v = convert(e, v, dtype, DType::Float(32, 2 * lanes));
  if (!as_vector) return e.b.CreateExtractElement(v, static_cast<uint64_t>(which));
  std::vector<int> every_second;
  for (int i = 0; i < lanes; ++i) every_second.push_back(2 * i + which);
  return e.b.CreateShuffleVector(v, every_second);
}

/// vdpbf16ps, and elsewhere what it computes: the second product of a pair is added first.
llvm::Value* float_dot(Emit& e, const Dot& d) {
  if (e.level.dot_bf16 && d.a_type.element() == bf16 && d.b_type.element() == bf16 && d.lanes >= 4) {
    const llvm::Intrinsic::ID id = d.lanes == 16  ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512
                                   : d.lanes == 8 ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256
                                                  : llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128;
    auto* pairs = llvm::FixedVectorType::get(e.b.getBFloatTy(), static_cast<unsigned>(d.lanes) * 2);
    return e.b.CreateIntrinsic(id, {}, {d.acc, e.b.CreateBitCast(d.a, pairs), e.b.CreateBitCast(d.b, pairs)});
  }
  llvm::Value* sum = d.acc;
  const bool as_vector = sum->getType()->isVectorTy();
  for (int which : {1, 0}) {
    llvm::Value* x = half_of_pairs(e, d.a, d.a_type, d.lanes, which, as_vector);
    llvm::Value* y = half_of_pairs(e, d.b, d.b_type, d.lanes, which, as_vector);
    sum = e.b.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {x, y, sum});
  }
  return sum;
}

/// Vectors wider than a register go piece by piece: target intrinsics have fixed widths.
llvm::Value* by_registers(Emit& e, const Dot& d, llvm::Value* (*one_register)(Emit&, const Dot&)) {
  int width = std::min(d.lanes, target::vector_lanes(e.level, 32));
  while (d.lanes % width != 0) width /= 2;  // ends at 1
  if (width == d.lanes) return one_register(e, d);
  const int group = d.group();
  llvm::Value* out = llvm::PoisonValue::get(d.acc->getType());
  for (int at = 0; at < d.lanes; at += width) {
    Dot part{e.b.CreateShuffleVector(d.acc, range(at, width)),
             e.b.CreateShuffleVector(d.a, range(group * at, group * width)),
             e.b.CreateShuffleVector(d.b, range(group * at, group * width)),
             d.a_type.with_lanes(group * width),
             d.b_type.with_lanes(group * width),
             width};
    std::vector<int> spread, merge;
    for (int i = 0; i < d.lanes; ++i) {
      bool here = i >= at && i < at + width;
      spread.push_back(here ? i - at : -1);
      merge.push_back(here ? d.lanes + i : i);
    }
    out = e.b.CreateShuffleVector(out, e.b.CreateShuffleVector(one_register(e, part), spread), merge);
  }
  return out;
}

}  // namespace

llvm::Value* emit_dot4(Emit& e, const Call& n) {
  // dot4(acc, a, b); TVM's dp4a(a, b, acc) has the sum last.
  bool sum_first = n.op == "tir.dot4";
  const Expr &acc = n.args[sum_first ? 0 : 2], &a = n.args[sum_first ? 1 : 0], &b = n.args[sum_first ? 2 : 1];
  int lanes = n.dtype.lanes;
  auto is_bytes = [&](DType d) { return d.is_integer() && d.bits == 8 && d.lanes == 4 * lanes; };
  if (acc->dtype.element() != i32 || acc->dtype.lanes != lanes || !is_bytes(a->dtype) || !is_bytes(b->dtype))
    fail({.what = text("dot4 of ", acc->dtype, ", ", a->dtype, " and ", b->dtype),
          .needs = "acc int32 with n lanes, a and b 8-bit integers with 4n lanes",
          .hint = "correct the operands"});
  llvm::Value* sum = value_of(e, acc);
  llvm::Value* x = value_of(e, a);
  llvm::Value* y = value_of(e, b);
  if (lanes == 1) {
    sum = e.b.CreateInsertElement(
        llvm::PoisonValue::get(llvm::FixedVectorType::get(e.b.getInt32Ty(), 1)), sum, uint64_t{0});
    llvm::Value* one = plain(e, {sum, x, y, a->dtype, b->dtype, 1});
    return e.b.CreateExtractElement(one, uint64_t{0});
  }
  return by_registers(e, {sum, x, y, a->dtype, b->dtype, lanes}, integer_dot);
}

llvm::Value* emit_dot2(Emit& e, const Call& n) {
  const int lanes = n.dtype.lanes;
  const Expr &a = n.args[1], &b = n.args[2];
  const auto is_half = [&](DType d) { return d.is_float() && d.bits == 16 && d.lanes == 2 * lanes; };
  if (n.args[0]->dtype != n.dtype || n.dtype.element() != f32 || !is_half(a->dtype) || !is_half(b->dtype))
    fail({.what = text("dot2 of ", n.args[0]->dtype, ", ", a->dtype, " and ", b->dtype),
          .needs = "acc float32 with n lanes, a and b 16-bit floats with 2n lanes",
          .hint = "correct the operands"});
  llvm::Value* sum = value_of(e, n.args[0]);
  const Dot d{sum, value_of(e, a), value_of(e, b), a->dtype, b->dtype, lanes};
  return lanes == 1 ? float_dot(e, d) : by_registers(e, d, float_dot);
}

}  // namespace sator::codegen
