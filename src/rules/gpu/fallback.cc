// Any function: spatial blocks put together, the spatial loops of each block that is left over blocks of threads.
#include <algorithm>

#include "rules/gpu/rules.h"

namespace sator::rules::gpu {

using namespace schedule;
using namespace tir;

namespace {

bool has_thread_loop(const Schedule& s, const std::vector<Loop>& loops) {
  return std::ranges::any_of(loops, [&](const Loop& l) { return s.get(l).kind == LoopKind::thread_binding; });
}

/// The block's loops of one kind of iterators.
std::vector<Loop> loops_of_kind(const std::vector<Loop>& loops, const NormalBlock& block, std::string_view kind) {
  const std::string kinds = block.kinds();
  std::vector<Loop> out;
  for (size_t i = 0; i < loops.size() && i < kinds.size(); ++i) {
    if (kinds[i] == kind[0]) out.push_back(loops[i]);
  }
  return out;
}

}  // namespace

MaybeReason apply_fallback(Schedule& s, const GpuContext& context, GpuChoice& choice) {
  std::vector<NormalBlock> blocks;
  if (MaybeReason reason = normalize(s, blocks)) return reason;
  inline_blocks(s, blocks);
  const int64_t threads = context.gpu.max_threads_per_block;
  std::vector<std::string> names;
  std::vector<std::pair<BlockHandle, Loop>> reductions;
  for (const NormalBlock& b : blocks) {
    const std::vector<Loop> loops = get_loops(s, b.block);
    if (loops.empty() || has_thread_loop(s, loops)) continue;
    std::vector<Loop> spatial = loops_of_kind(loops, b, "S"), reduction = loops_of_kind(loops, b, "R"),
                      other = loops_of_kind(loops, b, "O");
    if (spatial.empty()) spatial.push_back(add_unit_loop(s, b.block));
    std::vector<Loop> order = spatial;
    order.insert(order.end(), reduction.begin(), reduction.end());
    order.insert(order.end(), other.begin(), other.end());
    reorder(s, order);
    const std::vector<Loop> parts = cut(s, fuse_all(s, spatial), {0, threads});
    bind(s, parts[0], "blockIdx.x");
    bind(s, parts[1], "threadIdx.x");
    if (!reduction.empty()) reductions.emplace_back(b.block, reduction[0]);
    names.push_back(text(b.block->text, "[", b.kinds(), "]"));
  }
  for (const auto& [block, loop] : reductions) decompose_reduction(s, block, loop);
  choice = {.block = blocks.empty() ? "" : blocks.back().block->text,
            .form = join(names, ", "),
            .configuration = text("blocks of ", threads, " threads, one spatial iteration each")};
  return {};
}

}  // namespace sator::rules::gpu
