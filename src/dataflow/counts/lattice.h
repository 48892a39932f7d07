#pragma once

#include <span>
#include <variant>
#include <vector>

#include "base/error.h"
#include "dataflow/counts/boxes.h"

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
    Wide right_side(std::span<const int64_t> rhs) const {
      Wide v = 0;
      for (size_t k = 0; k < rhs.size(); ++k) v += static_cast<Wide>(from[k]) * rhs[k];
      return v;
    }
  };
  struct Search;
  bool search(Search& s, size_t next) const;
  /// The one solution, if there is one, where no unknown is free.
  void solve_alone(std::span<const int64_t> rhs, BoxView bounds, std::vector<int64_t>& out) const;

  size_t columns_ = 0;
  std::vector<Equation> equations_;
  std::vector<size_t> free_;
};

}  // namespace sator::dataflow
