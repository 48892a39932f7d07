// x * rsqrt(mean(x * x)) * weight, row by row: a thread block reads its row once, into registers.
#include <algorithm>

#include "rules/gpu/rules.h"

namespace sator::rules::gpu {

using namespace schedule;
using namespace tir;

namespace {

/// B[i] = A[i], with a cast or without.
bool is_copy(const Block& block) {
  const BufferStore* store = block.body.as<BufferStore>();
  if (block.reads.size() != 1 || block.writes.size() != 1 || !store) return false;
  const Cast* cast = store->value.as<Cast>();
  const BufferLoad* load = (cast ? cast->value : store->value).as<BufferLoad>();
  if (!load || load->indices.size() != store->indices.size()) return false;
  for (size_t d = 0; d < load->indices.size(); ++d) {
    if (!equal(load->indices[d], store->indices[d])) return false;
  }
  return true;
}

bool is_rsqrt(const Block& block) {
  const BufferStore* store = block.body.as<BufferStore>();
  const Call* call = store ? store->value.as<Call>() : nullptr;
  return block.reads.size() == 1 && block.writes.size() == 1 && call && call->op == "tir.rsqrt";
}

}  // namespace

MaybeReason apply_rms_norm(Schedule& s, const GpuContext&, GpuChoice& choice) {
  constexpr int64_t kRowThreads = 512, kVector = 8;
  const BufferSelector read_0{false, int64_t{0}}, write_0{true, int64_t{0}};
  const BlockHandle root = s.sites()[0].realize()->block->name;
  const std::vector<BlockHandle> given = get_child_blocks(s, root);
  if (std::ranges::none_of(given, [&](const BlockHandle& b) { return is_rsqrt(s.get(b)); }))
    return because("no block computes rsqrt", "a block y[i] = rsqrt(...) of a row's mean");
  cache_read(s, given.front(), read_0, "local");
  cache_write(s, given.back(), write_0, "local");
  for (const BlockHandle& b : given) {
    if (is_copy(s.get(b))) compute_inline(s, b);
  }
  const std::vector<BlockHandle> blocks = get_child_blocks(s, root);
  if (blocks.size() != 6)
    return because(text(blocks.size(), " blocks are left without copies and casts"),
                   "six: read, square, sum, rsqrt, multiply, write");
  const BlockHandle &read = blocks[0], &square = blocks[1], &sum = blocks[2], &rsqrt = blocks[3], &product = blocks[4],
                    &write = blocks[5];
  choice.block = rsqrt->text;
  if (!is_rsqrt(s.get(rsqrt)))
    return because(text("block ", rsqrt->text, " does not compute rsqrt"), "rsqrt as the fourth");
  for (const BlockHandle& b : blocks) {
    const std::vector<Loop> loops = get_loops(s, b);
    if (loops.size() > 1) fuse_all(s, first(loops, loops.size() - 1));
  }
  const std::vector<Loop> loops = get_loops(s, read);
  if (loops.size() != 2) return because(text("block ", read->text, " has one loop"), "rows, and the elements of a row");
  const Loop row = loops[0];
  const std::vector<Loop> parts = cut(s, loops[1], {kRowThreads, 0, kVector});
  bind(s, row, "blockIdx.x");
  bind(s, parts[0], "threadIdx.x");
  vectorize(s, get_loops(s, read).back());
  reverse_compute_at(s, square, parts[0]);
  reverse_compute_at(s, sum, parts[0]);
  reverse_compute_at(s, rsqrt, row);
  reverse_compute_at(s, product, row);
  const Loop thread = cut(s, get_loops(s, product).at(1), {kRowThreads, 0, kVector})[0];
  bind(s, thread, "threadIdx.x");
  reverse_compute_at(s, write, thread);
  vectorize(s, get_loops(s, write).back());
  for (const BlockHandle& b : {square, sum, product}) set_scope(s, b, write_0, "local");
  set_scope(s, rsqrt, write_0, "shared");
  choice.form = "y = x * rsqrt(mean(x * x)) * weight";
  choice.configuration = text("a row per block of ", kRowThreads, " threads, vectors of ", kVector);
  return {};
}

}  // namespace sator::rules::gpu
