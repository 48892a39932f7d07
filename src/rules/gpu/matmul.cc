// A product on ordinary arithmetic units: each thread block sums a tile of the result, each thread 4 x 4 elements of it, from parts
// of the operands that the block's threads fetch to shared memory together.
#include "rules/gpu/matmul.h"

#include "rules/gpu/rules.h"

namespace sator::rules::gpu {

using namespace schedule;

namespace {

/// How a thread block's tile is cut. Along I: threads_i threads of each_i elements; along J as well; `depth` terms at a time.
struct MatmulTile {
  int64_t threads_i = 8, threads_j = 16;
  int64_t each_i = 4, each_j = 4;
  int64_t depth = 16;
  int64_t vector = 2;    ///< elements of one load or store
  int64_t unroll = 256;  ///< statements
};

/// A part of an operand in shared memory, fetched by all threads of the block; rows are padded by a vector, so that those of a warp lie
/// in different banks.
BlockHandle fetch_together(Schedule& s, const BlockHandle& block, int64_t operand, const Loop& at,
                           const MatmulTile& tile) {
  const BlockHandle fetch = cache_read(s, block, BufferSelector{false, operand}, "shared");
  const size_t axes = get_loops(s, fetch).size();
  compute_at(s, fetch, at, true);
  const Loop all = fuse_all(s, last(get_loops(s, fetch), axes));
  const std::vector<Loop> parts = cut(s, all, {tile.threads_j, tile.threads_i, 0, tile.vector});
  vectorize(s, parts[3]);
  bind(s, parts[0], "threadIdx.y");
  bind(s, parts[1], "threadIdx.x");
  storage_align(s, fetch, BufferSelector{true, int64_t{0}}, 1, 8, static_cast<int>(tile.vector));
  return fetch;
}

}  // namespace

MaybeReason apply_matmul(Schedule& s, const GpuContext&, GpuChoice& choice) {
  MatmulForm form;
  if (MaybeReason reason = find_matmul(s, form)) return reason;
  const MatmulTile tile;
  const int64_t rows = tile.threads_i * tile.each_i, columns = tile.threads_j * tile.each_j;
  choice = {.block = form.block->text,
            .form = describe(form),
            .configuration = text("tiles of ",
                                  rows,
                                  " x ",
                                  columns,
                                  ", ",
                                  tile.depth,
                                  " terms at a time, ",
                                  tile.threads_i,
                                  " x ",
                                  tile.threads_j,
                                  " threads of ",
                                  tile.each_i,
                                  " x ",
                                  tile.each_j,
                                  " elements, vectors of ",
                                  tile.vector)};
  const std::vector<Loop> loops = to_normal_form(s, form, {rows, columns, tile.depth});
  const BlockHandle& block = form.block;

  // Outer to inner: tiles, virtual threads (one), threads, what a thread sums.
  const std::vector<Loop> j = cut(s, loops[2], {0, 1, tile.threads_j, tile.each_j});
  const std::vector<Loop> i = cut(s, loops[1], {0, 1, tile.threads_i, tile.each_i});
  const std::vector<Loop> k = cut(s, loops[3], {0, tile.depth});
  reorder(s, std::vector<Loop>{j[0], i[0], j[1], i[1], j[2], i[2], k[0], k[1], i[3], j[3]});
  const Loop tiles_j = fuse_all(s, {loops[0], j[0]});
  const Loop thread = i[2];
  bind(s, i[0], "blockIdx.x");
  bind(s, tiles_j, "blockIdx.y");
  bind(s, j[1], "vthread.y");
  bind(s, i[1], "vthread.x");
  bind(s, j[2], "threadIdx.y");
  bind(s, thread, "threadIdx.x");
  vectorize(s, cut(s, j[3], {0, tile.vector})[1]);
  annotate_unroll(s, thread, tile.unroll);

  const BlockHandle result = cache_write(s, block, BufferSelector{true, int64_t{0}}, "local");
  reverse_compute_at(s, result, thread, true);
  vectorize(s, cut(s, get_loops(s, result).back(), {0, tile.vector})[1]);
  const BlockHandle a = fetch_together(s, block, 0, k[0], tile), b = fetch_together(s, block, 1, k[0], tile);
  inline_producers(s, a);
  inline_producers(s, b);
  if (MaybeReason reason = inline_consumers(s, result)) return reason;
  decompose_reduction(s, block, k[0]);
  return {};
}

}  // namespace sator::rules::gpu
