// What the GPU rules ask of a function: its blocks in normal form, what they read, and how sums are shared by threads.
#pragma once

#include "rules/gpu/gpu.h"
#include "rules/rule.h"
#include "schedule/primitives.h"

namespace sator::rules::gpu {

using schedule::BlockHandle;
using schedule::Loop;
using schedule::MaybeReason;
using schedule::Schedule;

/// A reason to decline.
inline Reason because(std::string what, std::string needs) {
  return {.what = std::move(what), .needs = std::move(needs)};
}

// ---- Loops ----

/// Divides a loop; a factor of 0 is left open. Loops of one iteration stay in the bindings.
std::vector<Loop> cut(Schedule& s, const Loop& loop, std::initializer_list<int64_t> factors);
std::optional<int64_t> constant_extent(const Schedule& s, const Loop& loop);
/// The last `count` loops.
std::vector<Loop> last(const std::vector<Loop>& loops, size_t count);
std::vector<Loop> first(const std::vector<Loop>& loops, size_t count);
/// The loops as one, which counts in their dtype: a GPU's rules assume of int32 sizes that no nest has 2^31 iterations or more.
Loop fuse_all(Schedule& s, const std::vector<Loop>& loops);
/// The loop's iterations are unrolled up to `steps` statements, in the text of the kernel too.
void annotate_unroll(Schedule& s, const Loop& loop, int64_t steps);
/// The largest of the factors that divides n; 1 if none does.
int64_t largest_divisor(int64_t n, std::initializer_list<int64_t> factors);
/// Threads for a loop: its extent rounded down to a power of two, at most `most`; `most` where it is not constant.
int64_t threads_for(const Schedule& s, const Loop& loop, int64_t most);

// ---- Blocks in normal form ----

struct BlockIter {
  tir::IterKind kind;
  VarRef var;
  Expr extent;
  Loop loop;
};
/// A block each of whose iterators is one loop, in the loops' order; none of them runs once, but for a first spatial one where
/// there is no other.
struct NormalBlock {
  BlockHandle block;
  std::vector<BlockIter> iters;
  bool is_reduction = false;  ///< a reduction block of the function (schedule/analysis.h)

  bool is_spatial() const;
  /// "SSR": spatial, reduction, other.
  std::string kinds() const;
  /// The iterator of that variable, or null.
  const BlockIter* iter_of(const Var& var) const;
};
/// Brings all blocks without blocks inside to normal form, in program order. Declines where a block's iterators are not its loops.
MaybeReason normalize(Schedule& s, std::vector<NormalBlock>& blocks);

/// Puts blocks into their consumers, then into their producers, until none can be put anywhere; those that went are taken out of
/// the list.
void inline_blocks(Schedule& s, std::vector<NormalBlock>& blocks);
/// The same for each run of spatial blocks between others.
void inline_spatial_runs(Schedule& s, std::vector<NormalBlock>& blocks);
/// Normal form, spatial blocks put together; declines unless one block is left, or two, of which the second is spatial.
MaybeReason main_and_epilogue(Schedule& s, std::optional<NormalBlock>& main, std::optional<NormalBlock>& epilogue);

// ---- Accesses ----

/// The iterators of the block that the box uses.
std::vector<VarRef> iterators_in(const tir::Block& block, const tir::BufferRegion& box);
/// All boxes that the block reads and writes are single elements.
bool touches_elements(const tir::Block& block);
/// The place in memory, in elements from its begin, of what the block reads with most of the iterators that are `counted`; the first
/// such read.
Expr dominant_read(const tir::Block& block, const std::function<bool(const VarRef&)>& counted);
/// y of a block that does nothing but x[...] = x[...] + y; null of others.
Expr summand(const tir::Block& block);
/// The epilogue reads what the block writes with fewer iterators than it has: one result goes to many.
bool is_broadcast(const Schedule& s, const BlockHandle& block, const BlockHandle& epilogue);

/// Vectors among the operands of a sum of products: what is read with some of the `counted` iterators, but not with all. Empty unless the block
/// is such a sum, and something is read with all of them.
std::vector<BufferRef> vector_operands(const tir::Block& block, const std::function<bool(const VarRef&)>& counted);

// ---- Sums that threads share ----

/// What threads and lanes sum for themselves, what each thread makes of its lanes, and the sum of the threads: three blocks of
/// what was one.
struct SharedSum {
  BlockHandle lanes, threads, whole;
};
/// Takes apart the sum over `thread` and `lane`, the block's innermost loops, neighbours.
///   threads  iterations of `thread`
SharedSum share_sum(Schedule& s, const BlockHandle& block, const Loop& thread, const Loop& lane, int64_t threads);

/// Where producers are put into `block`, at any distance; what the schedule refuses stays.
void inline_producers(Schedule& s, const BlockHandle& block);
/// Puts all that is made of the block's result into the block. Declines where something remains.
MaybeReason inline_consumers(Schedule& s, const BlockHandle& block);

}  // namespace sator::rules::gpu
