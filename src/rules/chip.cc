#include "rules/chip.h"

#include <algorithm>
#include <map>
#include <span>

#include "rules/rule.h"
#include "schedule/primitives.h"

namespace sator::rules {

using namespace schedule;

namespace {

/// The parts of one loop, in the order of the split: turns of time, then what lies along an axis, then what one PE takes.
struct Parts {
  std::vector<int64_t> blocks;  // of the turns
  int64_t values = 1;           // along an axis
  int64_t at_once = 1;
  bool on_axis = false;
};

std::vector<Parts> parts_of(const ArrayNest& nest, size_t loops) {
  std::vector<Parts> parts(loops);
  for (const ArrayNest::Turn& t : nest.time) parts.at(t.loop).blocks.push_back(t.block);
  for (const auto* axis : {&nest.rows, &nest.columns})
    for (const ArrayNest::Side& side : *axis) {
      Parts& p = parts.at(side.loop);
      p.values = side.values, p.at_once = side.at_once, p.on_axis = true;
    }
  for (const ArrayNest::Side& side : nest.at_once) parts.at(side.loop).at_once = side.at_once;
  return parts;
}

/// What a loop has become.
struct Split {
  std::vector<Loop> turns;
  Loop on_axis, at_once;
};

Split split_loop(Schedule& s, const Loop& loop, const Parts& p, bool apart) {
  // Factors inside of the outermost part, which is left open: it takes what the extent needs.
  std::vector<int64_t> inside;
  const int64_t innermost = p.at_once;
  for (size_t b = 0; b + 1 < p.blocks.size(); ++b) inside.push_back(p.blocks[b] / p.blocks[b + 1]);
  const size_t in_time = inside.size();
  if (!p.blocks.empty() && p.on_axis) inside.push_back(p.blocks.back() / innermost);
  if (innermost > 1 && (p.on_axis || !p.blocks.empty())) inside.push_back(innermost);
  auto parts_by = [&](const Loop& l, std::span<const int64_t> by) {
    std::vector<std::optional<Expr>> factors = {std::nullopt};
    for (int64_t f : by) factors.push_back(factor(l, f));
    return by.empty() ? std::vector<Loop>{l} : schedule::split(s, l, Factors{std::move(factors)});
  };
  std::vector<Loop> loops;
  if (apart && in_time > 0 && in_time < inside.size()) {
    // What is in time is cut into whole tiles of the array first, so that no predicate reaches inside of one.
    loops = parts_by(loop, std::span(inside).subspan(in_time));
    const std::vector<Loop> turns = parts_by(loops.front(), std::span(inside).first(in_time));
    loops.erase(loops.begin());
    loops.insert(loops.begin(), turns.begin(), turns.end());
  } else {
    loops = parts_by(loop, inside);
  }
  Split out;
  size_t next = 0;
  for (size_t b = 0; b < p.blocks.size(); ++b) out.turns.push_back(loops.at(next++));
  if (p.on_axis) out.on_axis = loops.at(next++);
  if (next < loops.size()) out.at_once = loops.at(next);
  return out;
}

/// The loops of a nest once they are split and in order.
struct Tiled {
  BlockHandle block;
  std::vector<Loop> rows, columns, at_once;  // innermost, in this order
  std::vector<Loop> alone;                   // of one value, that the nest does not name: outermost
};

/// With `apart`, what the array does at one stamp is cut off as whole tiles, and loops that the nest does not name go to the outside; else they are among what one PE does at once.
Tiled tile(Schedule& s, const std::string& block_name, const ArrayNest& nest, bool apart) {
  Tiled out{.block = get_block(s, block_name, s.func_name())};
  const std::vector<Loop> loops = get_loops(s, out.block);
  const std::vector<Parts> parts = parts_of(nest, loops.size());
  std::vector<Split> splits;
  for (size_t l = 0; l < loops.size(); ++l) splits.push_back(split_loop(s, loops[l], parts[l], apart));

  for (size_t l = 0; l < loops.size(); ++l)
    if (splits[l].at_once) (apart && parts[l].at_once == 1 ? out.alone : out.at_once).push_back(splits[l].at_once);
  std::vector<Loop> order = out.alone;
  std::vector<size_t> turn(loops.size(), 0);
  for (const ArrayNest::Turn& t : nest.time) order.push_back(splits[t.loop].turns.at(turn[t.loop]++));
  auto along = [&](const std::vector<ArrayNest::Side>& axis, std::vector<Loop>& on_axis) {
    for (auto side = axis.rbegin(); side != axis.rend(); ++side) on_axis.push_back(splits[side->loop].on_axis);
    order.insert(order.end(), on_axis.begin(), on_axis.end());
  };
  along(nest.rows, out.rows);
  along(nest.columns, out.columns);
  order.insert(order.end(), out.at_once.begin(), out.at_once.end());
  if (order.size() > 1) reorder(s, order);
  return out;
}

void note_memories(Schedule& s, const BlockHandle& block, const ArrayNest& nest) {
  std::vector<NodeRef> held;
  for (int64_t since : nest.held_since) held.push_back(int_imm(since));
  annotate(s, Value(block), std::string(kHeldSince), Value(NodeRef(make<Array>(std::move(held)))));
  annotate(s, Value(block), std::string(kWeight), Value(nest.weight));
}

}  // namespace

void schedule_on_array(Schedule& s, const std::string& block_name, const ArrayNest& nest) {
  const Tiled tiled = tile(s, block_name, nest, false);
  auto bind_axis = [&](const std::vector<Loop>& axis, const char* thread) {
    if (!axis.empty()) bind(s, axis.size() > 1 ? fuse(s, axis) : axis[0], std::string(thread));
  };
  bind_axis(tiled.rows, "pe.x");
  bind_axis(tiled.columns, "pe.y");
  for (const Loop& l : tiled.at_once) unroll(s, l);
  note_memories(s, tiled.block, nest);
}

void tensorize_on_array(Schedule& s, const std::string& block_name, const ArrayNest& nest,
                        const std::string& tensor_intrin) {
  const Tiled tiled = tile(s, block_name, nest, true);
  if (tiled.rows.size() != 1 || tiled.columns.size() != 1)
    s.fail({.what = text("block ", quoted(block_name), " has several loops along an axis of the array"),
            .needs = "one loop along the rows and one along the columns",
            .hint = "use schedule_on_array"});
  for (const Loop& l : tiled.alone) unroll(s, l);  // of one value: no loop in time
  tensorize(s, Value(tiled.rows.front()), tensor_intrin, true);
  note_memories(s, get_block(s, block_name + "_o", s.func_name()), nest);
}

}  // namespace sator::rules
