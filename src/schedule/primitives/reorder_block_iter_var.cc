#include <algorithm>
#include <set>

#include "schedule/edit.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

/// Why the iterators cannot be put in this order; nothing if they can.
static MaybeReason cannot_reorder(const Schedule& s, const BlockHandle& block, const std::vector<int64_t>& order) {
  const auto count = static_cast<int64_t>(s.get(block).iter_vars.size());
  const bool inside = std::ranges::all_of(order, [&](int64_t i) { return i >= 0 && i < count; });
  const auto different = static_cast<int64_t>(std::set<int64_t>(order.begin(), order.end()).size());
  if (inside && different == count && static_cast<int64_t>(order.size()) == count) return {};
  return block_refusal(
      s,
      s.site(block),
      text("has ", count, " iterators, and ", order.size(), " places are given, ", different, " of them different"),
      text("each number from 0 to ", count - 1, " once"),
      "name all iterators by their present places");
}

/// Puts a block's iterators in another order: `order[k]` is the present place of the k-th. Its loops stay as they are.
static void do_reorder_block_iter_var(Schedule& s, BlockHandle block, std::vector<int64_t> order) {
  s.require(cannot_reorder(s, block, order));
  const BlockRealize& old = s.realize(block);
  std::vector<IterVarRef> iters;
  std::vector<Expr> values;
  for (int64_t i : order) {
    iters.push_back(old.block->iter_vars[static_cast<size_t>(i)]);
    values.push_back(old.values[static_cast<size_t>(i)]);
  }
  BlockRef reordered = with(old.block, &Block::iter_vars, std::move(iters));
  s.replace(Stmt(&old), make<BlockRealize>(std::move(values), old.predicate, reordered));
}

const Primitive<void(BlockHandle, std::vector<int64_t>)> reorder_block_iter_var{
    "reorder_block_iter_var",
    do_reorder_block_iter_var,
    {"block", "new_order"},
    "puts a block's iterators in another order"};

}  // namespace sator::schedule
