// Reductions over the last axis and what follows from them, row by row: norms, softmax, quantization of activations.
// Rows run in parallel; a row's reduction keeps one partial result per lane, combined in order at the end, so that the
// result is the same for any number of threads.
#include <algorithm>

#include "base/function_ref.h"
#include "rules/nest.h"
#include "rules/rule.h"
#include "schedule/analysis.h"
#include "schedule/primitives.h"
#include "tir/nodes.h"

namespace sator::rules {

using namespace schedule;
using namespace tir;

namespace {

constexpr int64_t kShortRow = 128;
constexpr int64_t kFewLongRows = 16,
                  kLongRow = 16384;  // 64 KiB of floats: fewer rows of more elements are cut in parts

bool is_reduction(const Block& block) {
  return block.init && !block.iter_vars.empty() && block.iter_vars.back()->kind == IterKind::reduce &&
         std::count_if(block.iter_vars.begin(), block.iter_vars.end(), [](const IterVarRef& i) {
           return i->kind == IterKind::reduce;
         }) == 1;
}

/// Whether the sum is a product's: each of two operands is the same along a spatial iterator that the other one follows, as rows
/// are for all columns. Then results share them in registers.
bool shares_operands(const Block& block) {
  std::vector<VarRef> shared;  // by some operand
  walk(block.body, [&](const BufferLoad& load) {
    auto uses = [&](const VarRef& v) {
      return std::ranges::any_of(load.indices, [&](const Expr& i) { return uses_var(i, *v); });
    };
    if (load.buffer == block.writes[0]->buffer || !uses(block.iter_vars.back()->var)) return;
    for (const IterVarRef& i : block.iter_vars)
      if (i->kind == IterKind::spatial && !uses(i->var)) shared.push_back(i->var);
  });
  return std::ranges::any_of(shared, [&](const VarRef& v) { return v != shared.front(); });
}

/// Whether an iterator has a loop: blockize leaves it one value, and puts its loop into the new block.
bool has_loop(const Schedule& s, const BlockHandle& block, size_t iterator) {
  const Expr& value = s.realize(block).values[iterator];
  return std::ranges::any_of(s.sites().loops_above(s.site(block)),
                             [&](int loop) { return uses_var(value, *s.sites()[loop].loop()->var); });
}

/// What the block visits for one value of its first iterator; 0 where an extent is symbolic.
int64_t elements_of_row(const Block& block) {
  int64_t elements = 1;
  for (size_t i = 1; i < block.iter_vars.size(); ++i) elements *= as_int(block.iter_vars[i]->dom->extent).value_or(0);
  return elements;
}

/// Why the blocks are no row-wise program; nothing if they are.
MaybeReason not_row_wise(const Schedule& s, const std::vector<BlockHandle>& blocks) {
  Expr rows;
  bool reduces = false;
  for (const BlockHandle& b : blocks) {
    const Block& block = s.get(b);
    if (block.iter_vars.empty() || block.iter_vars[0]->kind != IterKind::spatial)
      return Reason{.what = text("block ", b->text, " has no rows"), .needs = "a spatial first axis"};
    if (!s.sites().child_blocks(s.site(b)).empty())
      return Reason{.what = text("block ", b->text, " holds other blocks"),
                    .needs = "blocks that lie in no other block"};
    if (!has_loop(s, b, 0) || (block.init && !has_loop(s, b, block.iter_vars.size() - 1)))
      return Reason{.what = text("block ", b->text, " has no loop over its rows or its last axis"),
                    .needs = "a loop for each of them"};
    const Expr& extent = block.iter_vars[0]->dom->extent;
    if (rows && !equal(rows, extent))
      return Reason{.what = text("block ", b->text, " has other rows than the first block"),
                    .needs = "blocks over the same rows"};
    rows = extent;
    if (block.init && as_int(extent).value_or(kFewLongRows) < kFewLongRows && elements_of_row(block) >= kLongRow)
      return Reason{
          .what =
              text("block ", b->text, " reduces ", elements_of_row(block), " elements for each of ", extent, " rows"),
          .needs = text("at least ", kFewLongRows, " rows, or fewer than ", kLongRow, " elements")};
    if (block.init && !is_reduction(block))
      return Reason{.what = text("block ", b->text, " reduces over more than its last axis"),
                    .needs = "a reduction over the last axis"};
    if (block.init && !lies_along_last_iterator(block))
      return Reason{.what = text("what block ", b->text, " reduces does not lie along its last axis"),
                    .needs = "rows that lie in one piece"};
    if (block.init && shares_operands(block))
      return Reason{.what = text("block ", b->text, " sums products for rows and columns"),
                    .needs = "sums of which each reads its own row"};
    reduces |= block.init != nullptr;
  }
  if (!reduces) return Reason{.what = "no block reduces", .needs = "a reduction over the last axis"};
  return {};
}

/// The outermost loop that an iterator of the block depends on.
Loop loop_of(Schedule& s, const BlockHandle& block, FunctionRef<bool(size_t iterator)> chosen) {
  const BlockRealize& realize = s.realize(block);
  for (const Loop& l : get_loops(s, block)) {
    for (size_t i = 0; i < realize.values.size(); ++i) {
      if (chosen(i) && uses_var(realize.values[i], *l)) return l;
    }
  }
  internal_error("an iterator without a loop");
}
Loop reduction_loop(Schedule& s, const BlockHandle& block) {
  const Block& b = s.get(block);
  return loop_of(s, block, [&](size_t i) { return b.iter_vars[i]->kind == IterKind::reduce; });
}

/// A reduction in blocks: partial results for each lane, one vector of them where there were several, then their combination.
struct ByLanes {
  BlockHandle partial, folded, combined;  ///< `partial` is null where the reduction stays one block
};

/// Integers have one result in any order: LLVM makes vectors of a short loop over them, and adds their lanes where they are. Sums of 32
/// codes took 31 us by lanes and 12 so (512 rows of 768, two threads of an Intel Xeon).
///   uneven   also where the row is not whole vectors
ByLanes by_lanes(Schedule& s, const BlockHandle& block, bool uneven) {
  Loop k = get_loops(s, block).back();
  auto extent = as_int(s.get(k).extent);
  if (extent && *extent <= kLanes) return {nullptr, nullptr, block};
  if (extent && *extent <= kShortRow && s.get(block).writes[0]->buffer->dtype.is_integer())
    return {nullptr, nullptr, block};
  if (!uneven && (!extent || *extent % kLanes != 0)) return {nullptr, nullptr, block};
  int64_t lanes = extent ? lanes_along(extent) : kLanes;
  if (!uneven && *extent % lanes != 0) lanes = kLanes;
  std::vector<Loop> ks = schedule::split(s, k, Factors{std::nullopt, factor(k, lanes)});
  const BlockHandle partial = rfactor(s, ks[1], -1, !extent || *extent % lanes != 0);
  return {partial, fold_lanes(s, block, lanes), block};
}

/// Which block's loop over rows the others go into: the first one's, which the others follow, or the last one's, which they precede. The
/// first takes blocks with results of their own, the last those of which a rest is read.
enum class Into : uint8_t { first, last };

/// The rows of these blocks, one after the other.
MaybeReason schedule_row_wise(Schedule& s, const std::vector<BlockHandle>& blocks, bool uneven, Into into) {
  try {
    std::vector<ByLanes> reductions;
    for (const BlockHandle& b : blocks) {
      if (s.get(b).init) reductions.push_back(by_lanes(s, b, uneven));
    }
    std::vector<BlockHandle> all = leaf_blocks(s);
    Loop row = get_loops(s, into == Into::first ? all.front() : all.back())[0];
    if (into == Into::first)
      for (size_t i = 1; i < all.size(); ++i) reverse_compute_at(s, all[i], row, true);
    else
      for (size_t i = all.size() - 1; i-- > 0;) compute_at(s, all[i], row, true);
    for (const BlockHandle& b : all) {
      if (!s.get(b).init) vectorize_last(s, b);
    }
    parallel(s, row);
    for (const ByLanes& r : reductions) {
      if (r.partial) {
        for (size_t i = 0; i < s.get(r.partial).writes.size(); ++i)
          set_scope(s, r.partial, BufferSelector{true, static_cast<int64_t>(i)}, std::string("local"));
        // The first iterator of rfactor's block is the lane.
        Loop lane = loop_of(s, r.partial, [](size_t i) { return i == 0; }), k = reduction_loop(s, r.partial);
        const std::vector<Loop> lanes = schedule::split(s, lane, Factors{std::nullopt, factor(lane, kLanes)});
        reorder(s, std::vector<Loop>{k, lanes[0], lanes[1]});
        unroll(s, lanes[0]);
        vectorize(s, lanes[1]);
        decompose_reduction(s, r.partial, k);
      }
      if (r.folded) schedule_folded(s, r.folded);
      Loop k = reduction_loop(s, r.combined);
      if (r.partial) unroll(s, k);
      decompose_reduction(s, r.combined, k);
    }
  } catch (const Error& e) {
    return e.reason;
  }
  return {};
}

}  // namespace

MaybeReason schedule_rows(Schedule& s, const target::CpuLevel&) {
  inline_cheap(s);
  const std::vector<BlockHandle> blocks = leaf_blocks(s);
  if (MaybeReason reason = not_row_wise(s, blocks)) return reason;
  for (const Into into : {Into::first, Into::last}) {
    Schedule with_tails = s;
    if (schedule_row_wise(with_tails, blocks, true, into)) continue;
    s = std::move(with_tails);
    return {};
  }
  return schedule_row_wise(s, blocks, false, Into::first);
}

}  // namespace sator::rules
