#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sator::dataflow {

/// Volumes and products of 64-bit numbers; a count leaves the engine only if it fits 64 bits.
using Wide = __int128;

/// The integers lo .. hi, both included; empty if hi < lo.
struct Interval {
  int64_t lo = 0;
  int64_t hi = -1;
  int64_t size() const { return hi < lo ? 0 : hi - lo + 1; }
  bool empty() const { return hi < lo; }
  bool operator==(const Interval&) const = default;
};

inline Interval intersect(Interval a, Interval b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

/// A product of intervals. A box with no axes holds one point.
using Box = std::vector<Interval>;
using BoxView = std::span<const Interval>;

inline bool is_empty(BoxView box) {
  return std::any_of(box.begin(), box.end(), [](Interval i) { return i.empty(); });
}
Wide volume(BoxView box);

/// Boxes of one dimension in one block of memory.
class BoxList {
 public:
  explicit BoxList(int axes = 0) : axes_(axes) {}
  int axes() const { return axes_; }
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  BoxView operator[](size_t i) const {
    return {flat_.data() + i * static_cast<size_t>(axes_), static_cast<size_t>(axes_)};
  }
  void push(BoxView box) {
    flat_.insert(flat_.end(), box.begin(), box.end());
    ++count_;
  }
  void clear() {
    flat_.clear();
    count_ = 0;
  }
  void reset(int axes) {
    axes_ = axes;
    clear();
  }

 private:
  int axes_;
  size_t count_ = 0;
  std::vector<Interval> flat_;
};

/// The number of integer points in the union of the boxes.
/// Cost: near linear in the boxes where they nest or share sides, exponential in the axes in the worst case.
Wide union_volume(const BoxList& boxes);

/// Smallest and largest value of constant + coefficient . x for x in the box.
struct Range {
  Wide lo, hi;
};
Range range_of(std::span<const int64_t> coefficient, int64_t constant, BoxView box);

/// Divides { x in box : lo <= constant + coefficient . x <= hi } into disjoint boxes, appended to `out`.
/// False, with `out` unusable, if it takes more than `limit` boxes or 64 times as many looks at single values.
bool slice(BoxView box, std::span<const int64_t> coefficient, int64_t constant, Interval bounds, size_t limit,
           std::vector<Box>& out);

/// v as 64 bits; nothing if it does not fit.
inline std::optional<int64_t> narrow(Wide v) {
  if (v > INT64_MAX || v < INT64_MIN) return std::nullopt;
  return static_cast<int64_t>(v);
}

}  // namespace sator::dataflow
