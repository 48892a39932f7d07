// The boxes that regions cover while loops run, told by quasi-affine maps where they are such.
#include "arith/analyzer.h"
#include "arith/interval_eval.h"
#include "arith/intset.h"
#include "arith/iter_map.h"
#include "arith/iter_rewriter.h"
#include "arith/kind.h"

namespace sator::arith {
namespace {

/// What `extent` elements from each value of a fused sum cover; nothing if there are gaps.
std::optional<IntSet> cover(const IterSum& sum, const Expr& extent, Analyzer& analyzer) {
  auto is = [&](Kind kind, const Expr& a, const Expr& b) { return analyzer.prove(combine_exprs(kind, a, b)); };
  Expr zero = zero_of(extent->dtype);
  if (is(Kind::eq, extent, zero)) return IntSet::nothing();
  if (sum.args.empty()) return IntSet::from_min_extent(sum.base, extent);
  if (sum.args.size() != 1) return {};
  const IterSplit& split = sum.args[0];
  if (is(Kind::eq, split.extent, zero)) return IntSet::nothing();
  if (!is(Kind::ge, extent, split.scale)) return {};  // steps leave gaps
  Expr span = imul(isub(split.extent, one_of(split.extent->dtype)), split.scale);
  // A negative scale runs downward from the base.
  if (is(Kind::lt, split.scale, zero)) return IntSet::from_min_extent(iadd(sum.base, span), isub(extent, span));
  return IntSet::from_min_extent(sum.base, iadd(extent, span));
}

bool is_number(const Expr& e) { return e.as<IntImm>() != nullptr; }

/// The map of the indices as they are, else of their simple forms: (i * 10 + j) // 100 is i // 10 where j has 10 values.
IterMap found_map(const std::vector<Expr>& indices, const RangeMap& domains, const Expr& predicate,
                  Analyzer& analyzer) {
  IterMap map = detect_iter_map(indices, domains, predicate, IterMapLevel::surjective, analyzer);
  if (map.ok()) return map;
  for (const auto& [var, range] : domains) analyzer.bind(var, range);
  std::vector<Expr> simple;
  for (const Expr& e : indices) simple.push_back(analyzer.simplify(e));
  return detect_iter_map(simple, domains, predicate, IterMapLevel::surjective, analyzer);
}

/// The expression, in which loops of one iteration have their value.
Expr without_unit_loops(const Expr& e, const RangeMap& domains) {
  VarMap values;
  for (const auto& [var, range] : domains) {
    if (is_one(range->extent)) values.emplace(var, range->min);
  }
  return substitute(e, values);
}

}  // namespace

std::optional<std::vector<IntSet>> estimate_region_strict_bound(const Region& region, const RangeMap& domains,
                                                                const Expr& predicate, Analyzer& analyzer) {
  std::vector<Expr> starts;
  for (const RangeRef& r : region) {
    if (!is_number(r->extent)) return {};
    starts.push_back(without_unit_loops(r->min, domains));
  }
  IterMap map = found_map(starts, domains, predicate, analyzer);
  if (!map.ok()) return {};
  std::vector<IntSet> out;
  for (size_t i = 0; i < region.size(); ++i) {
    auto set = cover(map.indices[i], region[i]->extent, analyzer);
    if (!set) return {};
    out.push_back(*set);
  }
  return out;
}

std::optional<std::vector<IntSet>> estimate_region_lower_bound(const Region& region, const RangeMap& domains,
                                                               const Expr& predicate, Analyzer& analyzer) {
  return estimate_region_strict_bound(region, domains, predicate, analyzer);
}

std::vector<IntSet> estimate_region_upper_bound(const Region& region, const RangeMap& domains, const Expr& predicate,
                                                Analyzer& analyzer) {
  if (auto strict = estimate_region_strict_bound(region, domains, predicate, analyzer)) return *strict;
  SetMap sets = as_sets(domains);
  std::vector<IntSet> out;
  for (const RangeRef& r : region) {
    std::optional<IntSet> set;
    IterMap map = found_map({without_unit_loops(r->min, domains)}, domains, predicate, analyzer);
    Expr extent = r->extent;
    if (!is_number(extent)) {
      // The widest it gets.
      IntSet widest = eval_set(extent, sets);
      extent = widest.has_upper() ? widest.max : nullptr;
    }
    if (map.ok() && extent) set = cover(map.indices[0], extent, analyzer);
    out.push_back(set ? *set : eval_set(r, sets));
  }
  return out;
}

Region relax_region(const Region& region, const RangeMap& loops, const Expr& predicate, const std::vector<Expr>& shape,
                    Analyzer& analyzer) {
  std::vector<IntSet> sets = estimate_region_upper_bound(region, loops, predicate, analyzer);
  Region out;
  for (size_t i = 0; i < region.size(); ++i) {
    const IntSet& s = sets[i];
    DType dtype = region[i]->min->dtype;
    if (s.empty) {
      out.push_back(make<Range>(zero_of(dtype), zero_of(dtype)));
    } else if (!s.has_lower() || !s.has_upper()) {
      out.push_back(range_of(shape.at(i)));
    } else {
      Expr extent = isub(iadd(s.max, one_of(s.max->dtype)), s.min);
      out.push_back(make<Range>(analyzer.simplify(s.min), analyzer.simplify(extent)));
    }
  }
  return out;
}

}  // namespace sator::arith
