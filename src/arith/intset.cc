#include "arith/intset.h"

#include "arith/analyzer.h"
#include "arith/fold.h"
#include "arith/interval_eval.h"

namespace sator::arith {
namespace {

Expr last_of(const Expr& min, const Expr& extent) {
  Expr end = combine_exprs(Kind::add, extent, min);
  return combine_exprs(Kind::sub, end, int_imm(1, end->dtype));
}

Expr simplified(Analyzer& analyzer, const Expr& e) { return e ? analyzer.simplify(e) : e; }

template <class Fold>
std::vector<IntSet> per_dimension(const std::vector<std::vector<IntSet>>& regions, Fold fold_sets) {
  std::vector<IntSet> out;
  if (regions.empty()) return out;
  for (size_t i = 0; i < regions[0].size(); ++i) {
    std::vector<IntSet> sets;
    for (const auto& region : regions) sets.push_back(region[i]);
    out.push_back(fold_sets(sets));
  }
  return out;
}

}  // namespace

IntSet IntSet::from_min_extent(const Expr& min, const Expr& extent) {
  if (is_one(extent)) return point(min);
  return interval(min, last_of(min, extent));
}

IntSet IntSet::from_range(const Range& range) { return from_min_extent(range.min, range.extent); }

RangeRef IntSet::cover_range(const RangeRef& fallback) const {
  if (!has_lower() || !has_upper()) return fallback;
  Analyzer analyzer;
  Expr one = int_imm(1, max->dtype);
  Expr extent = combine_exprs(Kind::sub, combine_exprs(Kind::add, max, one), min);
  return make<Range>(analyzer.simplify(min), analyzer.simplify(extent));
}

SetMap as_sets(const RangeMap& ranges) {
  SetMap sets;
  for (const auto& [var, range] : ranges) sets.emplace(var, IntSet::from_range(*range));
  return sets;
}

IntSet eval_set(const Expr& e, const SetMap& domains) {
  Analyzer analyzer;
  return IntervalEvaluator(analyzer, domains)(e);
}

namespace {

IntSet eval_range(Analyzer& analyzer, const RangeRef& range, const SetMap& domains) {
  IntervalEvaluator evaluate(analyzer, domains);
  if (range->min->dtype.is_integer() && analyzer.prove_equal(range->extent, int_imm(1, range->extent->dtype)))
    return evaluate(range->min);
  // Simplified first: min and extent may share variables.
  Expr last =
      combine_exprs(Kind::add, range->min, combine_exprs(Kind::sub, range->extent, int_imm(1, range->extent->dtype)));
  return evaluate.relax(IntSet::interval(range->min, analyzer.simplify(last)));
}

}  // namespace

IntSet eval_set(const RangeRef& range, const SetMap& domains) {
  Analyzer analyzer;
  return eval_range(analyzer, range, domains);
}

std::vector<IntSet> eval_set(const Region& region, const SetMap& domains) {
  Analyzer analyzer;
  std::vector<IntSet> out;
  for (const RangeRef& r : region) out.push_back(eval_range(analyzer, r, domains));
  return out;
}

IntSet vector_set(const Expr& e) {
  if (e->dtype.lanes == 1) return IntSet::point(e);
  Analyzer analyzer;
  SetMap none;
  return IntervalEvaluator(analyzer, none)(e);
}

IntSet unite(const std::vector<IntSet>& sets) {
  if (sets.empty()) return IntSet::nothing();
  if (sets.size() == 1) return sets[0];
  Analyzer analyzer;
  IntSet out = sets[0];
  for (size_t i = 1; i < sets.size(); ++i) {
    const IntSet& s = sets[i];
    if (s.empty) continue;
    if (out.empty) {
      out = s;
      continue;
    }
    out.min = out.min && s.min ? combine_exprs(Kind::min, out.min, s.min) : nullptr;
    out.max = out.max && s.max ? combine_exprs(Kind::max, out.max, s.max) : nullptr;
  }
  if (!out.empty) {
    out.min = simplified(analyzer, out.min);
    out.max = simplified(analyzer, out.max);
  }
  return out;
}

std::vector<IntSet> unite_regions(const std::vector<std::vector<IntSet>>& regions) {
  return per_dimension(regions, unite);
}

IntSet unite_lower_bound(const std::vector<IntSet>& sets) {
  if (sets.empty()) return IntSet::nothing();
  if (sets.size() == 1) return sets[0];
  Analyzer analyzer;
  IntSet out = IntSet::nothing();
  auto touches = [&](const Expr& low, const Expr& high) {  // low <= high + 1
    return !low || !high ||
           analyzer.prove(combine_exprs(Kind::le, low, combine_exprs(Kind::add, high, int_imm(1, high->dtype))));
  };
  for (const IntSet& s : sets) {
    if (s.empty) continue;
    if (out.empty) {
      out = s;
    } else if (touches(s.min, out.max) && touches(out.min, s.max)) {
      out.min = out.min && s.min ? combine_exprs(Kind::min, out.min, s.min) : nullptr;
      out.max = out.max && s.max ? combine_exprs(Kind::max, out.max, s.max) : nullptr;
    }
  }
  return out;
}

std::vector<IntSet> unite_regions_lower_bound(const std::vector<std::vector<IntSet>>& regions) {
  return per_dimension(regions, unite_lower_bound);
}

IntSet intersect(const std::vector<IntSet>& sets) {
  if (sets.empty()) return IntSet::nothing();
  if (sets.size() == 1) return sets[0];
  Analyzer analyzer;
  // What ends before it begins, or before the other begins. Ends and beginnings as they are: the same of `min` and `max` of
  // several is much longer to prove.
  auto ends_before = [&](const Expr& last, const Expr& first) {
    return last && first && analyzer.bounds(analyzer.canonical(combine_exprs(Kind::sub, last, first))).max < 0;
  };
  IntSet out = sets[0];
  for (size_t i = 1; i < sets.size() && !out.empty; ++i) {
    const IntSet& s = sets[i];
    if (s.empty) return s;
    if (ends_before(s.max, s.min) || ends_before(s.max, out.min) || ends_before(out.max, s.min) ||
        (i == 1 && ends_before(out.max, out.min)))
      return IntSet::nothing();
    if (s.min) out.min = out.min ? combine_exprs(Kind::max, out.min, s.min) : s.min;
    if (s.max) out.max = out.max ? combine_exprs(Kind::min, out.max, s.max) : s.max;
  }
  out.min = simplified(analyzer, out.min);
  out.max = simplified(analyzer, out.max);
  return out;
}

}  // namespace sator::arith
