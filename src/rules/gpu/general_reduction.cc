// Several reductions over the same last axes and what follows from them (softmax, layer norm): each thread block takes one row,
// keeps it in shared memory from step to step, and its threads share each reduction.
#include <algorithm>

#include "rules/gpu/rules.h"

namespace sator::rules::gpu {

using namespace schedule;
using namespace tir;

namespace {

constexpr int64_t kRowThreads = 256;

/// Gives the last block as many iterators as the first one has: those that run as far take its places, in order, and others are
/// of one iteration.
void align_iterators(Schedule& s, const NormalBlock& first_block, const NormalBlock& last_block) {
  arith::Analyzer analyzer;
  const std::vector<IterVarRef> iters = s.get(last_block.block).iter_vars;
  std::vector<VarRef> inputs;
  for (const IterVarRef& i : iters) inputs.push_back(make_var(i->var->name, i->var->dtype));
  if (inputs.empty()) return;
  std::vector<Expr> aligned;
  size_t matched = 0;
  for (const BlockIter& place : first_block.iters) {
    if (matched < iters.size() && analyzer.prove_equal(place.extent, iters[matched]->dom->extent))
      aligned.push_back(inputs[matched++]);
    else
      aligned.push_back(int_imm(0, i64));
  }
  if (matched < iters.size()) {
    aligned.assign(first_block.iters.size() - iters.size(), int_imm(0, i64));
    aligned.insert(aligned.end(), inputs.begin(), inputs.end());
  }
  transform_block_layout(s, last_block.block, make<arith::IndexMap>(std::move(inputs), std::move(aligned), nullptr));
}

/// Threads take every kRowThreads-th iteration of the loop.
void share_row(Schedule& s, const Loop& loop) {
  const std::vector<Loop> parts = cut(s, loop, {0, kRowThreads});
  reorder(s, std::vector<Loop>{parts[1], parts[0]});
  bind(s, parts[1], "threadIdx.x");
  annotate_unroll(s, parts[0], 256);
}

}  // namespace

MaybeReason apply_general_reduction(Schedule& s, const GpuContext&, GpuChoice& choice) {
  std::vector<NormalBlock> blocks;
  if (MaybeReason reason = normalize(s, blocks)) return reason;
  inline_spatial_runs(s, blocks);
  if (blocks.empty()) return because("the function has no blocks", "reductions and a last spatial block");
  const std::string kinds = blocks[0].kinds();
  const size_t rows = std::min(kinds.find_first_not_of('S'), kinds.size());
  const size_t terms = kinds.size() - (kinds.find_last_not_of('R') + 1);
  const NormalBlock& result = blocks.back();
  choice.block = result.block->text;
  if (terms == 0)
    return because(text("block ", blocks[0].block->text, "[", kinds, "] does not reduce its last axis"),
                   "a first block that is a reduction over its last axes");
  for (size_t i = 1; i + 1 < blocks.size(); ++i) {
    if (blocks[i].kinds() != kinds)
      return because(text("block ", blocks[i].block->text, "[", blocks[i].kinds(), "] has other axes than ", kinds),
                     "all blocks but the last reduce the same axes");
  }
  if (!result.is_spatial())
    return because(text("the last block, ", result.block->text, ", is a reduction"),
                   "a last block that follows element by element");
  if (result.iters.size() > kinds.size())
    return because(text("the last block, ", result.block->text, ", has more axes than ", kinds), "as many at most");
  if (result.iters.size() < kinds.size()) align_iterators(s, blocks[0], result);

  const std::vector<Loop> loops = get_loops(s, result.block);
  const Loop row = fuse_all(s, first(loops, rows));
  share_row(s, loops.back());
  bind(s, row, "blockIdx.x");
  for (size_t i = blocks.size() - 1; i-- > 0;) {
    const BlockHandle& block = blocks[i].block;
    for (size_t w = 0; w < s.get(block).writes.size(); ++w)
      set_scope(s, block, BufferSelector{true, static_cast<int64_t>(w)}, "shared");
    compute_at(s, block, row, true);
    share_row(s, fuse_all(s, last(get_loops(s, block), terms)));
  }
  choice.form = text(blocks.size() - 1, " reductions over ", kinds, ", then ", result.block->text);
  choice.configuration = text("a row per block of ", kRowThreads, " threads");
  return {};
}

}  // namespace sator::rules::gpu
