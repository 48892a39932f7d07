// A matrix times a few vectors, of a symbolic number: padded to a bucket of vectors, then as a matrix times a vector, with the
// vectors of a bucket inside. A matrix that is made of codes is made once for all of them.
#include <algorithm>

#include "arith/iter_map.h"
#include "rules/gpu/gemv.h"
#include "rules/gpu/rules.h"

namespace sator::rules::gpu {

using namespace schedule;
using namespace tir;

namespace {

struct LowBatch {
  BlockHandle block;
  BlockHandle decode;  ///< makes the matrix of codes; null: it is read
  BlockHandle pad;     ///< fills the vectors of a bucket up with zeros; null: nothing is padded
  std::vector<BufferRef> vectors;
  int64_t bucket;
};

bool is_constant(const IterVarRef& i) { return as_int(i->dom->extent).has_value(); }

/// The vectors that the block multiplies a matrix with, if the number of them is its only symbolic size.
std::vector<BufferRef> low_batch_vectors(const Block& block) {
  if (std::ranges::count_if(block.iter_vars, is_constant) + 1 != static_cast<ptrdiff_t>(block.iter_vars.size()))
    return {};
  const IterVarRef& symbolic = *std::ranges::find_if_not(block.iter_vars, is_constant);
  if (symbolic->kind != IterKind::spatial) return {};
  return vector_operands(block, [&](const VarRef& v) { return v != symbolic->var; });
}

/// Makes floats of a buffer of integers: the codes of a quantized matrix.
bool decodes(const Block& block) {
  return block.writes.size() == 1 && block.writes[0]->buffer->dtype.is_float() &&
         std::ranges::any_of(block.reads, [](const BufferRegionRef& r) { return !r->buffer->dtype.is_float(); });
}

/// Pads the symbolic axis to the bucket. Returns the blocks that this makes.
std::vector<BlockHandle> pad_to_bucket(Schedule& s, const NormalBlock& main, int64_t bucket) {
  const std::vector<BlockHandle> before = leaf_blocks(s);
  std::vector<int64_t> sizes;
  for (const BlockIter& i : main.iters) sizes.push_back(as_int(i.extent).value_or(bucket));
  pad_einsum(s, main.block, sizes);
  std::vector<BlockHandle> made = get_producers(s, main.block);
  for (const BlockHandle& b : get_consumers(s, main.block)) made.push_back(b);
  std::erase_if(made, [&](const BlockHandle& b) { return std::ranges::find(before, b) != before.end(); });
  return made;
}

/// Loops of the block: vectors, rows, terms. Declines where the matrix is not read as it lies.
MaybeReason order_low_batch_loops(Schedule& s, const NormalBlock& main, bool& sums_innermost) {
  const Block& block = s.get(main.block);
  arith::Analyzer analyzer;
  arith::RangeMap domains;
  for (const IterVarRef& i : block.iter_vars) domains[i->var] = i->dom, analyzer.bind(i->var, i->dom);
  std::vector<Loop> order, rows, terms;
  VarRef symbolic;
  for (const BlockIter& i : main.iters) {
    if (!as_int(i.extent)) symbolic = i.var, order.push_back(i.loop);
  }
  const Expr read = dominant_read(block, [&](const VarRef& v) { return v != symbolic; });
  const arith::IterSum access = arith::normalize_to_iter_sum(read, domains, analyzer);
  for (const arith::IterSplit& part : access.args) {
    const Var* var = part.source->expr ? part.source->expr.as<Var>() : nullptr;
    const BlockIter* iter = var ? main.iter_of(*var) : nullptr;
    if (!iter) return because(text("the read at ", read, " is no walk through memory"), "a matrix read as it lies");
    sums_innermost = iter->kind == IterKind::reduce;
    if (iter->loop != order[0]) (sums_innermost ? terms : rows).push_back(iter->loop);
  }
  if (rows.empty() || terms.empty()) return because("the block has no rows or no terms", "one of each at least");
  order.insert(order.end(), rows.begin(), rows.end());
  order.insert(order.end(), terms.begin(), terms.end());
  reorder(s, order);
  fuse_all(s, rows);
  fuse_all(s, terms);
  return {};
}

/// Whatever follows: what the bucket's padding is cut off with, and what is computed of the result.
std::optional<BlockHandle> what_follows(Schedule& s, const BlockHandle& block) {
  const std::vector<BlockHandle> consumers = get_consumers(s, block);
  return consumers.empty() ? std::nullopt : std::optional(consumers[0]);
}

MaybeReason schedule_terms_innermost(Schedule& s, const GpuContext& context, const LowBatch& low,
                                     const GemvTile& tile) {
  const BlockHandle& block = low.block;
  const BufferSelector write_0{true, int64_t{0}};
  std::vector<Loop> loops = get_loops(s, block);
  cut(s, loops[1], {0, tile.threads_s, tile.each_s});
  const std::vector<Loop> terms = cut(s, loops[2], {0, tile.threads_r, tile.each_r / tile.lanes, tile.lanes});
  reorder(s, std::vector<Loop>{terms[0], terms[2], terms[1], terms[3]});
  const SharedSum sum = share_sum(s, block, terms[1], terms[3], tile.threads_r);

  // The lanes' sums: vectors, tiles of rows, threads, rows of a thread, parts, terms of a part, lanes.
  loops = get_loops(s, sum.lanes);
  const Loop tiles = loops[1], part = loops[4];
  const std::vector<Loop> across = cut(s, loops[6], {tile.threads_r, 0});
  reorder(s, std::vector<Loop>{tiles, loops[2], across[0], part, loops[3], loops[5], across[1]});
  bind(s, tiles, "blockIdx.x");
  bind(s, loops[2], "threadIdx.y");
  bind(s, across[0], "threadIdx.x");
  vectorize(s, across[1]);
  const std::vector<Loop> batches = cut(s, loops[0], {0, low.bucket});
  bind(s, batches[0], "blockIdx.y");
  reorder(s, std::vector<Loop>{tiles, loops[2], across[0], part, batches[1]});

  if (low.decode) {
    compute_at(s, low.decode, part, true);
    set_scope(s, low.decode, write_0, "local");
    const std::vector<Loop> own = last(get_loops(s, low.decode), 2);
    const std::vector<Loop> rows = cut(s, own[0], {0, 1});
    reorder(s, std::vector<Loop>{rows[0], own[1], rows[1]});
    vectorize(s, rows[1]);
  }
  if (MaybeReason reason = vector_to_shared_memory(s, context, sum.lanes, low.vectors, across[0], tile)) return reason;
  if (low.pad) compute_inline(s, low.pad);

  reverse_compute_at(s, sum.threads, tiles, true);
  loops = get_loops(s, sum.threads);
  auto of_thread = cut_rows(s, last(loops, loops.size() - 5), tile);
  if (!of_thread) return rows_of_a_tile(sum.threads);
  const std::vector<Loop> each = cut(s, of_thread->each, {0, largest_divisor(tile.each_s, {1, 2, 4, 8})});
  reorder(s, std::vector<Loop>{of_thread->thread, loops[2], each[0], loops[4], each[1], loops[3]});
  bind(s, of_thread->thread, "threadIdx.y");
  bind(s, loops[2], "threadIdx.x");
  vectorize(s, each[1]);
  reverse_compute_at(s, block, tiles, true);
  loops = get_loops(s, block);
  of_thread = cut_rows(s, last(loops, loops.size() - 4), tile);
  if (!of_thread) return rows_of_a_tile(block);
  reorder(s, std::vector<Loop>{of_thread->each, loops[3], of_thread->thread, loops[2]});
  bind(s, of_thread->thread, "threadIdx.y");
  bind(s, loops[2], "threadIdx.x");

  decompose_reduction(s, sum.lanes, get_loops(s, sum.lanes)[4]);
  decompose_reduction(s, sum.threads, get_loops(s, sum.threads).back());
  for (const BlockHandle& b : {sum.lanes, sum.threads}) set_scope(s, b, write_0, "local");
  for (const BlockHandle& b : {sum.lanes, sum.threads}) annotate_unroll(s, get_loops(s, b)[4], tile.unroll);
  if (auto epilogue = what_follows(s, block)) return place_epilogue(s, block, *epilogue, tiles, 3, tile);
  return {};
}

/// Rows lie side by side, and groups of 8 terms share a word, groups of 32 a scale: threads along x take rows.
MaybeReason schedule_rows_innermost(Schedule& s, const LowBatch& low) {
  constexpr int64_t kRows = 32, kParts = 4, kPerWord = 8, kWordsPerScale = 4;
  const BlockHandle& block = low.block;
  const BufferSelector write_0{true, int64_t{0}};
  if (!low.decode || !low.pad)
    return because("rows lie side by side, and the matrix is read as it is",
                   "a matrix made of codes, and padded vectors");
  std::vector<Loop> loops = get_loops(s, block);
  const std::vector<Loop> batches = cut(s, loops[0], {0, low.bucket}), rows = cut(s, loops[1], {0, kRows}),
                          terms = cut(s, loops[2], {0, kParts, kWordsPerScale, kPerWord});
  reorder(s, std::vector<Loop>{batches[0], rows[0], rows[1], terms[0], batches[1], terms[2], terms[1], terms[3]});
  const SharedSum sum = share_sum(s, block, terms[1], terms[3], kParts);

  loops = get_loops(s, sum.lanes);
  const Loop tiles = loops[1], part = loops[3], word = loops[5];
  const std::vector<Loop> across = cut(s, loops[6], {kParts, kPerWord});
  reorder(s, std::vector<Loop>{loops[0], tiles, loops[2], across[0], part, word, loops[4], across[1]});
  bind(s, loops[0], "blockIdx.y");
  bind(s, tiles, "blockIdx.x");
  bind(s, loops[2], "threadIdx.x");
  bind(s, across[0], "threadIdx.y");
  vectorize(s, cut(s, across[1], {0, 1})[1]);
  compute_at(s, low.decode, word, true);
  set_scope(s, low.decode, write_0, "local");
  auto vectorize_from = [&](const BlockHandle& b, size_t from) {
    const std::vector<Loop> own = get_loops(s, b);
    if (own.size() > from) vectorize(s, cut(s, fuse_all(s, last(own, own.size() - from)), {0, 1})[1]);
  };
  vectorize_from(low.decode, 6);
  for (int64_t operand = 0; operand < 2; ++operand) {
    const BlockHandle fetch = cache_read(s, low.decode, BufferSelector{false, operand}, "local");
    compute_at(s, fetch, part, true);
    vectorize_from(fetch, 5);
  }
  compute_inline(s, low.pad);

  reverse_compute_at(s, sum.threads, tiles, true);
  loops = get_loops(s, sum.threads);
  reorder(s, std::vector<Loop>{loops.at(5), loops[2], loops[4], loops[3]});
  bind(s, loops[5], "threadIdx.x");
  bind(s, loops[2], "threadIdx.y");
  reverse_compute_at(s, block, tiles, true);
  loops = get_loops(s, block);
  reorder(s, std::vector<Loop>{loops[3], loops.at(4), loops[2]});
  bind(s, loops[4], "threadIdx.x");
  bind(s, loops[2], "threadIdx.y");
  for (const BlockHandle& b : {sum.lanes, sum.threads}) decompose_reduction(s, b, get_loops(s, b)[4]);
  for (const BlockHandle& b : {sum.lanes, sum.threads}) set_scope(s, b, write_0, "local");
  if (auto epilogue = what_follows(s, block)) {
    if (is_broadcast(s, block, *epilogue))
      return because("what follows uses one result for many elements", "an epilogue element by element");
    reverse_compute_at(s, *epilogue, tiles, true);
    bind(s, get_loops(s, *epilogue).at(3), "threadIdx.x");
    set_scope(s, block, write_0, "local");
  }
  return {};
}

}  // namespace

MaybeReason apply_low_batch_gemv(Schedule& s, const GpuContext& context, GpuChoice& choice) {
  std::vector<NormalBlock> blocks;
  if (MaybeReason reason = normalize(s, blocks)) return reason;
  std::optional<NormalBlock> main;
  for (const NormalBlock& b : blocks) {
    if (!b.is_reduction) continue;
    if (main) return because(text("there are two reductions: ", main->block->text, " and ", b.block->text), "one");
    main = b;
  }
  if (!main) return because("there is no reduction", "a matrix times vectors");
  choice.block = main->block->text;
  const std::string needs = "x[...] = x[...] + y over a matrix and vectors, whose number is the only symbolic size";
  if (low_batch_vectors(s.get(main->block)).empty())
    return because(text("block ", main->block->text, " is no product of a matrix with a symbolic number of vectors"),
                   needs);

  LowBatch low{.block = main->block, .bucket = context.bucket};
  const std::vector<BlockHandle> padding = pad_to_bucket(s, *main, low.bucket);
  if (MaybeReason reason = normalize(s, blocks)) return reason;
  auto is_padding = [&](const BlockHandle& b) { return std::ranges::find(padding, b) != padding.end(); };
  std::vector<NormalBlock> others;
  for (const NormalBlock& b : blocks) {
    if (is_padding(b.block)) {
      if (get_producers(s, b.block).empty()) low.pad = b.block;
    } else if (b.block != low.block && decodes(s.get(b.block))) {
      low.decode = b.block;
    } else {
      others.push_back(b);
    }
  }
  inline_spatial_runs(s, others);
  if (others.empty() || others.size() > 2 || others[0].block != low.block)
    return because(text(others.size(), " blocks are left once spatial ones are put together"),
                   "the product, and at most one block that follows it");
  if (others.size() == 2 && !others[1].is_spatial())
    return because(text("block ", others[1].block->text, ", which follows, is not spatial"), "a spatial one");
  if (others[0].iters.size() != 2 && others[0].iters.size() != 3)
    return because(text("the product has ", others[0].iters.size(), " iterators of several values"),
                   "vectors, rows and terms");
  low.vectors = low_batch_vectors(s.get(low.block));
  if (low.vectors.empty())
    return because("the product is none of a matrix with vectors once others are put into it", needs);
  bool sums_innermost = false;
  if (MaybeReason reason = order_low_batch_loops(s, others[0], sums_innermost)) return reason;
  choice.form = text("Y[B, S] += A[S, R] * X[B, R], B in buckets of ", low.bucket);
  if (!sums_innermost) {
    if (low.bucket > 4)
      return because(text("rows lie side by side, with a bucket of ", low.bucket), "a bucket of 4 at most");
    choice.configuration = "32 rows x 4 parts of the sum";
    return schedule_rows_innermost(s, low);
  }
  const std::vector<Loop> loops = get_loops(s, low.block);
  const auto rows = constant_extent(s, loops[1]), terms = constant_extent(s, loops[2]);
  GemvTile tile{.each_s = 2};
  if (!rows)
    tile.threads_s = 1, tile.threads_r = 64;
  else if (terms && *rows > *terms)
    tile.threads_s = 4, tile.threads_r = 64;
  fit_threads(tile, context.gpu.max_threads_per_block);
  tile.each_r = terms_of_thread(terms, tile.threads_r);
  tile.lanes = std::min<int64_t>(largest_divisor(tile.each_r, {1, 2, 4, 8}), 4);
  choice.configuration = words_of(tile);
  return schedule_terms_innermost(s, context, low, tile);
}

}  // namespace sator::rules::gpu
