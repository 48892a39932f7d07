// A copy with two axes exchanged: tiles pass through shared memory, so that both reads and writes are of neighbours.
#include <algorithm>

#include "arith/iter_map.h"
#include "rules/gpu/rules.h"

namespace sator::rules::gpu {

using namespace schedule;
using namespace tir;

namespace {

/// B[j, i] = A[i, j]: the same indices in another order.
bool exchanges_axes(const Block& block) {
  const BufferStore* store = block.body.as<BufferStore>();
  const BufferLoad* load = store ? store->value.as<BufferLoad>() : nullptr;
  if (!load || load->indices.size() != store->indices.size()) return false;
  bool same_order = true;
  for (size_t d = 0; d < load->indices.size(); ++d) {
    const Expr& i = load->indices[d];
    same_order &= equal(i, store->indices[d]);
    if (std::ranges::none_of(store->indices, [&](const Expr& e) { return equal(e, i); })) return false;
  }
  return !same_order;
}

/// Elements that the block makes of one word of what it reads most of.
int64_t elements_per_word(const Block& block) {
  arith::Analyzer analyzer;
  arith::RangeMap domains;
  for (const IterVarRef& i : block.iter_vars) domains[i->var] = i->dom, analyzer.bind(i->var, i->dom);
  const Expr read = dominant_read(block, [](const VarRef&) { return true; });
  if (!read) return 1;
  const arith::IterSum access = arith::normalize_to_iter_sum(read, domains, analyzer);
  return access.args.empty() ? 1 : as_int(access.args[0].lower_factor).value_or(1);
}

}  // namespace

MaybeReason apply_transpose(Schedule& s, const GpuContext&, GpuChoice& choice) {
  constexpr int64_t kAcross = 16, kDown = 8, kVector = 4;  // threads, threads, elements
  std::vector<NormalBlock> blocks;
  if (MaybeReason reason = normalize(s, blocks)) return reason;
  size_t at = blocks.size();
  while (at > 0 && !exchanges_axes(s.get(blocks[at - 1].block))) {
    if (!blocks[at - 1].is_spatial())
      return because(text("block ", blocks[at - 1].block->text, " is a reduction"),
                     "a copy, followed by spatial blocks");
    --at;
  }
  if (at == 0) return because("no block is a copy with axes exchanged", "B[j, i] = A[i, j]");
  const BlockHandle block = blocks[--at].block;
  choice.block = block->text;
  BlockHandle made;  // what is copied is made by this block
  if (at > 0) {
    made = blocks[at - 1].block;
    std::vector<NormalBlock> before(blocks.begin(), blocks.begin() + static_cast<ptrdiff_t>(at) - 1);
    inline_spatial_runs(s, before);
    if (!before.empty())
      return because(text("block ", before[0].block->text, " comes before and cannot be computed with what is copied"),
                     "spatial blocks before the copy");
  }
  const std::vector<Loop> loops = get_loops(s, block);
  if (loops.size() != 2)
    return because(text("the copy is over ", loops.size(), " axes"), "two axes of several elements");
  const int64_t per_word = made ? elements_per_word(s.get(made)) : 1;

  std::vector<Loop> rows = cut(s, loops[0], {0, per_word});
  const Loop word = rows[1];
  rows = cut(s, rows[0], {0, kDown});
  const std::vector<Loop> columns = cut(s, loops[1], {0, kAcross});
  reorder(s, std::vector<Loop>{rows[0], columns[0], rows[1], columns[1], word});
  bind(s, rows[0], "blockIdx.y");
  bind(s, columns[0], "blockIdx.x");
  bind(s, rows[1], "threadIdx.y");
  bind(s, columns[1], "threadIdx.x");
  const int64_t lanes = std::min(kVector, per_word);
  const Loop vector = schedule::split(s, word, Factors{std::nullopt, factor(word, lanes)})[1];
  if (lanes > 1) vectorize(s, vector);

  const BlockHandle tile = cache_read(s, block, BufferSelector{false, int64_t{0}}, "shared");
  compute_at(s, tile, columns[0]);
  const std::vector<Loop> own = get_loops(s, tile);
  const std::vector<Loop> parts = cut(s, fuse_all(s, last(own, own.size() - 2)), {0, kDown, kAcross, per_word});
  bind(s, parts[1], "threadIdx.y");
  bind(s, parts[2], "threadIdx.x");
  unroll(s, parts[3]);
  // Rows of 33 elements: a column's elements lie in different banks.
  storage_align(s, tile, BufferSelector{true, int64_t{0}}, 0, 32, 1);
  annotate_unroll(s, rows[0], 256);
  if (made) compute_inline(s, made);
  choice.form = "B[j, i] = A[i, j]";
  choice.configuration = text("tiles of ", kDown * per_word, " x ", kAcross, ", vectors of ", lanes);
  return {};
}

}  // namespace sator::rules::gpu
