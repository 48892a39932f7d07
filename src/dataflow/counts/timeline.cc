#include "dataflow/counts/timeline.h"

#include <numeric>

#include "base/text.h"

namespace sator::dataflow {

std::variant<Timeline, Reason> Timeline::build(const BoxList& cells, size_t limit) {
  Timeline timeline;
  timeline.depth_ = cells.axes();
  timeline.limit_ = limit;
  std::vector<uint32_t> all(cells.size());
  std::iota(all.begin(), all.end(), 0u);
  std::vector<std::vector<Place>> places(static_cast<size_t>(cells.axes()));
  Box outer;
  bool fits =
      all.empty() || (timeline.grow(cells, all, 0, timeline.root_) && timeline.collect(timeline.root_, outer, places));
  for (int depth = 0; fits && depth < timeline.depth_ && !all.empty(); ++depth)
    fits = timeline.add_steps(places[static_cast<size_t>(depth)], depth);
  if (!fits)
    return Reason{.what = text("the time stamps form more than ", limit, " intervals"),
                  .needs = "a time map whose coordinates run without gaps",
                  .hint = "write gaps as a further time coordinate"};
  return timeline;
}

bool Timeline::grow(const BoxList& cells, const std::vector<uint32_t>& chosen, int depth, int& node) {
  Node made;
  if (depth < depth_) {
    const size_t axis = static_cast<size_t>(depth);
    std::vector<int64_t> cuts;
    for (uint32_t c : chosen) {
      cuts.push_back(cells[c][axis].lo);
      cuts.push_back(cells[c][axis].hi + 1);
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<uint32_t> covering, previous;
    int below = -1;
    for (size_t k = 0; k + 1 < cuts.size(); ++k) {
      covering.clear();
      for (uint32_t c : chosen)
        if (cells[c][axis].lo <= cuts[k] && cells[c][axis].hi >= cuts[k]) covering.push_back(c);
      if (covering.empty()) {
        previous.clear();
        continue;
      }
      if (covering != previous && !grow(cells, covering, depth + 1, below)) return false;
      previous = covering;
      Interval values{cuts[k], cuts[k + 1] - 1};
      if (!made.slabs.empty() && made.slabs.back().below == below && made.slabs.back().values.hi + 1 == values.lo)
        made.slabs.back().values.hi = values.hi;
      else
        made.slabs.push_back({values, below});
    }
  }
  node = intern(std::move(made), depth);
  return nodes_.size() <= limit_;
}

int Timeline::intern(Node node, int depth) {
  if (depth == depth_) {
    node.count = 1;
  } else {
    for (const Slab& s : node.slabs) node.count += nodes_[static_cast<size_t>(s.below)].count * s.values.size();
    const Node& low = nodes_[static_cast<size_t>(node.slabs.front().below)];
    const Node& high = nodes_[static_cast<size_t>(node.slabs.back().below)];
    node.first.push_back(node.slabs.front().values.lo);
    node.first.insert(node.first.end(), low.first.begin(), low.first.end());
    node.last.push_back(node.slabs.back().values.hi);
    node.last.insert(node.last.end(), high.last.begin(), high.last.end());
  }
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].first.size() == node.first.size() && nodes_[i].slabs == node.slabs) return static_cast<int>(i);
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size() - 1);
}

bool Timeline::collect(int node, Box& outer, std::vector<std::vector<Place>>& places) const {
  const size_t depth = outer.size();
  if (depth == static_cast<size_t>(depth_)) return true;
  const Node& n = nodes_[static_cast<size_t>(node)];
  for (size_t s = 0; s < n.slabs.size(); ++s) {
    places[depth].push_back({outer, node, s});
    if (places[depth].size() > limit_) return false;
    outer.push_back(n.slabs[s].values);
    bool fits = collect(n.slabs[s].below, outer, places);
    outer.pop_back();
    if (!fits) return false;
  }
  return true;
}

bool Timeline::add_steps(const std::vector<Place>& places, int depth) {
  const size_t inner = static_cast<size_t>(depth_ - depth - 1);  // coordinates after this one
  auto slab = [&](const Place& p) -> const Slab& { return nodes_[static_cast<size_t>(p.node)].slabs[p.slab]; };
  auto below = [&](const Slab& s) -> const Node& { return nodes_[static_cast<size_t>(s.below)]; };
  auto step = [&](const Box& outer,
                  Interval here,
                  int64_t by,
                  const std::vector<int64_t>& from,
                  const std::vector<int64_t>& to) {
    Step s;
    s.when = outer;
    s.when.resize(static_cast<size_t>(depth), kAnyValue);
    s.when.push_back(here);
    s.shift.assign(static_cast<size_t>(depth), 0);
    s.shift.push_back(by);
    for (size_t k = 0; k < inner; ++k) {
      s.when.push_back({from[k], from[k]});
      s.shift.push_back(to[k] - from[k]);
    }
    steps_.push_back(std::move(s));
  };
  // Where all that lies below begins and ends alike and no value is missing, "one less" needs no condition: a
  // stamp without a predecessor of this kind is shifted out of the set.
  const Node& model = below(slab(places.front()));
  bool alike = true;
  for (const Place& p : places) {
    const Slab& s = slab(p);
    alike &= below(s).first == model.first && below(s).last == model.last;
    if (p.slab > 0) alike &= nodes_[static_cast<size_t>(p.node)].slabs[p.slab - 1].values.hi + 1 == s.values.lo;
  }
  if (alike) {
    step({}, kAnyValue, -1, model.first, model.last);
    return steps_.size() <= limit_;
  }
  bool unconditional = inner == 0;  // the innermost "one less" is always the predecessor if it exists
  if (unconditional) step({}, kAnyValue, -1, {}, {});
  for (const Place& p : places) {
    const Slab& s = slab(p);
    if (!unconditional && s.values.size() > 1)
      step(p.outer, {s.values.lo + 1, s.values.hi}, -1, below(s).first, below(s).last);
    if (p.slab > 0) {
      const Slab& before = nodes_[static_cast<size_t>(p.node)].slabs[p.slab - 1];
      if (inner == 0 && before.values.hi + 1 == s.values.lo) continue;
      step(p.outer, {s.values.lo, s.values.lo}, before.values.hi - s.values.lo, below(s).first, below(before).last);
    }
    if (steps_.size() > limit_) return false;
  }
  return true;
}

}  // namespace sator::dataflow
