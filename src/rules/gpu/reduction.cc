// One sum, and what follows from it element by element. Threads sum parts of it for themselves, then together.
#include <algorithm>

#include "arith/iter_map.h"
#include "rules/gpu/rules.h"

namespace sator::rules::gpu {

using namespace schedule;
using namespace tir;

namespace {

/// The sum as loops over spatial positions, over terms, and over the positions or terms whose codes share a word of what is
/// read (one, where none do).
struct SumLoops {
  bool sums_innermost = false;   ///< the axis that is innermost in memory is one of the sum
  int64_t packed_positions = 0;  ///< positions that share a word; 0: none
  /// For each spatial iterator of the block, where its loop is in the fused one; and which of these was divided.
  std::vector<size_t> order;
  size_t divided = 0;
};

/// Fuses the block's loops in the order in which memory is read. Declines where the access is not of that form.
MaybeReason order_by_memory(Schedule& s, const NormalBlock& block, SumLoops& out) {
  const Block& b = s.get(block.block);
  if (!touches_elements(b)) return because("the block reads boxes", "reads and writes of single elements");
  const std::string form =
      "a read of the whole block that walks memory by its iterators, with at most one of them divided";
  arith::Analyzer analyzer;
  arith::RangeMap domains;
  for (const IterVarRef& i : b.iter_vars) domains[i->var] = i->dom, analyzer.bind(i->var, i->dom);
  const Expr read = dominant_read(b, [](const VarRef&) { return true; });
  if (!read) return because("the block reads nothing", form);
  const arith::IterSum access = arith::normalize_to_iter_sum(read, domains, analyzer);
  if (!is_zero(access.base)) return because(text("the read at ", read, " is not a walk through memory"), form);

  std::vector<Loop> spatial, terms, words;
  std::vector<const BlockIter*> seen;
  Loop divided;
  for (const arith::IterSplit& part : access.args) {
    const BlockIter* iter =
        part.source->expr && part.source->expr.as<Var>() ? block.iter_of(*part.source->expr.as<Var>()) : nullptr;
    if (!iter || std::ranges::find(seen, iter) != seen.end())
      return because(text("the read at ", read, " uses an iterator in two ways"), form);
    seen.push_back(iter);
    Loop loop = iter->loop;
    const auto per_word = as_int(part.lower_factor);
    out.sums_innermost = iter->kind == IterKind::reduce;
    if (!per_word || *per_word > 1) {
      if (!words.empty() || !per_word) return because("several iterators are divided where memory is read", form);
      divided = loop;
      out.divided = spatial.size();
      std::vector<Loop> parts = cut(s, loop, {0, *per_word});
      loop = parts[0];
      words.push_back(parts[1]);
      if (!out.sums_innermost) out.packed_positions = *per_word;
    }
    (out.sums_innermost ? terms : spatial).push_back(loop);
  }
  for (const BlockIter& i : block.iters) {
    if (std::ranges::find(seen, &i) != seen.end()) continue;
    if (i.kind != IterKind::spatial || !is_one(i.extent))
      return because(text("iterator ", i.var->name, " is not used by the read"), form);
    spatial.push_back(i.loop);
  }
  for (const BlockIter& i : block.iters) {
    if (i.kind != IterKind::spatial) continue;
    auto at = std::ranges::find(spatial, i.loop);
    out.order.push_back(at == spatial.end() ? out.divided : static_cast<size_t>(at - spatial.begin()));
  }
  if (spatial.empty() || terms.empty())
    return because("the block has no spatial loop or no sum", "one of each at least");
  if (spatial.size() != out.order.size()) return because("an iterator is neither spatial nor of the sum", "no others");
  if (words.empty()) words.push_back(add_unit_loop(s, block.block));
  std::vector<Loop> all = spatial;
  all.insert(all.end(), terms.begin(), terms.end());
  all.insert(all.end(), words.begin(), words.end());
  reorder(s, all);
  fuse_all(s, spatial);
  fuse_all(s, terms);
  return {};
}

/// The block's own spatial loops, where it finishes the sum, as one in the order of memory; what shares a word stays a loop of its own.
struct ResultLoops {
  Loop positions, packed;
};
ResultLoops fuse_positions(Schedule& s, const std::vector<Loop>& loops, const SumLoops& sum) {
  if (sum.packed_positions == 0) return {fuse_all(s, loops), nullptr};
  std::vector<Loop> in_memory;
  for (size_t i = 0; i < loops.size(); ++i) in_memory.push_back(loops.at(sum.order.at(i)));
  if (in_memory.size() > 1) reorder(s, in_memory);
  const std::vector<Loop> parts = cut(s, in_memory[sum.divided], {0, sum.packed_positions});
  in_memory[sum.divided] = parts[0];
  std::vector<Loop> all = in_memory;
  all.push_back(parts[1]);
  reorder(s, all);
  return {fuse_all(s, in_memory), parts[1]};
}

/// Terms lie side by side: the threads of a block share the sum of one position.
void schedule_sum_innermost(Schedule& s, const GpuContext& context, const BlockHandle& block, const SumLoops& sum,
                            const std::optional<NormalBlock>& epilogue, GpuChoice& choice) {
  const Loop terms = get_loops(s, block)[1];
  const int64_t threads = threads_for(s, terms, context.gpu.max_threads_per_block);
  const BlockHandle partial = rfactor(s, cut(s, terms, {0, threads})[1], 0, true);
  const std::vector<Loop> loops = get_loops(s, partial);
  const Loop position = loops[0], own_terms = loops[1], thread = loops[2];
  reorder(s, std::vector<Loop>{position, thread, own_terms});
  bind(s, position, "blockIdx.x");
  bind(s, thread, "threadIdx.x");
  annotate_unroll(s, thread, 256);
  set_scope(s, partial, BufferSelector{true, int64_t{0}}, "local");
  decompose_reduction(s, partial, own_terms);

  reverse_compute_at(s, block, position, true);
  std::vector<Loop> own = get_loops(s, block);
  const Loop across = own[1];
  const ResultLoops result = fuse_positions(s, last(own, own.size() - 2), sum);
  std::vector<Loop> order = {result.positions, across};
  if (result.packed) order.push_back(result.packed);
  reorder(s, order);
  bind(s, across, "threadIdx.x");
  choice.configuration = text(threads, " threads share each sum");
  if (!epilogue) return;
  reverse_compute_at(s, epilogue->block, position, true);
  const bool broadcast = is_broadcast(s, block, epilogue->block);
  set_scope(s, block, BufferSelector{true, int64_t{0}}, broadcast ? "shared" : "local");
  if (!broadcast) return;
  std::vector<Loop> rest = get_loops(s, epilogue->block);
  bind(s, cut(s, fuse_all(s, last(rest, rest.size() - 1)), {0, threads})[1], "threadIdx.x");
}

/// Positions lie side by side: 16 of them by 16 parts of the sum are a block of threads.
MaybeReason schedule_positions_innermost(Schedule& s, const NormalBlock& main, const SumLoops& sum,
                                         const std::optional<NormalBlock>& epilogue, GpuChoice& choice) {
  const BlockHandle& block = main.block;
  constexpr int64_t kAcross = 16, kParts = 16;
  // Thread blocks divide the innermost spatial loop evenly: what is computed with the result then finds all of it.
  int64_t positions = kAcross;
  std::optional<int64_t> innermost;
  for (const BlockIter& i : main.iters) {
    if (i.kind == IterKind::spatial) innermost = as_int(i.extent);
  }
  while (positions > 1 && !(innermost && *innermost % positions == 0)) --positions;

  std::vector<Loop> whole = get_loops(s, block);
  cut(s, whole[0], {0, positions});
  const BlockHandle partial = rfactor(s, cut(s, whole[1], {0, kParts})[1], 0, true);
  const std::vector<Loop> loops = get_loops(s, partial);
  const Loop group = loops[0], position = loops[1], own_terms = loops[2], part = loops[3];
  reorder(s, std::vector<Loop>{group, position, part, own_terms});
  bind(s, position, "threadIdx.x");
  bind(s, part, "threadIdx.y");
  bind(s, group, "blockIdx.x");
  set_scope(s, partial, BufferSelector{true, int64_t{0}}, "local");
  decompose_reduction(s, partial, own_terms);

  reverse_compute_at(s, block, group, true);
  std::vector<Loop> own = get_loops(s, block);
  const Loop across = own[1];
  const ResultLoops result = fuse_positions(s, last(own, own.size() - 2), sum);
  std::vector<Loop> order = {result.positions};
  if (result.packed) order.push_back(result.packed);
  order.push_back(across);
  reorder(s, order);
  bind(s, result.positions, "threadIdx.x");
  bind(s, across, "threadIdx.y");
  choice.configuration = text(positions, " positions x ", kParts, " parts of the sum");
  if (!epilogue) return {};
  reverse_compute_at(s, epilogue->block, group, true);
  const bool broadcast = is_broadcast(s, block, epilogue->block);
  set_scope(s, block, BufferSelector{true, int64_t{0}}, broadcast ? "shared" : "local");
  std::vector<Loop> rest = get_loops(s, epilogue->block);
  const Loop all = fuse_all(s, last(rest, rest.size() - 1));
  if (broadcast) {
    const std::vector<Loop> parts = cut(s, all, {0, positions, kParts});
    bind(s, parts[1], "threadIdx.x");
    bind(s, parts[2], "threadIdx.y");
  } else {
    bind(s, cut(s, all, {positions, 0})[0], "threadIdx.x");
  }
  return {};
}

}  // namespace

MaybeReason apply_reduction(Schedule& s, const GpuContext& context, GpuChoice& choice) {
  std::optional<NormalBlock> main, epilogue;
  if (MaybeReason reason = main_and_epilogue(s, main, epilogue)) return reason;
  choice.block = main->block->text;
  if (!main->is_reduction || s.get(main->block).writes.size() != 1 || !summand(s.get(main->block)))
    return because(text("block ", main->block->text, " is not a sum"), "a reduction x[...] = x[...] + y, the only one");
  SumLoops sum;
  if (MaybeReason reason = order_by_memory(s, *main, sum)) return reason;
  choice.form =
      text(main->kinds(), sum.sums_innermost ? ", summed along the innermost axis" : ", positions side by side");
  if (!sum.sums_innermost) return schedule_positions_innermost(s, *main, sum, epilogue, choice);
  schedule_sum_innermost(s, context, main->block, sum, epilogue, choice);
  return {};
}

}  // namespace sator::rules::gpu
