// C[i, j] += A[i, k] * B[j, k] in registers: the sums of a tile of rows x columns stay there over the whole of k, and
// what follows element by element is applied to the tile before it is stored. Groups of panels run in parallel.
// Source: Goto & van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
#include <algorithm>
#include <numeric>
#include <utility>

#include "passes/lower/lower.h"
#include "rules/product.h"
#include "schedule/primitives.h"
#include "tir/nodes.h"

namespace sator::rules {

using namespace schedule;
using namespace tir;

int64_t columns_of_one_row(const target::CpuLevel& level, std::optional<int64_t> columns, int64_t lanes) {
  const int64_t most = std::min<int64_t>(level.weight_streams, 8 * lanes / kPanel);
  for (int64_t width = most * kPanel; columns && width > kPanel; width /= 2)
    if (*columns % width == 0 && *columns / width >= 2) return width;
  return kPanel;
}

void make_panel_wise(Schedule& s, const BlockHandle& operand, int64_t group, int64_t whole, const Loop& at) {
  auto panel = [&](const std::vector<VarRef>& i) {
    std::vector<Expr> index = {floordiv(i[0], kPanel), floordiv(i[1], group), floormod(i[0], kPanel)};
    if (group > 1) index.push_back(floormod(i[1], group));
    return index;
  };
  DType index = s.get(operand).iter_vars[0]->var->dtype;
  transform_layout(
      s, operand, BufferSelector{true, int64_t{0}}, arith::index_map(2, panel, index), schedule::Value(), false);
  compute_at(s, operand, at, true);
  std::vector<Loop> own = get_loops(s, operand);
  Loop column = own[own.size() - 2], k = own[own.size() - 1];
  std::vector<Loop> columns = schedule::split(s, column, Factors{std::nullopt, factor(column, kPanel)});
  if (group == 1) {
    reorder(s, std::vector<Loop>{columns[0], k, columns[1]});
    vectorize(s, columns[1]);
    return;
  }
  if (whole > 1) {  // LowerDotProducts takes those of a group out of words together
    std::vector<Loop> ks = schedule::split(s, k, Factors{std::nullopt, factor(k, whole / group), factor(k, group)});
    reorder(s, std::vector<Loop>{columns[0], ks[0], ks[1], columns[1], ks[2]});
    unroll(s, ks[1]);
    vectorize(s, columns[1]);
    return;
  }
  std::vector<Loop> ks = schedule::split(s, k, Factors{std::nullopt, factor(k, group)});
  reorder(s, std::vector<Loop>{columns[0], ks[0], columns[1], ks[1]});
  vectorize(s, fuse(s, std::vector<Loop>{columns[1], ks[1]}));
}

BlockHandle block_that_stores(Schedule& s, const BlockHandle& product, size_t own_blocks) {
  std::vector<BlockHandle> consumers = get_consumers(s, product);
  if (consumers.size() != 1 || leaf_blocks(s).size() != own_blocks + 1 || s.get(consumers[0]).init)
    return cache_write(s, product, BufferSelector{true, int64_t{0}}, std::string("local"));
  set_scope(s, product, BufferSelector{true, int64_t{0}}, std::string("local"));
  return consumers[0];
}

std::vector<std::string> read_by_columns(const Block& block, const VarRef& column) {
  std::vector<std::string> out;
  for (const BufferRegionRef& r : block.reads) {
    const bool follows = r->region.size() >= 2 && uses_var(r->region[0]->min, *column);
    if (follows && r->buffer != block.writes[0]->buffer) out.push_back(r->buffer->name);
  }
  return out;
}

void ask_for(Schedule& s, const std::vector<std::string>& buffers, int64_t iterations, const Loop& loop,
             const char* key) {
  std::vector<NodeRef> requests;
  for (const std::string& name : buffers)
    requests.push_back(make<Array>(std::vector<NodeRef>{string_imm(name), int_imm(iterations)}));
  if (!requests.empty())
    annotate(s, loop, std::string(key), schedule::Value(NodeRef(make<Array>(std::move(requests)))));
}

void sum_in_pairs(Schedule& s, const Loop& k) {
  annotate(s, k, std::string(passes::kSumsPairs), schedule::Value(NodeRef(int_imm(1))));
}

namespace {

/// Rows and columns whose sums are kept in registers. Three quarters of the registers hold sums, the rest operands.
struct Tile {
  int64_t rows, columns;
};

/// Elements of a vector of the block's sums. Narrow sums are made in 32 bits.
int64_t lanes_of_sums(const Schedule& s, const BlockHandle& block, const target::CpuLevel& level) {
  return vector_lanes(level, std::max<int>(32, s.get(block).writes[0]->buffer->dtype.bits));
}

/// A tile of many rows: two vectors of columns where there are 16 registers, four where there are 32, which needs the
/// fewest loads per multiplication while the rows' strides, often multiples of 4 KB, still fit the ways of the L1 cache.
///   lanes  elements of a vector
///   sums   of each element, which share the registers
Tile tile_of_many(const target::CpuLevel& level, std::optional<int64_t> columns, int64_t lanes, int64_t sums) {
  const int64_t vectors = level.vector_registers >= 32 && sums == 1 ? 4 : 2;
  int64_t width = lanes * vectors;
  if (width > kPanel && !(columns && *columns % width == 0)) width = kPanel;
  return {level.vector_registers * 3 / 4 / (width / lanes) / sums, width};
}

/// How many buffers a product reads beside its left operand and the sums: codes and their scales are two.
int64_t weight_buffers(Schedule& s, const BlockHandle& product) {
  const Block& block = s.get(product);
  int64_t buffers = -1;
  for (const BufferRegionRef& read : block.reads) buffers += read->buffer != block.writes[0]->buffer;
  return buffers;
}

/// One row alone has few sums. It takes as many columns as keep the multipliers busy, eight vectors; where weights have scales one panel,
/// for the scales are a stream of their own (Zen 5, a Llama of 1.24 B parameters in int4: 56 tokens/s with two panels, 60 with one).
Tile tile_of_one(const target::CpuLevel& level, std::optional<int64_t> columns, int64_t lanes, bool has_scales) {
  return {1, has_scales ? kPanel : columns_of_one_row(level, columns, lanes)};
}

/// A few rows, at most two tiles of them, so that a code is cut out of its word twice at most. All kFewRows in one tile would
/// fit the registers too, but every height of a tile is code of its own, and that doubles the time of compilation.
Tile tile_of_few(const target::CpuLevel& level, int64_t lanes, int64_t sums) {
  return {(kFewRows + 1) / 2 / sums, lanes * (level.vector_registers >= 32 ? 2 : 1)};
}

/// For so many rows; `lanes` and `sums` as in tile_of_many.
Tile tile_of(const target::CpuLevel& level, std::optional<int64_t> rows, std::optional<int64_t> columns, int64_t lanes,
             int64_t sums, bool has_scales) {
  return rows == 1       ? tile_of_one(level, columns, lanes, has_scales)
         : are_few(rows) ? tile_of_few(level, lanes, sums)
                         : tile_of_many(level, columns, lanes, sums);
}

constexpr int64_t kTilesInBlock = 8;  // tiles of rows that one thread takes at least

/// A group of panels over the whole of k fits the L2 cache beside the rows up to here; a deeper product is summed in parts, for
/// few rows too, where only the order of the sum matters: a row has the same bits in any number of rows.
constexpr int64_t kDeepest = 4096;
constexpr int64_t kDepthOfPart = 2048;
constexpr int64_t kTilesInDeepBlock = 16;

/// Which read of a product is the right operand: it follows the columns.
std::optional<int64_t> read_of_right(const Block& product) {
  for (size_t r = 0; r < product.reads.size(); ++r)
    for (const RangeRef& range : product.reads[r]->region)
      if (uses_var(range->min, *product.iter_vars[1]->var) && product.reads[r]->buffer != product.writes[0]->buffer)
        return static_cast<int64_t>(r);
  return {};
}

/// Whether the rows of a right operand [k, j] lie a multiple of 4 KB apart, and are read often enough that a copy of it pays. Then the
/// lines of a panel share the few sets of each cache that have such addresses.
bool packing_pays(const Block& product) {
  constexpr int64_t kWay = 4096, kLeastReuse = 64, kDeep = 64;
  const auto rows = as_int(product.iter_vars[0]->dom->extent), depth = as_int(product.iter_vars[2]->dom->extent);
  const std::optional<int64_t> read = read_of_right(product);
  if (!read || !rows || *rows < kLeastReuse || !depth || *depth < kDeep) return false;
  const Buffer& right = *product.reads[static_cast<size_t>(*read)]->buffer;
  const auto columns = right.shape.size() == 2 ? as_int(right.shape[1]) : std::nullopt;
  const auto own_columns = as_int(product.iter_vars[1]->dom->extent);
  return columns && columns == own_columns && right.strides.empty() && *columns % kPanel == 0 &&
         *columns * right.dtype.bytes() % kWay == 0;
}

/// The right operand [k, j] in panels [j / 32][k][32], made before the product. The block that makes it.
BlockHandle pack_right(Schedule& s, const BlockHandle& product) {
  const BlockHandle pack = cache_read(s,
                                      product,
                                      BufferSelector{false, *read_of_right(s.get(product))},
                                      std::string("global"),
                                      std::vector<BlockHandle>{});
  auto panels = [](const std::vector<VarRef>& i) {
    return std::vector<Expr>{floordiv(i[1], kPanel), i[0], floormod(i[1], kPanel)};
  };
  const DType index = s.get(pack).iter_vars[0]->var->dtype;
  transform_layout(
      s, pack, BufferSelector{true, int64_t{0}}, arith::index_map(2, panels, index), schedule::Value(), false);
  const std::vector<Loop> loops = get_loops(s, pack);
  const std::vector<Loop> columns = schedule::split(s, loops[1], Factors{std::nullopt, factor(loops[1], kPanel)});
  reorder(s, std::vector<Loop>{columns[0], loops[0], columns[1]});
  vectorize(s, columns[1]);
  parallel(s, columns[0]);
  return pack;
}

/// Rows of the left operand, where a tile of them begins.
void make_rows(Schedule& s, const BlockHandle& left, int64_t vector, const Loop& at) {
  compute_at(s, left, at, true);
  Loop k = get_loops(s, left).back();
  vectorize(s, schedule::split(s, k, Factors{std::nullopt, factor(k, vector)})[1]);
}

/// The loops over k: outside of a tile, of which the first may go over groups of one scale, then inside of it, written out; the
/// last one is what one instruction sums.
struct DepthLoops {
  std::vector<Loop> outer;
  std::vector<Loop> middle, inner;
};
DepthLoops split_depth(Schedule& s, const Loop& k, const ProductPlan& plan) {
  if (plan.every_second) {
    std::vector<Loop> ks = schedule::split(s, k, Factors{std::nullopt, factor(k, plan.k_group), factor(k, 2)});
    return {{ks[0]}, {ks[2]}, {ks[1]}};
  }
  if (plan.k_group > 1 && plan.k_unroll > plan.k_group) {
    std::vector<Loop> ks =
        schedule::split(s, k, Factors{std::nullopt, factor(k, plan.k_unroll / plan.k_group), factor(k, plan.k_group)});
    return {{ks[0]}, {ks[1]}, {ks[2]}};
  }
  if (plan.k_group > 1) {
    std::vector<Loop> ks = schedule::split(s, k, Factors{std::nullopt, factor(k, plan.k_group)});
    return {{ks[0]}, {}, {ks[1]}};
  }
  if (plan.k_unroll > 1 && plan.k_shared > plan.k_unroll) {
    std::vector<Loop> ks = schedule::split(
        s, k, Factors{std::nullopt, factor(k, plan.k_shared / plan.k_unroll), factor(k, plan.k_unroll)});
    return {{ks[0], ks[1]}, {ks[2]}, {}};
  }
  if (plan.k_unroll > 1) {
    std::vector<Loop> ks = schedule::split(s, k, Factors{std::nullopt, factor(k, plan.k_unroll)});
    return {{ks[0]}, {ks[1]}, {}};
  }
  return {{k}, {}, {}};
}

/// The order of the loops below `outer`: k, rows, columns, what one instruction sums.
void order_tile(Schedule& s, const DepthLoops& k, std::vector<Loop> outer, const std::vector<Loop>& tile) {
  outer.insert(outer.end(), k.outer.begin(), k.outer.end());
  outer.insert(outer.end(), k.middle.begin(), k.middle.end());
  outer.insert(outer.end(), tile.begin(), tile.end());
  outer.insert(outer.end(), k.inner.begin(), k.inner.end());
  reorder(s, outer);
  for (const Loop& l : k.middle) unroll(s, l);
}

/// The sums of one group of k, for the rows and columns of a tile, in front of what adds them up. The loop over k.
///   rows   which of the block's own loops goes over rows; the next one goes over columns
Loop tile_partial(Schedule& s, const ProductPlan& plan, size_t rows, int64_t vector, const Loop& at) {
  const BlockHandle& partial = plan.partial;
  compute_at(s, partial, at, true);
  set_scope(s, partial, BufferSelector{true, int64_t{0}}, std::string("local"));
  std::vector<Loop> loops = get_loops(s, partial);
  const size_t own = loops.size() - 4;
  Loop i = loops[own + rows], j = loops[own + rows + 1], k = loops.back();
  std::vector<Loop> js = schedule::split(s, j, Factors{std::nullopt, factor(j, vector)});
  DepthLoops ks = split_depth(s, k, plan);
  order_tile(s, ks, {}, {i, js[0], js[1]});
  unroll(s, i);
  unroll(s, js[0]);
  vectorize(s, js[1]);
  return ks.outer.front();
}

/// Asks for the right operand in advance, where the level's CPUs gain by it. Few rows wait for memory: each iteration of k asks for what a
/// later one reads. Of many rows the first tile would wait for its panels, which all others find in the L2 cache: the tiles of a block ask
/// for the next panels meanwhile. Measured on an Intel Xeon with AMX, weights in no cache: 32 rows of 768 float32 by 3072 0.78 -> 0.66 ms,
/// 128 rows 2.0 -> 1.85, 512 rows the same.
void prefetch_weights(Schedule& s, const BlockHandle& block, const Loop& k, const target::CpuLevel& level) {
  if (level.prefetch_iterations == 0) return;
  const Block& product = s.get(block);
  const std::vector<std::string> names = read_by_columns(product, product.iter_vars[1]->var);
  if (are_few(most_rows(s, block)))
    ask_for(s, names, level.prefetch_iterations, k, passes::kSoftwarePrefetch);
  else
    ask_for(s, names, kTilesInBlock, k, passes::kPrefetchForNext);
}

/// Whether the panels of one group are too deep to stay in the L2 cache while many tiles of rows pass over them.
bool is_deep(const Schedule& s, const ProductPlan& plan) {
  auto depth = as_int(s.get(plan.product).iter_vars[2]->dom->extent);
  return !plan.operand && !plan.partial && plan.k_group == 1 && plan.k_unroll == 1 && depth && *depth > kDeepest &&
         *depth % kDepthOfPart == 0;
}

/// The sums of a block of rows stay in the L1 cache, and each part of k adds to them: panels of that depth meet all tiles of
/// the block before the next part comes.
void schedule_deep_product(Schedule& s, const BlockHandle& block, const target::CpuLevel& level) {
  inline_all(s, {block});
  const std::optional<int64_t> rows = most_rows(s, block);
  std::vector<Loop> whole = get_loops(s, block);
  BlockHandle partial =
      rfactor(s, schedule::split(s, whole[2], Factors{std::nullopt, factor(whole[2], kDepthOfPart)})[0], 2);
  BlockHandle last = block_that_stores(s, block, 2);
  std::vector<Loop> loops = get_loops(s, block);
  Loop i = loops[0], j = loops[1], k = loops[2];
  Tile tile = tile_of(level, rows, as_int(s.get(j).extent), lanes_of_sums(s, block, level), 1, false);
  const int64_t vector = std::min(tile.columns, kPanel), group = std::max(tile.columns, kPanel);
  std::vector<Loop> js = schedule::split(
      s,
      j,
      Factors{std::nullopt, factor(j, group / tile.columns), factor(j, tile.columns / vector), factor(j, vector)});
  std::vector<Loop> is = schedule::split(
      s, i, Factors{std::nullopt, factor(i, are_few(rows) ? 1 : kTilesInDeepBlock), factor(i, tile.rows)});
  reorder(s, std::vector<Loop>{js[0], is[0], k, js[1], is[1], is[2], js[2], js[3]});
  Loop outer = is_one(s.get(js[0]).extent) ? is[0] : fuse(s, std::vector<Loop>{js[0], is[0]});
  reverse_compute_at(s, last, outer, true);
  Loop partial_k = tile_partial(s, {.partial = partial}, 1, vector, is[1]);
  unroll(s, is[2]);
  unroll(s, js[2]);
  vectorize(s, js[3]);
  Loop column = get_loops(s, last).back();
  vectorize(s, schedule::split(s, column, Factors{std::nullopt, factor(column, vector)})[1]);
  if (are_few(rows)) prefetch_weights(s, partial, partial_k, level);
  parallel(s, outer);
  decompose_reduction(s, block, k);
  decompose_reduction(s, partial, partial_k);
}

/// Why a right operand that nobody has packed is not read as rows of panels; nothing if it is, or if its blocks make it.
MaybeReason not_in_panels(const Block& product, std::optional<int64_t> columns) {
  if (!columns) return {};
  const VarRef &j = product.iter_vars[1]->var, &k = product.iter_vars[2]->var;
  bool along_depth = false, along_columns = false;
  walk(product.body, [&](const BufferLoad& n) {
    if (n.buffer == product.writes[0]->buffer || n.indices.empty()) return;
    const bool right = std::ranges::any_of(n.indices, [&](const Expr& i) { return uses_var(i, *j); });
    along_depth |= right && n.indices.back() == Expr(k);
    along_columns |= right && n.indices.back() == Expr(j);
  });
  if (along_depth)
    return Reason{.what = "the right operand lies along the sum, and its columns are read one by one",
                  .needs = "columns that lie side by side"};
  if (along_columns && *columns < kPanel)
    return Reason{.what = text("the right operand has ", *columns, " columns"),
                  .needs = text("at least a panel of ", kPanel)};
  return {};
}

}  // namespace

std::optional<int64_t> most_rows(const Schedule& s, const BlockHandle& product) {
  auto rows = as_int(s.get(product).iter_vars[0]->dom->extent);
  return rows ? rows : int_attr(s.func()->attrs, kMostRows);
}

void schedule_product_tiles(Schedule& s, const ProductPlan& plan, const target::CpuLevel& level) {
  const BlockHandle &block = plan.product, &operand = plan.operand;
  inline_all(s, {operand, plan.left, plan.partial});
  if (plan.packs_right) pack_right(s, block);
  const size_t made = (operand ? 1 : 0) + (plan.left ? 1 : 0) + (plan.partial ? 1 : 0) + (plan.packs_right ? 1 : 0);
  BlockHandle last = block_that_stores(s, block, 1 + made);
  std::vector<Loop> loops = get_loops(s, block);
  Loop i = loops[0], j = loops[1], k = loops[2];
  auto rows = most_rows(s, block), columns = as_int(s.get(j).extent);
  const int64_t sums = plan.partial ? 2 : 1;
  const bool has_scales = sums > 1 || weight_buffers(s, block) > 1;
  const Tile tile = tile_of(level, rows, columns, lanes_of_sums(s, block, level), sums, has_scales);
  const int64_t vector = std::min(tile.columns, kPanel), group = std::max(tile.columns, kPanel);

  // Groups of panels, the tile's share of a group, vectors of a tile, lanes.
  std::vector<Loop> js = schedule::split(
      s,
      j,
      Factors{std::nullopt, factor(j, group / tile.columns), factor(j, tile.columns / vector), factor(j, vector)});
  const bool in_blocks = !operand && !(rows && *rows <= tile.rows * kTilesInBlock);
  std::vector<Loop> is =
      schedule::split(s, i, Factors{std::nullopt, factor(i, in_blocks ? kTilesInBlock : 1), factor(i, tile.rows)});
  DepthLoops ks = plan.partial ? DepthLoops{{k}, {}, {}} : split_depth(s, k, plan);
  // The rows of a block pass over one group of panels after the other.
  order_tile(s, ks, {js[0], is[0], js[1], is[1]}, {is[2], js[2], js[3]});
  const bool one_group = is_one(s.get(js[0]).extent);
  Loop outer = !in_blocks ? js[0] : one_group ? is[0] : fuse(s, std::vector<Loop>{js[0], is[0]});
  reverse_compute_at(s, last, is[1], true);
  Loop partial_k = plan.partial ? tile_partial(s, plan, 0, vector, ks.outer.front()) : nullptr;
  if (operand) make_panel_wise(s, operand, plan.k_group, plan.k_whole, js[0]);
  if (plan.left) make_rows(s, plan.left, vector, is[1]);
  // Kinds first: a decomposed reduction is no reduction block any more; its init takes the loops' kinds over.
  unroll(s, is[2]);
  unroll(s, js[2]);
  vectorize(s, js[3]);
  if (plan.sums_pairs) sum_in_pairs(s, ks.inner.front());
  std::vector<Loop> own = get_loops(s, last);
  unroll(s, own[own.size() - 2]);
  std::vector<Loop> parts = schedule::split(s, own.back(), Factors{std::nullopt, factor(own.back(), vector)});
  unroll(s, parts[0]);
  vectorize(s, parts[1]);
  if (plan.partial) {
    if (are_few(rows)) prefetch_weights(s, plan.partial, partial_k, level);
  } else if (!operand) {
    prefetch_weights(s, block, ks.outer.back(), level);
  }
  parallel(s, outer);
  decompose_reduction(s, block, ks.outer.front());
  if (plan.partial) decompose_reduction(s, plan.partial, partial_k);
}

MaybeReason schedule_product(Schedule& s, const target::CpuLevel& level) {
  BlockHandle product = product_block(s);
  if (!product)
    return Reason{.what = "no block sums products over one axis", .needs = "C[i, j] += A[.., k] * B[.., k]"};
  for (const BlockHandle& b : leaf_blocks(s)) {
    if (b != product && s.get(b).init)
      return Reason{.what = text("block ", b->text, " reduces too"), .needs = "one reduction"};
  }
  const Block& block = s.get(product);
  auto columns = as_int(block.iter_vars[1]->dom->extent);
  ProductPlan plan{.product = product, .operand = operand_block(s, product, Side::right)};
  if (!plan.operand) {
    if (MaybeReason reason = not_in_panels(block, columns)) return reason;
  }
  const int64_t bits = plan.operand ? code_bits(s.get(plan.operand)) : 0;
  const bool few = are_few(most_rows(s, product));
  if (few || !columns || *columns % kPanel != 0) {
    // The operand is made on the way.
    const BlockHandle operand = std::exchange(plan.operand, nullptr);
    auto depth = as_int(block.iter_vars[2]->dom->extent);
    // As many codes as fill whole words: then shifts and words of each are constants. Many rows share the work of making a code, and
    // written out for every height of their tile the codes would take most of the time of compilation.
    const int64_t whole = bits > 0 ? 32 / std::gcd(bits, int64_t{32}) : 1;
    if (few && depth && *depth % whole == 0) plan.k_unroll = whole;
    const int64_t shared = operand ? shared_columns(s.get(operand), plan.k_unroll) : 0;
    if (depth && shared > 0 && *depth % shared == 0) plan.k_shared = shared;
  }
  const bool deep = bits == 0 && is_deep(s, plan);  // of codes few rows have no parts, and a row's sum has one order
  if (!deep && !are_few(most_rows(s, product))) plan.left = operand_block(s, product, Side::left);
  plan.packs_right = !deep && !plan.operand && !are_few(most_rows(s, product)) && packing_pays(block);
  try {
    if (deep)
      schedule_deep_product(s, product, level);
    else
      schedule_product_tiles(s, plan, level);
  } catch (const Error& e) {
    return e.reason;
  }
  return {};
}

}  // namespace sator::rules
