// C[i, j] += int32(A[i, k]) * int32(B[j, k]) of bytes: LowerDotProducts makes one instruction of four products.
#include <algorithm>
#include <numeric>

#include "rules/product.h"
#include "schedule/analysis.h"
#include "tir/nodes.h"

namespace sator::rules {

using namespace schedule;
using namespace tir;

namespace {

constexpr int64_t kDot = 4;  // products of one instruction

/// An 8-bit integer widened to 32 bits.
bool is_widened_byte(const Expr& e) {
  const Cast* c = e.as<Cast>();
  return c && c->dtype == i32 && c->value->dtype.is_integer() && c->value->dtype.bits == 8;
}

bool multiplies_bytes(const Block& block) {
  const BufferStore* st = block.body.as<BufferStore>();
  const Add* sum = st ? st->value.as<Add>() : nullptr;
  for (const Expr& term : {sum ? sum->a : nullptr, sum ? sum->b : nullptr}) {
    const Mul* m = term ? term.as<Mul>() : nullptr;
    if (m && is_widened_byte(m->a) && is_widened_byte(m->b)) return true;
  }
  return false;
}

/// The block of sums over groups, P[i, j, g] += A[i, k] * B[j, k] of bytes, that the product adds up; null if there is none.
BlockHandle partial_block(const Schedule& s, const BlockHandle& product) {
  ScopeAnalysis scope(s, s.sites()[s.site(product)].scope);
  for (int p : scope.producers(s.site(product))) {
    const Block& block = *s.sites()[p].realize()->block;
    bool groups = block.init && block.iter_vars.size() == 4 && block.iter_vars.back()->kind == IterKind::reduce &&
                  scope.consumers(p).size() == 1;
    for (size_t i = 0; groups && i < 3; ++i)
      groups = equal(block.iter_vars[i]->dom->extent, s.get(product).iter_vars[i]->dom->extent);
    if (groups && multiplies_bytes(block)) return block.name;
  }
  return nullptr;
}

/// Whether what the block reads is weights in panels.
bool lies_in_panels(const Block& operand) {
  return std::ranges::any_of(operand.reads, [](const BufferRegionRef& r) {
    const std::vector<Expr>& shape = r->buffer->shape;
    return shape.size() == 3 && r->buffer->dtype == u32 && is_int(shape.back(), kPanel);
  });
}

/// So many columns, where the operand has whole words of them; else 1.
int64_t whole_columns(const Schedule& s, const BlockHandle& operand, int64_t whole) {
  const auto columns = as_int(s.get(operand).iter_vars[1]->dom->extent);
  return columns && whole > kDot && *columns % whole == 0 ? whole : 1;
}

}  // namespace

MaybeReason schedule_integer_product(Schedule& s, const target::CpuLevel& level) {
  ProductPlan plan{.product = product_block(s), .k_group = kDot};
  if (plan.product && !multiplies_bytes(s.get(plan.product))) {
    plan.partial = partial_block(s, plan.product);
    if (!plan.partial) plan.product = nullptr;
  }
  if (!plan.product)
    return Reason{
        .what = "no block sums products of bytes over one axis",
        .needs = "C[i, j] += int32(A[.., k]) * int32(B[.., k]) of 8-bit integers, or such sums of groups of k"};
  const BlockHandle& dots = plan.partial ? plan.partial : plan.product;
  const Block& block = s.get(dots);
  auto columns = as_int(block.iter_vars[1]->dom->extent), depth = as_int(block.iter_vars.back()->dom->extent);
  if (!depth || *depth % kDot != 0)
    return Reason{.what = text("a sum runs over ", block.iter_vars.back()->dom->extent, " products"),
                  .needs = text("a multiple of ", kDot)};
  plan.operand = operand_block(s, dots, Side::right);
  const int64_t bits = plan.operand ? code_bits(s.get(plan.operand)) : 0;
  const bool few_rows = are_few(most_rows(s, dots));
  const bool words_in_panels = bits == 8 && lies_in_panels(s.get(plan.operand));
  // Bytes lie in words as they are: reading them there costs nothing. For few rows other codes are cut out on the way.
  if (few_rows || !columns || *columns % kPanel != 0 || bits == 8) plan.operand = nullptr;
  const bool on_tiles = !few_rows && (plan.operand || words_in_panels) && fits_matrix_tiles(block, level);
  plan.every_second = few_rows && bits == 4 && *depth % (2 * kDot) == 0;
  // As many codes as fill whole words: then shifts and words of each four are constants.
  const int64_t whole = bits > 0 && bits < 8 ? 32 / std::gcd(bits, int64_t{32}) : 1;
  if (few_rows && !plan.every_second && *depth % whole == 0) plan.k_unroll = whole;
  if (plan.operand) plan.k_whole = whole_columns(s, plan.operand, whole);
  try {
    if (on_tiles)
      schedule_on_matrix_tiles(s, plan, level);
    else
      schedule_product_tiles(s, plan, level);
  } catch (const Error& e) {
    return e.reason;
  }
  return {};
}

}  // namespace sator::rules
