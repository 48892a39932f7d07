#include "dataflow/counts/lattice.h"

#include <numeric>

#include "base/text.h"

namespace sator::dataflow {

namespace {

Wide magnitude(Wide v) { return v < 0 ? -v : v; }

/// Divides a row by the greatest common divisor of its entries; false if an entry does not fit 62 bits.
bool normalise(std::vector<Wide>& row) {
  Wide divisor = 0;
  for (Wide v : row) {
    Wide a = magnitude(v), b = divisor;
    while (b != 0) std::swap(a %= b, b);
    divisor = a;
  }
  if (divisor > 1)
    for (Wide& v : row) v /= divisor;
  return std::all_of(row.begin(), row.end(), [](Wide v) { return magnitude(v) < (Wide{1} << 62); });
}

}  // namespace

std::variant<Lattice, Reason> Lattice::reduce(const std::vector<std::vector<int64_t>>& rows, size_t columns,
                                              std::span<const int64_t> extents) {
  const size_t height = rows.size(), width = columns + height;
  // [M | I]: the right half records how each reduced equation follows from the given ones.
  std::vector<std::vector<Wide>> work(height, std::vector<Wide>(width, 0));
  for (size_t r = 0; r < height; ++r) {
    std::copy(rows[r].begin(), rows[r].end(), work[r].begin());
    work[r][columns + r] = 1;
  }
  std::vector<size_t> order(columns);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return extents[a] > extents[b]; });
  std::vector<int> pivot_of(height, -1);
  std::vector<bool> is_pivot(columns, false);
  size_t rank = 0;
  for (size_t c : order) {
    size_t best = height;
    for (size_t r = rank; r < height; ++r)
      if (work[r][c] != 0 && (best == height || magnitude(work[r][c]) < magnitude(work[best][c]))) best = r;
    if (best == height) continue;
    std::swap(work[rank], work[best]);
    for (size_t r = 0; r < height; ++r) {
      if (r == rank || work[r][c] == 0) continue;
      const Wide mine = work[r][c], pivot = work[rank][c];
      for (size_t k = 0; k < width; ++k) work[r][k] = work[r][k] * pivot - work[rank][k] * mine;
      if (!normalise(work[r]))
        return Reason{.what = "the stamps' coefficients grow beyond 62 bits",
                      .needs = "space and time maps with small coefficients",
                      .hint = "use smaller strides in the space and time maps"};
    }
    pivot_of[rank] = static_cast<int>(c);
    is_pivot[c] = true;
    ++rank;
  }
  Lattice lattice;
  lattice.columns_ = columns;
  for (size_t c = 0; c < columns; ++c)
    if (!is_pivot[c]) lattice.free_.push_back(c);
  for (size_t r = 0; r < height; ++r) {
    Equation e{.pivot = pivot_of[r], .scale = 0, .free = {}, .from = {}};
    if (e.pivot >= 0) {
      e.scale = static_cast<int64_t>(work[r][static_cast<size_t>(e.pivot)]);
      for (size_t f : lattice.free_) e.free.push_back(static_cast<int64_t>(work[r][f]));
    }
    for (size_t k = 0; k < height; ++k) e.from.push_back(static_cast<int64_t>(work[r][columns + k]));
    lattice.equations_.push_back(std::move(e));
  }
  return lattice;
}

struct Lattice::Search {
  BoxView bounds;
  size_t tries;
  std::vector<Wide> value;       // right sides of the equations
  std::vector<int64_t> unknown;  // d
  std::vector<int64_t>& out;
};

bool Lattice::solve(std::span<const int64_t> rhs, BoxView bounds, size_t limit, std::vector<int64_t>& out) const {
  if (is_empty(bounds)) return true;
  if (free_.empty()) {
    solve_alone(rhs, bounds, out);
    return true;
  }
  Search s{.bounds = bounds, .tries = limit, .value = {}, .unknown = std::vector<int64_t>(columns_, 0), .out = out};
  s.value.reserve(equations_.size());
  for (const Equation& e : equations_) {
    const Wide v = e.right_side(rhs);
    if (e.pivot < 0 && v != 0) return true;
    s.value.push_back(v);
  }
  return search(s, 0);
}

