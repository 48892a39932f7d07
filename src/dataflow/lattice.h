#pragma once

#include <span>
#include <variant>
#include <vector>

#include "base/error.h"
#include "dataflow/boxes.h"

namespace sator::dataflow {

/// Solves M d = b over the integers inside of a box, for one M and many b.
class Lattice {
 public:
  /// rows: M, each of `columns` coefficients. extents[k]: how far unknown k may range; the widest are solved
  /// for, the narrowest are tried. Errors: the coefficients grow beyond 62 bits.
  static std::variant<Lattice, Reason> reduce(const std::vector<std::vector<int64_t>>& rows, size_t columns,
                                              std::span<const int64_t> extents);

  /// Appends all solutions with bounds[k].lo <= d[k] <= bounds[k].hi to `out`, `columns` numbers each.
  /// False if more than `limit` values of free unknowns had to be tried.
  bool solve(std::span<const int64_t> rhs, BoxView bounds, size_t limit, std::vector<int64_t>& out) const;

  size_t columns() const { return columns_; }
  /// M d = 0 has only d = 0.
  bool injective() const { return free_.empty(); }

 private:
  /// scale * d[pivot] + sum free[i] * d[free_[i]] = sum from[k] * rhs[k]; pivot < 0 states that the left side
  /// is 0.
  struct Equation {
    int pivot;
    int64_t scale;
    std::vector<int64_t> free;
    std::vector<int64_t> from;
  };
  struct Search;
  bool search(Search& s, size_t next) const;

  size_t columns_ = 0;
  std::vector<Equation> equations_;
  std::vector<size_t> free_;
};

}  // namespace sator::dataflow
