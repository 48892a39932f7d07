#pragma once

#include <variant>
#include <vector>

#include "base/error.h"
#include "dataflow/counts/boxes.h"

namespace sator::dataflow {

/// A condition that every value meets.
inline constexpr Interval kAnyValue{INT64_MIN, INT64_MAX};

/// A finite set of time stamps, given as boxes, in lexicographic order: a tree whose levels are the
/// coordinates and whose nodes list intervals of values that share what lies below.
class Timeline {
 public:
  /// One way from a stamp to the one before it: where `when` holds, prev(t) = t + shift, if t + shift is in
  /// the set.
  struct Step {
    std::vector<int64_t> shift;
    Box when;  // kAnyValue: no condition on that coordinate
  };

  /// Errors: the set needs more than `limit` intervals.
  static std::variant<Timeline, Reason> build(const BoxList& cells, size_t limit = 4096);

  Wide count() const { return nodes_.empty() ? 0 : nodes_[static_cast<size_t>(root_)].count; }
  /// All steps; together they give the predecessor of every stamp but the first.
  const std::vector<Step>& steps() const { return steps_; }

 private:
  struct Slab {
    Interval values;
    int below;
    bool operator==(const Slab&) const = default;
  };
  struct Node {
    std::vector<Slab> slabs;
    Wide count = 0;
    std::vector<int64_t> first, last;  // smallest and largest stamp below
  };
  struct Place {  // a slab, and the values of the outer coordinates that lead to it
    Box outer;
    int node;
    size_t slab;
  };

  bool grow(const BoxList& cells, const std::vector<uint32_t>& chosen, int depth, int& node);
  int intern(Node node, int depth);
  bool collect(int node, Box& outer, std::vector<std::vector<Place>>& places) const;
  bool add_steps(const std::vector<Place>& places, int depth);

  int depth_ = 0;
  int root_ = -1;
  size_t limit_ = 0;
  std::vector<Node> nodes_;
  std::vector<Step> steps_;
};

}  // namespace sator::dataflow
