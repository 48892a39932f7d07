#include "rules/chip.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "rules/rule.h"
#include "schedule/primitives.h"

namespace sator::rules {

using namespace schedule;

namespace {

/// The parts of one loop, in the order of the split: the core's block, turns of time, what lies along the rows and the
/// columns, then what one PE takes.
struct Parts {
  int64_t core_block = 0;       // 0: cores do not share the loop
  std::vector<int64_t> blocks;  // of the turns
  int64_t columns = 1;          // values along the columns where the loop is on both axes
  int64_t at_once = 1;
  bool on_rows = false, on_columns = false;

  bool on_axis() const { return on_rows || on_columns; }

  /// Consecutive values that each part but the last runs over, outermost first. The whole loop is inside of the first.
  std::vector<int64_t> sizes() const {
    std::vector<int64_t> sizes;
    if (core_block > 0) sizes.push_back(core_block);
    sizes.insert(sizes.end(), blocks.begin(), blocks.end());
    if (blocks.empty() && !on_axis()) {
      if (core_block == 0) return {};  // all of it at once
      return sizes;
    }
    // The last turn's block is what lies on the array; where nothing does, what one PE takes.
    if (!on_axis()) {
      if (at_once == 1) sizes.pop_back();
      return sizes;
    }
    if (on_rows && on_columns) sizes.push_back(columns * at_once);
    if (at_once > 1) sizes.push_back(at_once);
    return sizes;
  }
};

std::vector<Parts> parts_of(const ArrayNest& nest, size_t loops) {
  std::vector<Parts> parts(loops);
  for (const ArrayNest::Share& share : nest.cores) parts.at(share.loop).core_block = share.block;
  for (const ArrayNest::Turn& t : nest.time) parts.at(t.loop).blocks.push_back(t.block);
  for (const ArrayNest::Side& side : nest.rows) {
    Parts& p = parts.at(side.loop);
    p.at_once = side.at_once, p.on_rows = true;
  }
  for (const ArrayNest::Side& side : nest.columns) {
    Parts& p = parts.at(side.loop);
    p.at_once = side.at_once, p.on_columns = true, p.columns = side.values;
  }
  for (const ArrayNest::Side& side : nest.at_once) parts.at(side.loop).at_once = side.at_once;
  return parts;
}

/// What a loop has become.
struct Split {
  Loop core;
  std::vector<Loop> turns;
  Loop on_rows, on_columns, at_once;
};

/// Cuts a loop into one over blocks of sizes[0] values, one over blocks of sizes[1] within, and so on. Sizes that do not
/// divide the one before are cut off by a split of their own, so that each block begins anew.
///   whole   of the sizes: what must be cut off as whole blocks first, so that no predicate reaches inside of them
std::vector<Loop> cut(Schedule& s, const Loop& loop, std::span<const int64_t> sizes, size_t whole) {
  if (sizes.empty()) return {loop};
  if (whole > 0 && whole < sizes.size()) {
    std::vector<Loop> loops = cut(s, loop, sizes.subspan(whole), 0);
    std::vector<int64_t> outside;  // in blocks of what was cut off
    for (int64_t size : sizes.first(whole)) outside.push_back(size / sizes[whole]);
    const std::vector<Loop> turns = cut(s, loops.front(), outside, 0);
    loops.erase(loops.begin());
    loops.insert(loops.begin(), turns.begin(), turns.end());
    return loops;
  }
  size_t even = 1;
  while (even < sizes.size() && sizes[even - 1] % sizes[even] == 0) ++even;
  std::vector<std::optional<Expr>> factors = {std::nullopt};
  for (size_t i = 0; i < even; ++i) factors.push_back(factor(loop, i + 1 < even ? sizes[i] / sizes[i + 1] : sizes[i]));
  std::vector<Loop> loops = schedule::split(s, loop, Factors{std::move(factors)});
  const std::vector<Loop> inside = cut(s, loops.back(), sizes.subspan(even), 0);
  loops.pop_back();
  loops.insert(loops.end(), inside.begin(), inside.end());
  return loops;
}

Split split_loop(Schedule& s, const Loop& loop, const Parts& p, bool apart) {
  const size_t around_tiles = p.blocks.empty() ? 0 : p.blocks.size() - 1 + (p.core_block > 0 ? 1 : 0);
  const std::vector<Loop> loops = cut(s, loop, p.sizes(), apart ? around_tiles : 0);
  Split out;
  size_t next = 0;
  if (p.core_block > 0) out.core = loops.at(next++);
  for (size_t b = 0; b < p.blocks.size(); ++b) out.turns.push_back(loops.at(next++));
  if (p.on_rows) out.on_rows = loops.at(next++);
  if (p.on_columns) out.on_columns = loops.at(next++);
  if (next < loops.size()) out.at_once = loops.at(next);
  return out;
}

/// The loops of a nest once they are split and in order.
struct Tiled {
  BlockHandle block;
  std::vector<Loop> cores;                   // outermost
  std::vector<Loop> rows, columns, at_once;  // innermost, in this order
  std::vector<Loop> alone;                   // of one value, that the nest does not name: outside of the others in time
};

/// With `apart`, what the array does at one stamp is cut off as whole tiles, and loops that the nest does not name go to the outside; else they are among what one PE does at once.
Tiled tile(Schedule& s, const std::string& block_name, const ArrayNest& nest, bool apart) {
  Tiled out{.block = get_block(s, block_name, s.func_name())};
  const std::vector<Loop> loops = get_loops(s, out.block);
  const Sites& sites = s.sites();
  int around = sites[s.site(out.block)].parent;
  while (around >= 0 && sites[around].loop()) around = sites[around].parent;
  if (const tir::BlockRealize* outer = around < 0 ? nullptr : sites[around].realize(); outer && !outer->values.empty())
    s.fail({.what = text("block ",
                         string_literal(block_name),
                         " lies in block ",
                         string_literal(outer->block->name->text),
                         ", whose loops its nest counts too"),
            .needs = "a block whose loops are all around it in the root block",
            .hint = "write it without the block around it"});
  const std::vector<Parts> parts = parts_of(nest, loops.size());
  std::vector<Split> splits;
  for (size_t l = 0; l < loops.size(); ++l) splits.push_back(split_loop(s, loops[l], parts[l], apart));

  for (size_t l = 0; l < loops.size(); ++l)
    if (splits[l].at_once) (apart && parts[l].at_once == 1 ? out.alone : out.at_once).push_back(splits[l].at_once);
  for (auto share = nest.cores.rbegin(); share != nest.cores.rend(); ++share)
    out.cores.push_back(splits[share->loop].core);
  std::vector<Loop> order = out.cores;
  order.insert(order.end(), out.alone.begin(), out.alone.end());
  std::vector<size_t> turn(loops.size(), 0);
  for (const ArrayNest::Turn& t : nest.time) order.push_back(splits[t.loop].turns.at(turn[t.loop]++));
  auto along = [&](const std::vector<ArrayNest::Side>& axis, Loop Split::* part, std::vector<Loop>& on_axis) {
    for (auto side = axis.rbegin(); side != axis.rend(); ++side) on_axis.push_back(splits[side->loop].*part);
    order.insert(order.end(), on_axis.begin(), on_axis.end());
  };
  along(nest.rows, &Split::on_rows, out.rows);
  along(nest.columns, &Split::on_columns, out.columns);
  order.insert(order.end(), out.at_once.begin(), out.at_once.end());
  if (order.size() > 1) reorder(s, order);
  return out;
}

void bind_axis(Schedule& s, const std::vector<Loop>& axis, const char* thread) {
  if (!axis.empty()) bind(s, axis.size() > 1 ? fuse(s, axis) : axis[0], std::string(thread));
}

/// Axes of cores are as many as loops, so that none need be fused; a fourth shares the last axis.
void bind_cores(Schedule& s, std::vector<Loop> cores) {
  for (const char* axis : {"core.x", "core.y"})
    if (!cores.empty()) {
      bind(s, cores.back(), std::string(axis));
      cores.pop_back();
    }
  bind_axis(s, cores, "core.z");
}

void note_memories(Schedule& s, const BlockHandle& block, const ArrayNest& nest) {
  std::vector<NodeRef> held;
  for (int64_t since : nest.held_since) held.push_back(int_imm(since));
  annotate(s, Value(block), std::string(kHeldSince), Value(NodeRef(make<Array>(std::move(held)))));
  annotate(s, Value(block), std::string(kWeight), Value(nest.weight));
  if (nest.stored_outside.empty()) return;
  std::vector<NodeRef> outside;
  for (const std::string& name : nest.stored_outside) outside.push_back(string_imm(name));
  annotate(s, Value(block), std::string(kStoredOutside), Value(NodeRef(make<Array>(std::move(outside)))));
}

}  // namespace

void schedule_on_array(Schedule& s, const std::string& block_name, const ArrayNest& nest) {
  const Tiled tiled = tile(s, block_name, nest, false);
  bind_cores(s, tiled.cores);
  bind_axis(s, tiled.rows, "pe.x");
  bind_axis(s, tiled.columns, "pe.y");
  for (const Loop& l : tiled.at_once) unroll(s, l);
  note_memories(s, tiled.block, nest);
}

void tensorize_on_array(Schedule& s, const std::string& block_name, const ArrayNest& nest,
                        const std::string& tensor_intrin) {
  const Tiled tiled = tile(s, block_name, nest, true);
  if (tiled.rows.size() != 1 || tiled.columns.size() != 1)
    s.fail({.what = text("block ", string_literal(block_name), " has several loops along an axis of the array"),
            .needs = "one loop along the rows and one along the columns",
            .hint = "use schedule_on_array"});
  bind_cores(s, tiled.cores);
  for (const Loop& l : tiled.alone) unroll(s, l);  // of one value: no loop in time
  tensorize(s, Value(tiled.rows.front()), tensor_intrin, true);
  note_memories(s, get_block(s, block_name + "_o", s.func_name()), nest);
}

void pad_for_array(Schedule& s, const std::string& block_name, const std::vector<int64_t>& tiles) {
  const BlockHandle block = get_block(s, block_name, s.func_name());
  std::set<BlockHandle> before;
  for (int i = 0; i < s.sites().count(); ++i)
    if (const tir::BlockRealize* realize = s.sites()[i].realize()) before.insert(realize->block->name);
  pad_einsum(s, block, tiles);
  auto mark = [&](const std::vector<BlockHandle>& neighbours, const char* direction) {
    for (const BlockHandle& b : neighbours)
      if (!before.contains(b)) annotate(s, Value(b), std::string(kPadding), Value(std::string(direction)));
  };
  mark(get_producers(s, block), "in");
  mark(get_consumers(s, block), "out");
}

}  // namespace sator::rules
