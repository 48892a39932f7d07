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

constexpr int64_t kRows = 32;               // of a product: two tiles
constexpr int64_t kStepBytes = 64;          // of k, that one instruction sums
constexpr uint64_t kMostTiles = 8;          // of rows, that one thread takes at most before the next panel
constexpr int64_t kMostRowsOfGroups = 512;  // the same, in rows, of a product that sums groups of k
constexpr int64_t kGroupsTogether = 4;      // of k, whose sums are in tiles and memory at once

/// So many tiles of rows fill half of the L2 cache at most. A power of two: of the 512 rows that a step has, no block is left with few,
/// over which all panels pass too.
int64_t tiles_in_l2(const target::CpuLevel& level, int64_t bytes, uint64_t most) {
  const auto fit = static_cast<uint64_t>(level.l2_bytes / 2 / bytes);
  return static_cast<int64_t>(std::bit_floor(std::clamp<uint64_t>(fit, 1, most)));
}

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
  const int64_t tiles = tiles_in_l2(level, kRows * depth * bytes, kMostTiles);
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

/// How sums of groups of k become the product's: a tile of them at a time.
struct GroupTile {
  int64_t rows, columns;
  bool in_registers;  ///< the product's sums, over all groups, while tiles make the next groups' sums
};

/// Sixteen rows and columns of the product's sums fit in registers. Where the use of a group's sums reads values of its own for each
/// row, as its scale is, it is read once for a whole panel, and the product's sums are in memory. Measured on an Intel Xeon with
/// AMX, 512 rows by a panel over 32 int8: 83 to 95 ns by 32 rows and columns, 65 to 69 in registers; of Q8_0, which reads sums of rows, 82 and 86.
GroupTile tile_of_groups(const Block& product, const Block& partial) {
  const VarRef& row = product.iter_vars[0]->var;
  bool reads_rows = false;
  walk(product.body, [&](const BufferLoad& n) {
    if (n.buffer == product.writes[0]->buffer || n.buffer == partial.writes[0]->buffer) return;
    reads_rows |= std::ranges::any_of(n.indices, [&](const Expr& i) { return uses_var(i, *row); });
  });
  return reads_rows ? GroupTile{kRows, kPanel, false} : GroupTile{kRows / 2, kPanel / 2, true};
}

/// The rows of A in the order of tiles, [rows / tile][groups][tile][k of a group], zeros behind the last row: what a tile loads lies
/// side by side. Nothing is done where A is not read as rows by k.
void pack_rows(Schedule& s, const BlockHandle& partial, int64_t tile) {
  const Block& block = s.get(partial);
  const VarRef &row = block.iter_vars[0]->var, &column = block.iter_vars[1]->var;
  std::optional<int64_t> read;
  for (size_t r = 0; r < block.reads.size(); ++r) {
    const auto& region = block.reads[r]->region;
    if (region.size() == 2 && region[0]->min.get() == row.get() && !uses_var(region[1]->min, *column))
      read = static_cast<int64_t>(r);
  }
  if (!read) return;
  const int64_t depth = *as_int(block.iter_vars.back()->dom->extent);
  const DType index = row->dtype;
  const BlockHandle packed = cache_read(s, partial, BufferSelector{false, *read}, std::string("global"));
  const Expr zero = constant(0, s.get(packed).writes[0]->buffer->dtype);
  auto in_tiles = [&](const std::vector<VarRef>& at) {
    return std::vector<Expr>{
        floordiv(at[0], tile), floordiv(at[1], depth), floormod(at[0], tile), floormod(at[1], depth)};
  };
  auto padding = [&](const std::vector<VarRef>&) { return std::vector<Expr>{zero}; };
  transform_layout(s,
                   packed,
                   BufferSelector{true, int64_t{0}},
                   arith::index_map(2, in_tiles, index),
                   schedule::Value(arith::index_map(4, padding, index)),
                   false);
  const std::vector<Loop> own = get_loops(s, packed);
  vectorize(s, schedule::split(s, own.back(), Factors{std::nullopt, factor(own.back(), depth)})[1]);
  parallel(s, own.front());
}

/// A panel comes from memory while rows pass over the one before. Without it 14 % of a product's time over 3072 codes of 4 bits is waiting
/// for the first tile's panel where there are 128 rows (an Intel Xeon with AMX), which so many iterations are enough for.
void ask_for_next_panel(Schedule& s, const ProductPlan& plan, const Loop& tiles) {
  constexpr int64_t kTilesThatAsk = 8;
  const Block &product = s.get(plan.product), &codes = s.get(plan.operand ? plan.operand : plan.partial);
  std::vector<std::string> names = read_by_columns(codes, codes.iter_vars[plan.operand ? 0 : 1]->var);
  std::ranges::copy(read_by_columns(product, product.iter_vars[1]->var), std::back_inserter(names));
  ask_for(s, names, kTilesThatAsk, tiles, passes::kPrefetchForNext);
}

