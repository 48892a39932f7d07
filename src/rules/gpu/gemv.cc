// A matrix times a vector. The threads of a block share the sum of each row, and each sums several lanes of it; the vector lies in
// shared memory, the matrix (or its codes) passes through registers.
#include <algorithm>

#include "arith/iter_map.h"
#include "rules/gpu/gemv.h"
#include "rules/gpu/rules.h"

namespace sator::rules::gpu {

using namespace schedule;
using namespace tir;

namespace {

bool any_iterator(const VarRef&) { return true; }

/// Loops of the block, fused: batches, rows, terms, and the terms whose codes share a word (one where none do).
///   sums_innermost  the matrix's innermost axis is summed
MaybeReason order_gemv_loops(Schedule& s, const NormalBlock& main, bool& sums_innermost) {
  const Block& block = s.get(main.block);
  const std::string form = "a matrix that is read as it lies in memory, with groups of terms at most";
  arith::Analyzer analyzer;
  arith::RangeMap domains;
  for (const IterVarRef& i : block.iter_vars) domains[i->var] = i->dom, analyzer.bind(i->var, i->dom);
  const Expr read = dominant_read(block, any_iterator);
  const arith::IterSum access = arith::normalize_to_iter_sum(read, domains, analyzer);
  for (const IterVarRef& i : block.iter_vars) {
    if (uses_var(access.base, *i->var)) return because(text("the read at ", read, " is no walk through memory"), form);
  }
  auto used_everywhere = [&](const VarRef& v) {
    auto uses = [&](const BufferRegionRef& box) {
      const std::vector<VarRef> in = iterators_in(block, *box);
      return std::ranges::find(in, v) != in.end();
    };
    return std::ranges::all_of(block.reads, uses) && std::ranges::all_of(block.writes, uses);
  };
  std::vector<Loop> batches, rows, terms, words;
  for (const arith::IterSplit& part : access.args) {
    const Var* var = part.source->expr ? part.source->expr.as<Var>() : nullptr;
    const BlockIter* iter = var ? main.iter_of(*var) : nullptr;
    const auto per_word = as_int(part.lower_factor);
    if (!iter || !per_word) return because(text("the read at ", read, " is no walk through memory"), form);
    const bool is_term = iter->kind == IterKind::reduce;
    sums_innermost = is_term;
    Loop loop = iter->loop;
    if (*per_word > 1) {
      if (!words.empty() || !is_term) return because("rows share words of the matrix", form);
      const std::vector<Loop> parts = cut(s, loop, {0, *per_word});
      loop = parts[0];
      words.push_back(parts[1]);
    }
    (is_term ? terms : used_everywhere(iter->var) ? batches : rows).push_back(loop);
  }
  if (rows.empty() || terms.empty()) return because("the block has no rows or no terms", "one of each at least");
  if (words.empty()) words.push_back(add_unit_loop(s, main.block));
  if (batches.empty()) batches.push_back(add_unit_loop(s, main.block));
  std::vector<Loop> all = batches;
  for (const std::vector<Loop>* more : {&rows, &terms, &words}) all.insert(all.end(), more->begin(), more->end());
  reorder(s, all);
  fuse_all(s, batches);
  fuse_all(s, rows);
  fuse_all(s, terms);
  return {};
}

/// Where the buffer stands among what the block reads.
std::optional<size_t> position_of_read(const Schedule& s, const BlockHandle& block, const BufferRef& buffer) {
  const std::vector<BufferRegionRef>& reads = s.get(block).reads;
  auto at = std::ranges::find_if(reads, [&](const BufferRegionRef& r) { return r->buffer == buffer; });
  return at == reads.end() ? std::nullopt : std::optional<size_t>(at - reads.begin());
}

/// Nothing where a size is symbolic.
std::optional<int64_t> bytes_of(const Buffer& buffer) {
  int64_t elements = 1;
  for (const Expr& size : buffer.shape) {
    if (!as_int(size)) return {};
    elements *= *as_int(size);
  }
  return elements * buffer.dtype.bytes();
}

}  // namespace

MaybeReason vector_to_shared_memory(Schedule& s, const GpuContext& context, const BlockHandle& block,
                                    const std::vector<BufferRef>& vectors, const Loop& at, const GemvTile& tile) {
  int64_t bytes = 0;
  for (const BufferRef& v : vectors) {
    const auto of_vector = bytes_of(*v);
    if (!of_vector) return {};
    bytes += *of_vector;
  }
  if (bytes > context.gpu.max_shared_memory_bytes) return {};
  if (vectors.size() != 1)
    return because(text("there are ", vectors.size(), " vectors"), "one vector, where it fits shared memory");
  const BufferSelector read{false, static_cast<int64_t>(position_of_read(s, block, vectors[0]).value_or(0))};
  const BlockHandle fetch = cache_read(s, block, read, "shared");
  compute_at(s, fetch, at, true);
  const Loop elements = get_loops(s, fetch).back();
  const int64_t threads = tile.threads_s * tile.threads_r;
  int64_t lanes = tile.vector_load;
  if (auto extent = constant_extent(s, elements)) {
    // Longer vectors that do not divide the vector evenly would need conditions.
    lanes = std::min(lanes, largest_divisor(*extent, {threads, 2 * threads, 4 * threads, 8 * threads}) / threads);
    lanes = std::max<int64_t>(lanes, 1);
  }
  const std::vector<Loop> parts = cut(s, elements, {0, tile.threads_s, tile.threads_r, lanes});
  bind(s, parts[1], "threadIdx.y");
  bind(s, parts[2], "threadIdx.x");
  vectorize(s, parts[3]);
  annotate(s, parts[0], "pragma_unroll_explicit", Value(tile.unroll));
  annotate(s, parts[0], "pragma_vectorize", Value(1));
  return {};
}

std::optional<RowLoops> cut_rows(Schedule& s, const std::vector<Loop>& rows, const GemvTile& tile) {
  const std::vector<Loop> parts = cut(s, fuse_all(s, rows), {0, tile.threads_s, tile.each_s});
  if (constant_extent(s, parts[0]) != 1) return {};
  return RowLoops{fuse_all(s, {parts[0], parts[1]}), parts[2]};
}

Reason rows_of_a_tile(const BlockHandle& block) {
  return because(text("block ", block->text, " has more rows in a thread block than threads take"), "one tile of rows");
}

MaybeReason place_epilogue(Schedule& s, const BlockHandle& block, const BlockHandle& epilogue, const Loop& at,
                           size_t around, const GemvTile& tile) {
  const BufferSelector write_0{true, int64_t{0}};
  if (is_broadcast(s, block, epilogue)) {
    reverse_compute_at(s, epilogue, at);
    set_scope(s, block, write_0, "shared");
    const std::vector<Loop> loops = get_loops(s, epilogue);
    if (loops.size() <= around + 1) return rows_of_a_tile(epilogue);
    bind(s, cut(s, fuse_all(s, last(loops, loops.size() - around - 1)), {0, tile.threads_r})[1], "threadIdx.x");
    return {};
  }
  reverse_compute_at(s, epilogue, at, true);
  const std::vector<Loop> loops = get_loops(s, epilogue);
  const auto rows = cut_rows(s, last(loops, loops.size() - around), tile);
  if (!rows) return rows_of_a_tile(epilogue);
  bind(s, rows->thread, "threadIdx.y");
  set_scope(s, block, write_0, "local");
  return {};
}

void fit_threads(GemvTile& tile, int64_t most) {
  while (tile.threads_s * tile.threads_r > most) (tile.threads_s > 1 ? tile.threads_s : tile.threads_r) /= 2;
}

namespace {

struct GemvParts {
  BlockHandle block;
  std::vector<BufferRef> vectors;
  std::optional<NormalBlock> epilogue;
};

/// The matrix in registers: the loads of a thread's part of a row, as vectors of 4 bytes.
void matrix_to_registers(Schedule& s, const BlockHandle& block, const std::vector<BufferRef>& vectors, const Loop& at) {
  constexpr int64_t kLoadBytes = 4;
  const std::vector<BufferRegionRef> reads = s.get(block).reads;
  auto is_matrix = [&](const BufferRegionRef& r) { return std::ranges::find(vectors, r->buffer) == vectors.end(); };
  const auto matrix = std::ranges::find_if(reads, is_matrix) - reads.begin();
  const BlockHandle fetch = cache_read(s, block, BufferSelector{false, static_cast<int64_t>(matrix)}, "local");
  compute_at(s, fetch, at, true);
  const Loop all = fuse_all(s, last(get_loops(s, fetch), 2));
  const int64_t lanes = std::max<int64_t>(1, kLoadBytes / s.get(fetch).reads.at(0)->buffer->dtype.bytes());
  vectorize(s, cut(s, all, {0, lanes})[1]);
}

MaybeReason schedule_gemv(Schedule& s, const GpuContext& context, const GemvParts& gemv, const GemvTile& tile) {
  const BlockHandle& block = gemv.block;
  const BufferSelector write_0{true, int64_t{0}};
  std::vector<Loop> loops = get_loops(s, block);
  const std::vector<Loop> rows = cut(s, fuse_all(s, {loops[0], loops[1]}), {0, tile.threads_s, tile.each_s});
  const std::vector<Loop> terms =
      cut(s, fuse_all(s, {loops[2], loops[3]}), {0, tile.threads_r, tile.each_r / tile.lanes, tile.lanes});
  reorder(s, std::vector<Loop>{terms[0], terms[2], terms[1], terms[3]});
  const SharedSum sum = share_sum(s, block, terms[1], terms[3], tile.threads_r);

  // The lanes' sums.
  loops = get_loops(s, sum.lanes);
  const Loop tiles = loops[0], part = loops[3];
  const std::vector<Loop> across = cut(s, loops[5], {tile.threads_r, 0});
  reorder(s, std::vector<Loop>{tiles, loops[1], across[0], part, loops[2], loops[4], across[1]});
  bind(s, tiles, "blockIdx.x");
  bind(s, loops[1], "threadIdx.y");
  bind(s, across[0], "threadIdx.x");
  vectorize(s, across[1]);
  matrix_to_registers(s, sum.lanes, gemv.vectors, part);
  if (MaybeReason reason = vector_to_shared_memory(s, context, sum.lanes, gemv.vectors, across[0], tile)) return reason;

  // Each thread's sum of its lanes, then the sum of the threads.
  reverse_compute_at(s, sum.threads, tiles, true);
  loops = get_loops(s, sum.threads);
  auto of_thread = cut_rows(s, last(loops, loops.size() - 3), tile);
  if (!of_thread) return rows_of_a_tile(sum.threads);
  const std::vector<Loop> each = cut(s, of_thread->each, {0, largest_divisor(tile.each_s, {1, 2, 4, 8})});
  reorder(s, std::vector<Loop>{of_thread->thread, loops[1], each[0], each[1], loops[2]});
  bind(s, of_thread->thread, "threadIdx.y");
  bind(s, loops[1], "threadIdx.x");
  vectorize(s, each[1]);
  reverse_compute_at(s, block, tiles, true);
  loops = get_loops(s, block);
  of_thread = cut_rows(s, last(loops, loops.size() - 2), tile);
  if (!of_thread) return rows_of_a_tile(block);
  reorder(s, std::vector<Loop>{of_thread->each, of_thread->thread, loops[1]});
  bind(s, of_thread->thread, "threadIdx.y");
  bind(s, loops[1], "threadIdx.x");

  decompose_reduction(s, sum.lanes, get_loops(s, sum.lanes)[3]);
  decompose_reduction(s, sum.threads, get_loops(s, sum.threads).back());
  for (const BlockHandle& b : {sum.lanes, sum.threads}) set_scope(s, b, write_0, "local");
  for (const BlockHandle& b : {sum.lanes, sum.threads}) annotate_unroll(s, get_loops(s, b)[3], tile.unroll);
  return gemv.epilogue ? place_epilogue(s, block, gemv.epilogue->block, tiles, 1, tile) : MaybeReason();
}

}  // namespace

MaybeReason apply_gemv(Schedule& s, const GpuContext& context, GpuChoice& choice) {
  std::optional<NormalBlock> main;
  GemvParts gemv;
  if (MaybeReason reason = main_and_epilogue(s, main, gemv.epilogue)) return reason;
  gemv.block = main->block;
  choice.block = main->block->text;
  if (main->iters.size() != 2 && main->iters.size() != 3)
    return because(text("block ", main->block->text, " has ", main->iters.size(), " iterators of several values"),
                   "rows and terms, and a batch at most");
  gemv.vectors = main->is_reduction ? vector_operands(s.get(main->block), any_iterator) : std::vector<BufferRef>();
  if (gemv.vectors.empty())
    return because(text("block ", main->block->text, " is no sum of a matrix times a vector"),
                   "x[...] = x[...] + y, where y reads one buffer with all iterators and one with some");
  bool sums_innermost = false;
  if (MaybeReason reason = order_gemv_loops(s, *main, sums_innermost)) return reason;
  if (!sums_innermost)
    return because("the matrix is summed along an outer axis", "terms that lie side by side; Reduction takes others");
  const std::vector<Loop> loops = get_loops(s, gemv.block);
  const bool constant_rows = constant_extent(s, loops[0]) && constant_extent(s, loops[1]);
  GemvTile tile;
  if (constant_rows)
    tile.threads_s = 16, tile.threads_r = 32;
  else
    tile.threads_s = 1, tile.threads_r = 64;
  fit_threads(tile, context.gpu.max_threads_per_block);
  const int64_t packed = constant_extent(s, loops[3]).value_or(1);
  tile.each_r = packed > 1 ? packed : terms_of_thread(constant_extent(s, loops[2]), tile.threads_r);
  tile.lanes = std::min<int64_t>(largest_divisor(tile.each_r, {1, 2, 4, 8}), 4);
  choice.form = text("y[S, R] += A[S, R, K] * x[S, K]: ", main->kinds());
  choice.configuration = words_of(tile);
  return schedule_gemv(s, context, gemv, tile);
}

std::string words_of(const GemvTile& tile) {
  const std::string rows = tile.each_s == 1 ? "" : text(" x ", tile.each_s);
  return text(tile.threads_s,
              rows,
              " rows x ",
              tile.threads_r,
              " threads, ",
              tile.each_r,
              " terms each at a time, ",
              tile.lanes,
              " lanes");
}

int64_t terms_of_thread(std::optional<int64_t> terms, int64_t threads) {
  if (!terms) return 1;
  return std::max<int64_t>(largest_divisor(*terms, {threads, 2 * threads, 4 * threads, 8 * threads}) / threads, 1);
}

}  // namespace sator::rules::gpu
