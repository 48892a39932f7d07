// C[i, j] += A[i, k] * B[j, k] on matrix tiles (AMX): one T.tile_product makes the sums of 32 rows and a panel of 32 columns, in memory,
// and what follows element by element is applied to them there. Groups of panels run in parallel.
// Source: Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter "Intel Advanced Matrix Extensions".
#include <algorithm>
#include <bit>

#include "passes/lower/lower.h"
#include "rules/product.h"
#include "schedule/primitives.h"
#include "tir/nodes.h"

namespace sator::rules {

using namespace schedule;
using namespace tir;

namespace {

constexpr int64_t kRows = 32;           // of a product: two tiles
constexpr int64_t kStepBytes = 64;      // of k, that one instruction sums
constexpr uint64_t kMostTiles = 8;      // of rows, that one thread takes at most before the next panel
constexpr int64_t kGroupsTogether = 4;  // of k, whose sums are scaled and added together

/// How a product passes through the caches. A step reads as many bytes of A as of B, more than the L2 cache gives meanwhile, so a part of
/// a panel stays in the L1 cache while a block of rows passes over it, whose sums wait in memory; and the block's rows stay in half of the
/// L2 cache while panel after panel comes. Measured on an Intel Xeon with AMX, 512 rows of 768 bfloat16 by 2304 columns: 1.3 ms over whole
/// panels, 1.0 ms in two parts. The next part comes from memory, which takes longer than a row tile over this one does, so each row tile
/// asks for its share of it. Measured there with weights that were in no cache: parts of 8 steps 57 ns a step, 41 so; over 3072 bfloat16 70
/// and 51.
struct CacheBlock {
  int64_t tiles;  ///< of rows
  int64_t depth;  ///< of a part of a panel
};
CacheBlock cache_block(const target::CpuLevel& level, int64_t depth, int64_t k_group) {
  const int64_t bytes = 4 / k_group, step = kStepBytes / bytes;
  const int64_t most_steps = level.l1_bytes / 3 / (kPanel * kStepBytes);
  const auto fit = static_cast<uint64_t>(level.l2_bytes / 2 / (depth * bytes * kRows));
  // A power of two: of the 512 rows that a step has, no block is left with few, over which all panels pass too.
  const auto tiles = static_cast<int64_t>(std::bit_floor(std::clamp<uint64_t>(fit, 1, kMostTiles)));
  for (int64_t steps = most_steps; steps >= most_steps / 4; --steps)
    if (depth % (steps * step) == 0) return {tiles, steps * step};
  return {tiles, depth};
}

/// Tells LowerTileProducts that the loop, over k, is one T.tile_product with those inside.
///   ahead   bytes of the right operand that are asked for in advance
void sum_on_tiles(Schedule& s, const Loop& k, int64_t ahead) {
  annotate(s, k, std::string(passes::kOnTiles), schedule::Value(NodeRef(int_imm(ahead))));
}

void make_vectors(Schedule& s, const Loop& columns) {
  const std::vector<Loop> parts = schedule::split(s, columns, Factors{std::nullopt, factor(columns, kPanel)});
  unroll(s, parts[0]);
  vectorize(s, parts[1]);
}

/// Of one row as many panels at once as this CPU has streams.
int64_t columns_together(Schedule& s, const BlockHandle& product, const target::CpuLevel& level) {
  if (most_rows(s, product) != 1) return kPanel;
  return columns_of_one_row(level, as_int(s.get(product).iter_vars[1]->dom->extent), vector_lanes(level, 32));
}

void schedule_sums(Schedule& s, const ProductPlan& plan, const BlockHandle& last, const target::CpuLevel& level) {
  const BlockHandle& product = plan.product;
  const std::vector<Loop> loops = get_loops(s, product);
  const Loop &i = loops[0], &j = loops[1], &k = loops[2];
  const auto rows = most_rows(s, product);
  const int64_t depth = *as_int(s.get(k).extent), width = columns_together(s, product, level);
  const CacheBlock cache = cache_block(level, depth, plan.k_group);
  // Panels that are made on the way are made once, for all rows.
  const bool in_blocks = !plan.operand && !(rows && *rows <= cache.tiles * kRows);
  const bool in_parts = in_blocks && cache.depth < depth;
  const std::vector<Loop> js =
      schedule::split(s, j, Factors{std::nullopt, factor(j, width / kPanel), factor(j, kPanel)});
  const std::vector<Loop> is = schedule::split(
      s, i, Factors{std::nullopt, factor(i, in_blocks ? cache.tiles : 1), factor(i, rows == 1 ? 1 : kRows)});
  const std::vector<Loop> ks = schedule::split(
      s, k, Factors{std::nullopt, factor(k, (in_parts ? cache.depth : depth) / plan.k_group), factor(k, plan.k_group)});
  const Loop &part = ks[0], &group = ks[1];
  if (in_blocks)
    reorder(s, std::vector<Loop>{is[0], js[0], part, is[1], group, is[2], js[1], js[2], ks[2]});
  else
    reorder(s, std::vector<Loop>{js[0], is[0], is[1], part, group, is[2], js[1], js[2], ks[2]});
  const Loop outer = in_blocks ? fuse(s, std::vector<Loop>{is[0], js[0]}) : js[0];
  reverse_compute_at(s, last, in_parts ? outer : is[1], true);
  if (plan.operand) make_panel_wise(s, plan.operand, plan.k_group, plan.k_whole, js[0]);
  unroll(s, js[1]);
  vectorize(s, js[2]);
  if (plan.sums_pairs) sum_in_pairs(s, ks[2]);
  make_vectors(s, get_loops(s, last).back());
  sum_on_tiles(s, group, are_few(rows) ? level.prefetch_iterations * kPanel * 4 : 0);
  if (in_blocks) {
    const int64_t bytes = (in_parts ? cache.depth : depth) * (4 / plan.k_group) * kPanel;
    const int64_t lines = (kPanel + cache.tiles - 1) / cache.tiles;  // a step of a panel has as many as columns
    const NodeRef request = make<Array>(std::vector<NodeRef>{int_imm(bytes), int_imm(lines)});
    annotate(s, is[1], std::string(passes::kAsksAhead), schedule::Value(request));
  }
  parallel(s, outer);
  decompose_reduction(s, product, part);
}

/// Codes less their zero in the panels, where the sums would be corrected by it, each in a vector of its own. A zero is less than the
/// 128 that int8 has below it.
void subtract_zero_early(Schedule& s, const ProductPlan& plan) {
  constexpr int64_t kMostBits = 7;
  const int64_t bits = plan.operand ? code_bits(s.get(plan.operand)) : 0;
  bool looks_up = false;
  if (plan.operand) walk(s.get(plan.operand).body, [&](const Call& c) { looks_up |= c.op == "tir.lookup16"; });
  if (bits == 0 || bits > kMostBits || looks_up || s.get(plan.product).annotations.count(kSubtractsSums) == 0) return;
  unsafe_subtract_early(s, plan.operand, plan.product);
}

/// Sums of groups of k on tiles, a few groups at a time, which are scaled and added to the product's sums in vectors.
void schedule_sums_of_groups(Schedule& s, const ProductPlan& plan, const BlockHandle& last) {
  const BlockHandle &product = plan.product, &partial = plan.partial;
  const std::vector<Loop> loops = get_loops(s, product);
  const Loop &i = loops[0], &j = loops[1], &g = loops[2];
  const auto groups = as_int(s.get(g).extent);
  int64_t together = kGroupsTogether;
  while (!groups || *groups % together != 0) together /= 2;  // ends at 1
  const std::vector<Loop> js = schedule::split(s, j, Factors{std::nullopt, factor(j, kPanel)});
  const std::vector<Loop> is = schedule::split(s, i, Factors{std::nullopt, factor(i, kRows)});
  const std::vector<Loop> gs = schedule::split(s, g, Factors{std::nullopt, factor(g, together)});
  reorder(s, std::vector<Loop>{js[0], is[0], gs[0], is[1], gs[1], js[1]});
  reverse_compute_at(s, last, is[0], true);
  // [i, j, g] lies as [g, i, j].
  auto by_group = [](const std::vector<VarRef>& at) { return std::vector<Expr>{at[2], at[0], at[1]}; };
  const DType index = s.get(partial).iter_vars[0]->var->dtype;
  transform_layout(
      s, partial, BufferSelector{true, int64_t{0}}, arith::index_map(3, by_group, index), schedule::Value(), false);
  compute_at(s, partial, gs[0], true);
  set_scope(s, partial, BufferSelector{true, int64_t{0}}, std::string("local"));
  const std::vector<Loop> own = get_loops(s, partial);
  const size_t first = own.size() - 4;
  const std::vector<Loop> own_js = schedule::split(s, own[first + 1], Factors{std::nullopt, factor(j, kPanel)});
  const std::vector<Loop> ks = schedule::split(s, own.back(), Factors{std::nullopt, factor(own.back(), plan.k_group)});
  reorder(s, std::vector<Loop>{own[first + 2], ks[0], own[first], own_js[0], own_js[1], ks[1]});
  unroll(s, own_js[0]);
  vectorize(s, own_js[1]);
  const Loop& sums = together > 1 ? own[first + 2] : ks[0];
  sum_on_tiles(s, sums, 0);
  if (plan.operand) make_panel_wise(s, plan.operand, plan.k_group, plan.k_whole, js[0]);
  unroll(s, gs[1]);
  vectorize(s, js[1]);
  make_vectors(s, get_loops(s, last).back());
  parallel(s, js[0]);
  decompose_reduction(s, product, gs[0]);
  decompose_reduction(s, partial, sums);
}

}  // namespace

bool fits_matrix_tiles(const Block& product, const target::CpuLevel& level) {
  const VarRef &row = product.iter_vars[0]->var, &column = product.iter_vars[1]->var,
               &k = product.iter_vars.back()->var;
  const auto columns = as_int(product.iter_vars[1]->dom->extent);
  const int64_t depth = as_int(product.iter_vars.back()->dom->extent).value_or(0);
  if (!level.tiles || !columns || *columns < kPanel || depth == 0) return false;
  bool found = false, good = true;
  walk(product.body, [&](const BufferLoad& n) {
    const auto uses = [&](const VarRef& v) {
      return std::ranges::any_of(n.indices, [&](const Expr& i) { return uses_var(i, *v); });
    };
    if (n.buffer == product.writes[0]->buffer || uses(column) || !uses(row)) return;
    found = true;
    good &= uses_var(n.indices.back(), *k) && !uses_var(n.indices.back(), *row);
  });
  return found && good;
}

void schedule_on_matrix_tiles(Schedule& s, const ProductPlan& plan, const target::CpuLevel& level) {
  inline_all(s, {plan.operand, plan.partial});
  const size_t made = (plan.operand ? 1 : 0) + (plan.partial ? 1 : 0);
  const BlockHandle last = block_that_stores(s, plan.product, 1 + made);
  if (plan.partial) {
    subtract_zero_early(s, plan);
    schedule_sums_of_groups(s, plan, last);
  } else {
    schedule_sums(s, plan, last, level);
  }
}

}  // namespace sator::rules