/// Sums of groups of k on tiles, a few groups at a time, which are scaled and added to the product's sums in vectors.
void schedule_sums_of_groups(Schedule& s, const ProductPlan& plan, const BlockHandle& last,
                             const target::CpuLevel& level) {
  const BlockHandle &product = plan.product, &partial = plan.partial;
  const GroupTile tile = tile_of_groups(s.get(product), s.get(partial));
  const int64_t group_bytes = 4 / plan.k_group * *as_int(s.get(partial).iter_vars.back()->dom->extent);
  pack_rows(s, partial, tile.rows);
  // Registers have no index: what reads the sums in a loop reads a copy.
  const BlockHandle copy =
      tile.in_registers ? cache_write(s, product, BufferSelector{true, int64_t{0}}, std::string("local")) : nullptr;
  const std::vector<Loop> loops = get_loops(s, product);
  const Loop &i = loops[0], &j = loops[1], &g = loops[2];
  const auto groups = as_int(s.get(g).extent), rows = most_rows(s, product);
  int64_t together = kGroupsTogether;
  while (!groups || *groups % together != 0) --together;  // ends at 1
  const auto most = static_cast<uint64_t>(kMostRowsOfGroups / tile.rows);
  int64_t tiles = tiles_in_l2(level, tile.rows * groups.value_or(1) * group_bytes, most);
  if (rows) tiles = std::min(tiles, (*rows + tile.rows - 1) / tile.rows);
  const std::vector<Loop> js =
      schedule::split(s, j, Factors{std::nullopt, factor(j, kPanel / tile.columns), factor(j, tile.columns)});
  const std::vector<Loop> is = schedule::split(s, i, Factors{std::nullopt, factor(i, tiles), factor(i, tile.rows)});
  const std::vector<Loop> gs = schedule::split(s, g, Factors{std::nullopt, factor(g, together)});
  reorder(s, std::vector<Loop>{is[0], js[0], is[1], js[1], gs[0], is[2], gs[1], js[2]});
  if (tile.in_registers)
    reorder(s, std::vector<Loop>{gs[1], is[2]});  // sums in memory are loaded once for all groups together
  const Loop panels = fuse(s, std::vector<Loop>{is[0], js[0]});
  if (copy) reverse_compute_at(s, copy, js[1], true);
  reverse_compute_at(s, last, js[1], true);
  // [i, j, g] lies as [g, i, j].
  auto by_group = [](const std::vector<VarRef>& at) { return std::vector<Expr>{at[2], at[0], at[1]}; };
  const DType index = s.get(partial).iter_vars[0]->var->dtype;
  transform_layout(
      s, partial, BufferSelector{true, int64_t{0}}, arith::index_map(3, by_group, index), schedule::Value(), false);
  compute_at(s, partial, gs[0], true);
  set_scope(s, partial, BufferSelector{true, int64_t{0}}, std::string("local"));
  const std::vector<Loop> own = get_loops(s, partial);
  const size_t first = own.size() - 4;
  const std::vector<Loop> ks = schedule::split(s, own.back(), Factors{std::nullopt, factor(own.back(), plan.k_group)});
  reorder(s, std::vector<Loop>{own[first + 2], ks[0], own[first], own[first + 1], ks[1]});
  vectorize(s, own[first + 1]);
  const Loop& sums = together > 1 ? own[first + 2] : ks[0];
  sum_on_tiles(s, sums, 0);
  if (plan.operand) make_panel_wise(s, plan.operand, plan.k_group, plan.k_whole, panels);
  unroll(s, gs[1]);
  vectorize(s, js[2]);
  if (tile.in_registers) {
    unroll(s, is[2]);
    const std::vector<Loop> of_copy = get_loops(s, copy);
    unroll(s, of_copy[of_copy.size() - 2]);
    vectorize(s, of_copy.back());
    annotate(s, gs[0], std::string(passes::kOverlapsUse), schedule::Value(NodeRef(int_imm(1))));
  }
  make_vectors(s, get_loops(s, last).back());
  ask_for_next_panel(s, plan, js[1]);
  parallel(s, panels);
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
    schedule_sums_of_groups(s, plan, last, level);
  } else {
    schedule_sums(s, plan, last, level);
  }
}

}  // namespace sator::rules