void Lattice::solve_alone(std::span<const int64_t> rhs, BoxView bounds, std::vector<int64_t>& out) const {
  const size_t start = out.size();
  out.resize(start + columns_, 0);
  for (const Equation& e : equations_) {
    const Wide v = e.right_side(rhs);
    bool fits = v == 0 || e.pivot >= 0;
    if (fits && e.pivot >= 0) {
      // Nearly all right sides have 64 bits, and division of those is much faster.
      const int64_t small = static_cast<int64_t>(v);
      const bool is_small = small == v && small != INT64_MIN;
      fits = is_small ? small % e.scale == 0 : v % e.scale == 0;
      const Wide d = is_small ? Wide{small / e.scale} : v / e.scale;
      const Interval bound = bounds[static_cast<size_t>(e.pivot)];
      fits = fits && d >= bound.lo && d <= bound.hi;
      if (fits) out[start + static_cast<size_t>(e.pivot)] = static_cast<int64_t>(d);
    }
    if (!fits) {
      out.resize(start);
      return;
    }
  }
}

bool Lattice::search(Search& s, size_t next) const {
  if (next == free_.size()) {
    for (size_t r = 0; r < equations_.size(); ++r) {
      const Equation& e = equations_[r];
      if (e.pivot < 0) continue;
      if (s.value[r] % e.scale != 0) return true;
      Wide d = s.value[r] / e.scale;
      Interval bound = s.bounds[static_cast<size_t>(e.pivot)];
      if (d < bound.lo || d > bound.hi) return true;
      s.unknown[static_cast<size_t>(e.pivot)] = static_cast<int64_t>(d);
    }
    s.out.insert(s.out.end(), s.unknown.begin(), s.unknown.end());
    return true;
  }
  // What the pivots' bounds leave to this free unknown, the later free ones ranging over all of theirs.
  const size_t f = free_[next];
  Wide lo = s.bounds[f].lo, hi = s.bounds[f].hi;
  for (size_t r = 0; r < equations_.size() && lo <= hi; ++r) {
    const Equation& e = equations_[r];
    if (e.pivot < 0 || e.free[next] == 0) continue;
    // free[next] * d lies between from and to
    Wide from = s.value[r], to = s.value[r];
    auto subtract = [&](int64_t c, Interval over) {
      Wide a = static_cast<Wide>(c) * over.lo, b = static_cast<Wide>(c) * over.hi;
      from -= std::max(a, b);
      to -= std::min(a, b);
    };
    subtract(e.scale, s.bounds[static_cast<size_t>(e.pivot)]);
    for (size_t later = next + 1; later < free_.size(); ++later) subtract(e.free[later], s.bounds[free_[later]]);
    Wide c = e.free[next];
    if (c < 0) std::swap(from, to), from = -from, to = -to, c = -c;
    lo = std::max(lo, from >= 0 ? (from + c - 1) / c : -((-from) / c));
    hi = std::min(hi, to >= 0 ? to / c : -((-to + c - 1) / c));
  }
  for (Wide v = lo; v <= hi; ++v) {
    if (s.tries == 0) return false;
    --s.tries;
    s.unknown[f] = static_cast<int64_t>(v);
    for (size_t r = 0; r < equations_.size(); ++r)
      if (equations_[r].pivot >= 0) s.value[r] -= equations_[r].free[next] * v;
    bool done = search(s, next + 1);
    for (size_t r = 0; r < equations_.size(); ++r)
      if (equations_[r].pivot >= 0) s.value[r] += equations_[r].free[next] * v;
    if (!done) return false;
  }
  return true;
}

}  // namespace sator::dataflow
