#include "dataflow/counts/boxes.h"

#include <numeric>

namespace sator::dataflow {

Wide volume(BoxView box) {
  Wide product = 1;
  for (Interval i : box) product *= i.size();
  return product;
}

namespace {

bool contains(BoxView outer, BoxView inner) {
  for (size_t k = 0; k < outer.size(); ++k)
    if (inner[k].lo < outer[k].lo || inner[k].hi > outer[k].hi) return false;
  return true;
}

/// Volume of the union of boxes `chosen`, looking at axes `axis` and later only.
Wide union_from(const BoxList& boxes, const std::vector<uint32_t>& chosen, size_t axis) {
  const size_t axes = static_cast<size_t>(boxes.axes());
  if (chosen.empty()) return 0;
  if (chosen.size() == 1) return volume(boxes[chosen[0]].subspan(axis));
  // Axes on which all agree only scale the result.
  Wide scale = 1;
  for (; axis < axes; ++axis) {
    Interval first = boxes[chosen[0]][axis];
    bool agree = std::all_of(chosen.begin(), chosen.end(), [&](uint32_t b) { return boxes[b][axis] == first; });
    if (!agree) break;
    scale *= first.size();
  }
  if (axis == axes) return scale;
  std::vector<int64_t> cuts;
  cuts.reserve(2 * chosen.size());
  for (uint32_t b : chosen) {
    cuts.push_back(boxes[b][axis].lo);
    cuts.push_back(boxes[b][axis].hi + 1);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  Wide sum = 0, slab_volume = 0;
  std::vector<uint32_t> covering, previous;
  for (size_t c = 0; c + 1 < cuts.size(); ++c) {
    covering.clear();
    for (uint32_t b : chosen)
      if (boxes[b][axis].lo <= cuts[c] && boxes[b][axis].hi >= cuts[c]) covering.push_back(b);
    if (covering != previous) slab_volume = union_from(boxes, covering, axis + 1);
    sum += slab_volume * (cuts[c + 1] - cuts[c]);
    previous.swap(covering);
  }
  return scale * sum;
}

}  // namespace

Wide union_volume(const BoxList& boxes) {
  std::vector<uint32_t> kept;
  kept.reserve(boxes.size());
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (is_empty(boxes[i])) continue;
    bool inside = std::any_of(kept.begin(), kept.end(), [&](uint32_t k) { return contains(boxes[k], boxes[i]); });
    if (inside) continue;
    std::erase_if(kept, [&](uint32_t k) { return contains(boxes[i], boxes[k]); });
    kept.push_back(static_cast<uint32_t>(i));
  }
  return union_from(boxes, kept, 0);
}

Range range_of(std::span<const int64_t> coefficient, int64_t constant, BoxView box) {
  Range range{constant, constant};
  for (size_t k = 0; k < coefficient.size(); ++k) {
    if (coefficient[k] == 0) continue;
    Wide at_lo = static_cast<Wide>(coefficient[k]) * box[k].lo, at_hi = static_cast<Wide>(coefficient[k]) * box[k].hi;
    range.lo += std::min(at_lo, at_hi);
    range.hi += std::max(at_lo, at_hi);
  }
  return range;
}

namespace {

Wide floor_wide(Wide a, Wide b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

/// The values v of an axis with coefficient c for which lo <= c * v + rest <= hi, clipped to `axis`.
Interval solve_axis(Interval axis, int64_t c, Wide lo, Wide hi) {
  Wide first = c > 0 ? lo : hi, last = c > 0 ? hi : lo;  // c * v runs from first to last as v grows
  Wide from = std::max<Wide>(-floor_wide(-first, c), axis.lo), to = std::min<Wide>(floor_wide(last, c), axis.hi);
  return from > to ? Interval{} : Interval{static_cast<int64_t>(from), static_cast<int64_t>(to)};
}

}  // namespace

namespace {

/// slice, within `steps` looks at single values: bounds that no integers meet must not be searched for ever.
bool slice_within(BoxView box, std::span<const int64_t> coefficient, int64_t constant, Interval bounds, size_t limit,
                  size_t& steps, std::vector<Box>& out) {
  if (steps == 0) return false;
  --steps;
  Range all = range_of(coefficient, constant, box);
  if (all.hi < bounds.lo || all.lo > bounds.hi || is_empty(box)) return true;
  if (all.lo >= bounds.lo && all.hi <= bounds.hi) {
    if (out.size() >= limit) return false;
    out.emplace_back(box.begin(), box.end());
    return true;
  }
  // Cut along the axis that weighs most: its middle values decide alone, only those at the rim look further.
  size_t axis = 0;
  int64_t weight = 0;
  for (size_t k = 0; k < coefficient.size(); ++k) {
    int64_t w = std::abs(coefficient[k]);
    if (box[k].size() > 1 && w > weight) axis = k, weight = w;
  }
  const int64_t c = coefficient[axis];
  Wide rest_lo = all.lo - std::min(static_cast<Wide>(c) * box[axis].lo, static_cast<Wide>(c) * box[axis].hi);
  Wide rest_hi = all.hi - std::max(static_cast<Wide>(c) * box[axis].lo, static_cast<Wide>(c) * box[axis].hi);
  Interval touched = solve_axis(box[axis], c, bounds.lo - rest_hi, bounds.hi - rest_lo);
  Interval whole = solve_axis(box[axis], c, bounds.lo - rest_lo, bounds.hi - rest_hi);
  Box part(box.begin(), box.end());
  if (!whole.empty()) {
    if (out.size() >= limit) return false;
    part[axis] = whole;
    out.push_back(part);
  }
  for (int64_t v = touched.lo; v <= touched.hi; ++v) {
    if (!whole.empty() && v >= whole.lo && v <= whole.hi) {
      v = whole.hi;
      continue;
    }
    part[axis] = {v, v};
    if (!slice_within(part, coefficient, constant, bounds, limit, steps, out)) return false;
  }
  return true;
}

}  // namespace

bool slice(BoxView box, std::span<const int64_t> coefficient, int64_t constant, Interval bounds, size_t limit,
           std::vector<Box>& out) {
  size_t steps = 64 * limit;
  return slice_within(box, coefficient, constant, bounds, limit, steps, out);
}

}  // namespace sator::dataflow
