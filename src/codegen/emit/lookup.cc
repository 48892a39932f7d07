// Bytes of a table of 16, chosen by bytes.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <array>

#include "codegen/emit/builtins.h"

namespace sator::codegen {

namespace {

constexpr int kEntries = 16;
using Entries = std::array<uint8_t, kEntries>;

Entries entries_of(const Call& n) {
  Entries table{};
  for (size_t w = 0; w < 4; ++w) {
    Expr word = n.args[w + 1];
    while (const Broadcast* b = word.as<Broadcast>()) word = b->value;
    const auto value = as_int(word);
    if (!value)
      fail({.what = text("lookup16 in ", n.args[w + 1]), .needs = "words that are constants", .hint = "write numbers"});
    for (size_t i = 0; i < 4; ++i) table[4 * w + i] = static_cast<uint8_t>(static_cast<uint64_t>(*value) >> (8 * i));
  }
  return table;
}

llvm::Constant* repeated(Emit& e, const Entries& table, int lanes) {
  std::vector<uint8_t> bytes;
  for (int i = 0; i < lanes; ++i) bytes.push_back(table[static_cast<size_t>(i) % kEntries]);
  return llvm::ConstantDataVector::get(e.b.getContext(), bytes);
}

/// Of as many lanes as one register has, at most; every one of its parts of 16 bytes has the table.
llvm::Value* of_one_register(Emit& e, const Entries& table, llvm::Value* index, int lanes) {
  llvm::Value* bytes = repeated(e, table, lanes);
  if (!e.level.triple.starts_with("x86_64"))
    return e.b.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_tbl1, {index->getType()}, {bytes, index});
  const llvm::Intrinsic::ID id = lanes == 64   ? llvm::Intrinsic::x86_avx512_pshuf_b_512
                                 : lanes == 32 ? llvm::Intrinsic::x86_avx2_pshuf_b
                                               : llvm::Intrinsic::x86_ssse3_pshuf_b_128;
  return e.b.CreateIntrinsic(id, {}, {bytes, index});
}

std::vector<int> lanes_from(int begin, int count, int lanes) {
  std::vector<int> out;
  for (int i = 0; i < count; ++i) out.push_back(begin + i < lanes ? begin + i : -1);
  return out;
}

}  // namespace

llvm::Value* emit_lookup16(Emit& e, const Call& n) {
  const Entries table = entries_of(n);
  const int lanes = n.dtype.lanes;
  llvm::Value* index = value_of(e, n.args[0]);
  if (n.args[0]->dtype.element() != u8)
    fail({.what = text("lookup16 by ", n.args[0]->dtype), .needs = "uint8", .hint = "cast it"});
  index = e.b.CreateAnd(index, llvm::ConstantInt::get(index->getType(), kEntries - 1));
  if (lanes == 1) return e.b.CreateExtractElement(repeated(e, table, kEntries), index);
  // Register by register; what is left of the last one's lanes is not looked at.
  int width = target::vector_lanes(e.level, 8);
  while (width > kEntries && width / 2 >= lanes) width /= 2;
  std::vector<llvm::Value*> parts;
  for (int at = 0; at < lanes; at += width)
    parts.push_back(of_one_register(e, table, e.b.CreateShuffleVector(index, lanes_from(at, width, lanes)), width));
  llvm::Value* out = llvm::concatenateVectors(e.b, parts);
  if (static_cast<int>(parts.size()) * width == lanes) return out;
  return e.b.CreateShuffleVector(out, lanes_from(0, lanes, lanes));
}

}  // namespace sator::codegen
