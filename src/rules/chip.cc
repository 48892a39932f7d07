#include "rules/chip.h"

#include <algorithm>
#include <map>

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

Split split_loop(Schedule& s, const Loop& loop, const Parts& p) {
  // Factors inside of the outermost part, which is left open: it takes what the extent needs.
  std::vector<int64_t> inside;
  const int64_t innermost = p.at_once;
  for (size_t b = 0; b + 1 < p.blocks.size(); ++b) inside.push_back(p.blocks[b] / p.blocks[b + 1]);
  if (!p.blocks.empty() && p.on_axis) inside.push_back(p.blocks.back() / innermost);
  if (innermost > 1 && (p.on_axis || !p.blocks.empty())) inside.push_back(innermost);
  std::vector<Loop> loops = {loop};
  if (!inside.empty()) {
    std::vector<std::optional<Expr>> factors = {std::nullopt};
    for (int64_t f : inside) factors.push_back(factor(loop, f));
    loops = schedule::split(s, loop, Factors{std::move(factors)});
  }
  Split out;
  size_t next = 0;
  for (size_t b = 0; b < p.blocks.size(); ++b) out.turns.push_back(loops.at(next++));
  if (p.on_axis) out.on_axis = loops.at(next++);
  if (next < loops.size()) out.at_once = loops.at(next);
  return out;
}

}  // namespace

void schedule_on_array(Schedule& s, const std::string& block_name, const ArrayNest& nest) {
  const BlockHandle block = get_block(s, block_name, s.func_name());
  const std::vector<Loop> loops = get_loops(s, block);
  const std::vector<Parts> parts = parts_of(nest, loops.size());
  std::vector<Split> splits;
  for (size_t l = 0; l < loops.size(); ++l) splits.push_back(split_loop(s, loops[l], parts[l]));

  std::vector<Loop> order, rows, columns, at_once;
  std::vector<size_t> turn(loops.size(), 0);
  for (const ArrayNest::Turn& t : nest.time) order.push_back(splits[t.loop].turns.at(turn[t.loop]++));
  auto along = [&](const std::vector<ArrayNest::Side>& axis, std::vector<Loop>& out) {
    for (auto side = axis.rbegin(); side != axis.rend(); ++side) out.push_back(splits[side->loop].on_axis);
    order.insert(order.end(), out.begin(), out.end());
  };
  along(nest.rows, rows);
  along(nest.columns, columns);
  for (const Split& split : splits)
    if (split.at_once) at_once.push_back(split.at_once);
  order.insert(order.end(), at_once.begin(), at_once.end());
  if (order.size() > 1) reorder(s, order);
  auto bind_axis = [&](const std::vector<Loop>& axis, const char* thread) {
    if (!axis.empty()) bind(s, axis.size() > 1 ? fuse(s, axis) : axis[0], std::string(thread));
  };
  bind_axis(rows, "pe.x");
  bind_axis(columns, "pe.y");
  for (const Loop& l : at_once) unroll(s, l);
  std::vector<NodeRef> held;
  for (int64_t since : nest.held_since) held.push_back(int_imm(since));
  annotate(s, Value(block), std::string(kHeldSince), Value(NodeRef(make<Array>(std::move(held)))));
  annotate(s, Value(block), std::string(kWeight), Value(nest.weight));
}

}  // namespace sator::rules
