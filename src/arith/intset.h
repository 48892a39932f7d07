// Symbolic intervals: the values an expression takes while its variables run over ranges.
#pragma once

#include <optional>
#include <vector>

#include "ir/expr.h"

namespace sator::arith {

class Analyzer;

/// The integers from min to max, both included; a null end is unlimited.
struct IntSet {
  Expr min, max;
  bool empty = false;

  static IntSet everything() { return {}; }
  static IntSet nothing() { return {nullptr, nullptr, true}; }
  static IntSet point(Expr e) { return {e, e, false}; }
  static IntSet interval(Expr min, Expr max) { return {std::move(min), std::move(max), false}; }
  static IntSet from_range(const Range& range);
  static IntSet from_min_extent(const Expr& min, const Expr& extent);

  bool is_everything() const { return !empty && !min && !max; }
  /// Written as one point: both ends are one expression.
  bool is_point() const { return !empty && min && min == max; }
  bool has_lower() const { return !empty && min; }
  bool has_upper() const { return !empty && max; }
  /// [min, max] as a simplified range; `fallback` if an end is open.
  RangeRef cover_range(const RangeRef& fallback) const;
};

using SetMap = PooledMap<VarRef, IntSet>;
using RangeMap = PooledMap<VarRef, RangeRef>;
using Region = std::vector<RangeRef>;
SetMap as_sets(const RangeMap& ranges);

/// The interval of an expression (of the union of a range) while the variables of `domains` run over theirs; a domain may
/// depend on other such variables. Other variables stay symbols. Coarse where the expression is not monotonic.
IntSet eval_set(const Expr& e, const SetMap& domains);
IntSet eval_set(const RangeRef& range, const SetMap& domains);
std::vector<IntSet> eval_set(const Region& region, const SetMap& domains);
/// A vector's lanes as an interval.
IntSet vector_set(const Expr& e);

/// The smallest interval around all; of none: nothing.
IntSet unite(const std::vector<IntSet>& sets);
std::vector<IntSet> unite_regions(const std::vector<std::vector<IntSet>>& regions);
/// An interval that the union surely covers: sets are joined only where they provably touch.
IntSet unite_lower_bound(const std::vector<IntSet>& sets);
std::vector<IntSet> unite_regions_lower_bound(const std::vector<std::vector<IntSet>>& regions);
IntSet intersect(const std::vector<IntSet>& sets);

/// The box that the region covers while the loop variables run over their ranges.
///   predicate  only iterations where it holds count (null: all)
///   →          one range per dimension; a dimension that cannot be bounded keeps `shape[i]` as range [0, shape[i])
Region relax_region(const Region& region, const RangeMap& loops, const Expr& predicate, const std::vector<Expr>& shape,
                    Analyzer& analyzer);

/// The exact box that a region of constant extents covers while the variables run over their ranges, told by quasi-affine
/// maps: nothing if its indices are not such a map, depend on each other, or leave gaps.
std::optional<std::vector<IntSet>> estimate_region_strict_bound(const Region& region, const RangeMap& domains,
                                                                const Expr& predicate, Analyzer& analyzer);
/// A box that is surely covered (today the strict one).
std::optional<std::vector<IntSet>> estimate_region_lower_bound(const Region& region, const RangeMap& domains,
                                                               const Expr& predicate, Analyzer& analyzer);
/// A box that surely covers the region: the strict one, else per dimension, else by eval_set.
std::vector<IntSet> estimate_region_upper_bound(const Region& region, const RangeMap& domains, const Expr& predicate,
                                                Analyzer& analyzer);

}  // namespace sator::arith
