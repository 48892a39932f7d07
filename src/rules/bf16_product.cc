// C[i, j] += float32(A[i, k]) * float32(B[j, k]) of bfloat16: LowerDotProducts makes one instruction of two products.
#include <algorithm>
#include <array>

#include "rules/product.h"
#include "schedule/primitives.h"
#include "tir/nodes.h"

namespace sator::rules {

using namespace schedule;
using namespace tir;

namespace {

constexpr int64_t kPair = 2;        // products of one instruction
constexpr int64_t kTileDepth = 32;  // of one instruction on tiles

/// The bfloat16 that is widened to float32, as it is read; null if e is something else.
const BufferLoad* widened_bf16(const Expr& e) {
  const Cast* c = e.as<Cast>();
  const BufferLoad* load = c && c->dtype == f32 ? c->value.as<BufferLoad>() : nullptr;
  return load && load->dtype == bf16 ? load : nullptr;
}

/// The product whose sum the block stores; null if there is none.
const Mul* summed_product(const Block& block) {
  const BufferStore* st = block.body.as<BufferStore>();
  const Add* sum = st ? st->value.as<Add>() : nullptr;
  if (!sum) return nullptr;
  return sum->a.as<Mul>() ? sum->a.as<Mul>() : sum->b.as<Mul>();
}

/// Whether the last index of what is read with the columns says which of a pair of k it is.
bool lies_in_pairs(const Block& block) {
  const Mul* m = summed_product(block);
  const VarRef &column = block.iter_vars[1]->var, &k = block.iter_vars[2]->var;
  return std::ranges::any_of(std::array{m->a, m->b}, [&](const Expr& side) {
    const BufferLoad* load = widened_bf16(side);
    const FloorMod* which = load->indices.back().as<FloorMod>();
    return uses_var(side, *column) && which && which->a.get() == k.get() && is_int(which->b, kPair);
  });
}

}  // namespace

BlockHandle bf16_product_block(Schedule& s) {
  const BlockHandle product = product_block(s);
  if (!product) return nullptr;
  for (Side side : {Side::left, Side::right})
    if (const BlockHandle made = operand_block(s, product, side)) attempt([&] { compute_inline(s, made); });
  const Block& block = s.get(product);
  const Mul* m = summed_product(block);
  const auto depth = as_int(block.iter_vars[2]->dom->extent);
  const bool sums_pairs = m && widened_bf16(m->a) && widened_bf16(m->b) && depth && *depth % kPair == 0;
  return sums_pairs ? product : nullptr;
}

MaybeReason schedule_bf16_product(Schedule& s, const target::CpuLevel& level) {
  const BlockHandle product = bf16_product_block(s);
  if (!product || !lies_in_pairs(s.get(product)))
    return Reason{.what = "no block sums products of bfloat16 in pairs",
                  .needs = "C[i, j] += float32(A[.., k]) * float32(B[.., k // 2, .., k % 2])"};
  const ProductPlan plan{.product = product, .k_group = kPair, .sums_pairs = true};
  const Block& block = s.get(product);
  try {
    // A row has the same bits in any number of rows, so one row alone is summed as on tiles, too.
    if (*as_int(block.iter_vars[2]->dom->extent) % kTileDepth == 0 && fits_matrix_tiles(block, level))
      schedule_on_matrix_tiles(s, plan, level);
    else
      schedule_product_tiles(s, plan, level);
  } catch (const Error& e) {
    return e.reason;
  }
  return {};
}

}  // namespace sator::rules
