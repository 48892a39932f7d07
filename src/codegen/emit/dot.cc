// Products of 8-bit integers, summed by fours into 32 bits: exact for all values at every level.
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

/// Operands of one group of lanes: acc i32 x n, a and b i8 x 4n.
struct Dot {
  llvm::Value *acc, *a, *b;
  bool a_signed, b_signed;
  int lanes;
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
  llvm::Value* evens = madd(even(d.a, d.a_signed), even(d.b, d.b_signed));
  llvm::Value* odds = madd(odd(d.a, d.a_signed), odd(d.b, d.b_signed));
  return e.b.CreateAdd(d.acc, e.b.CreateAdd(evens, odds));
}

/// udot and sdot of Armv8.2.
llvm::Value* arm_dot(Emit& e, const Dot& d) {
  llvm::Intrinsic::ID id = d.a_signed ? llvm::Intrinsic::aarch64_neon_sdot : llvm::Intrinsic::aarch64_neon_udot;
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
    sum = e.b.CreateAdd(sum, e.b.CreateMul(pick(d.a, d.a_signed), pick(d.b, d.b_signed)));
  }
  return sum;
}

llvm::Value* one_register(Emit& e, Dot d) {
  bool is_x86 = e.level.triple.starts_with("x86_64");
  if (!is_x86) {
    if (d.lanes == 4 && d.a_signed == d.b_signed) return arm_dot(e, d);
    return plain(e, d);
  }
  if (d.lanes < 4) return plain(e, d);
  if (e.level.dot_u8s8 && d.a_signed != d.b_signed)
    return d.a_signed ? vpdpbusd(e, d.acc, d.b, d.a, d.lanes) : vpdpbusd(e, d.acc, d.a, d.b, d.lanes);
  if (e.level.dot_u8s8 && d.a_signed) {
    // a + 128 is unsigned; what that adds, 128 times the sum of b, is taken off again.
    llvm::Constant* top = llvm::ConstantInt::get(d.a->getType(), 128);
    llvm::Value* zero = llvm::Constant::getNullValue(d.acc->getType());
    llvm::Value* excess = vpdpbusd(e, zero, top, d.b, d.lanes);
    return e.b.CreateSub(vpdpbusd(e, d.acc, e.b.CreateXor(d.a, top), d.b, d.lanes), excess);
  }
  return by_pairs(e, d);
}

/// Vectors wider than a register go piece by piece: target intrinsics have fixed widths.
llvm::Value* by_registers(Emit& e, const Dot& d) {
  int width = std::min(d.lanes, target::vector_lanes(e.level, 32));
  while (d.lanes % width != 0) width /= 2;  // ends at 1
  if (width == d.lanes) return one_register(e, d);
  llvm::Value* out = llvm::PoisonValue::get(d.acc->getType());
  for (int at = 0; at < d.lanes; at += width) {
    Dot part{e.b.CreateShuffleVector(d.acc, range(at, width)),
             e.b.CreateShuffleVector(d.a, range(4 * at, 4 * width)),
             e.b.CreateShuffleVector(d.b, range(4 * at, 4 * width)),
             d.a_signed,
             d.b_signed,
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
    llvm::Value* one = plain(e, {sum, x, y, a->dtype.is_int(), b->dtype.is_int(), 1});
    return e.b.CreateExtractElement(one, uint64_t{0});
  }
  return by_registers(e, {sum, x, y, a->dtype.is_int(), b->dtype.is_int(), lanes});
}

llvm::Value* emit_dot2(Emit& e, const Call& n) {
  int lanes = n.dtype.lanes;
  DType wide = DType::Float(32, 2 * lanes);
  llvm::Value* sum = value_of(e, n.args[0]);
  llvm::Value* x = convert(e, value_of(e, n.args[1]), n.args[1]->dtype, wide);
  llvm::Value* y = convert(e, value_of(e, n.args[2]), n.args[2]->dtype, wide);
  for (int j = 0; j < 2; ++j) {
    auto pick = [&](llvm::Value* v) -> llvm::Value* {
      if (lanes == 1) return e.b.CreateExtractElement(v, static_cast<uint64_t>(j));
      std::vector<int> every_second;
      for (int i = 0; i < lanes; ++i) every_second.push_back(2 * i + j);
      return e.b.CreateShuffleVector(v, every_second);
    };
    sum = e.b.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {pick(x), pick(y), sum});
  }
  return sum;
}

}  // namespace sator::codegen
