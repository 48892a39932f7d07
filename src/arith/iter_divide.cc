// Dividing a map into an outer part and a part over some of the iterators.
#include <algorithm>

#include "arith/fold.h"
#include "arith/interval_eval.h"
#include "arith/iter_rewriter.h"
#include "arith/kind.h"

namespace sator::arith {
namespace {

/// outer * inner_extent + inner
struct Halves {
  IterSum outer, inner;
  Expr outer_extent, inner_extent;
  enum class Side { mixed, outer, inner } side = Side::mixed;
};

class Divider {
 public:
  Divider(Analyzer& analyzer, const std::vector<IterSum>& map, const std::vector<VarRef>& sub_iters)
      : analyzer_(analyzer), marks_(map), sub_iters_(sub_iters) {}

  /// Nothing if a binding does not come apart: a constant, or one split.
  std::optional<Halves> divide_binding(const IterSum& sum) {
    DType dtype = sum.base->dtype;
    if (sum.args.empty()) return Halves{none(dtype), {{}, sum.base}, one_of(dtype), one_of(dtype)};
    if (sum.args.size() > 1 || !is_one(sum.args[0].scale)) return {};
    auto parts = divide(sum.args[0]);
    if (parts) parts->inner.base = iadd(parts->inner.base, sum.base);
    return parts;
  }

  Expr outer_predicate = bool_imm(true), inner_predicate = bool_imm(true);

 private:
  /// Nothing if the source of a mark of that extent does not come apart.
  std::optional<Halves> divide(const IterSum& sum, const Expr& extent) {
    DType dtype = sum.base->dtype;
    if (sum.args.size() == 1 && is_one(sum.args[0].scale) && is_zero(sum.base)) {
      auto parts = divide(sum.args[0]);
      if (!parts || analyzer_.prove_equal(imul(parts->outer_extent, parts->inner_extent), extent)) return parts;
    }
    // Outer splits first, then inner ones; from the innermost on.
    PooledVector<IterSplit> outer, inner;
    Expr total = one_of(dtype);
    bool unit_scale = false;
    for (auto arg = sum.args.rbegin(); arg != sum.args.rend(); ++arg) {
      unit_scale |= is_one(arg->scale);
      auto parts = divide(*arg);
      if (!parts || parts->side == Halves::Side::mixed) return {};
      bool is_inner = parts->side == Halves::Side::inner;
      if (is_inner && !outer.empty()) return {};
      IterSplit split =
          is_inner ? as_split(parts->inner, parts->inner_extent) : as_split(parts->outer, parts->outer_extent);
      total = imul(total, split.extent);
      (is_inner ? inner : outer).push_back(split);
    }
    if (!unit_scale) return {};
    auto [outer_sum, outer_extent] = from_inner_to_outer(outer, zero_of(dtype));
    auto [inner_sum, inner_extent] = from_inner_to_outer(inner, zero_of(dtype));
    if (is_zero(sum.base) && analyzer_.prove_equal(total, extent))
      return Halves{outer_sum, inner_sum, outer_extent, inner_extent};
    // Conditions cut the sum, at its end or, where it has a base, at its beginning: it must lie on one side wholly.
    auto cut = [&](IterSum part) {
      const Expr value = to_expr(part, analyzer_);
      Expr holds = combine_exprs(Kind::lt, value, extent);
      if (!is_zero(part.base)) holds = fold(Kind::logical_and, combine_exprs(Kind::ge, value, zero_of(dtype)), holds);
      return holds;
    };
    if (inner.empty()) {
      outer_sum.base = sum.base;
      outer_predicate = fold(Kind::logical_and, outer_predicate, cut(outer_sum));
      return outer_parts(outer_sum, extent);
    }
    if (outer.empty()) {
      inner_sum.base = sum.base;
      inner_predicate = fold(Kind::logical_and, inner_predicate, cut(inner_sum));
      return inner_parts(inner_sum, extent);
    }
    return {};
  }

  static IterSum none(DType d) { return {{}, zero_of(d)}; }
  static Halves inner_parts(IterSum sum, const Expr& extent) {
    DType d = sum.base->dtype;
    return {none(d), std::move(sum), one_of(d), extent, Halves::Side::inner};
  }
  static Halves outer_parts(IterSum sum, const Expr& extent) {
    DType d = sum.base->dtype;
    return {std::move(sum), none(d), extent, one_of(d), Halves::Side::outer};
  }
  static IterSum single(const IterSplit& split) { return {{split}, zero_of(split.source->dtype())}; }
  /// A condition may have cut the sum: to less than its only split's own extent.
  IterSplit as_split(const IterSum& sum, const Expr& extent) {
    if (sum.args.size() == 1 && is_zero(sum.base) && analyzer_.prove_equal(sum.args[0].extent, extent))
      return sum.args[0];
    return whole(IterMarkRef(new IterMark(sum, extent)));
  }
  static std::pair<IterSum, Expr> from_inner_to_outer(PooledVector<IterSplit> args, const Expr& base) {
    Expr extent = one_of(base->dtype);
    for (IterSplit& a : args) {
      a.scale = extent;
      extent = imul(extent, a.extent);
    }
    return {IterSum{{args.rbegin(), args.rend()}, base}, extent};
  }

  const Halves* known(const IterSplit& split) const {
    for (const auto& [s, parts] : divided_)
      if (same_split(s, split, false)) return &parts;
    return nullptr;
  }

  std::optional<Halves> divide(const IterSplit& split) {
    if (const Halves* p = known(split)) return *p;
    const IterMarkRef& mark = split.source;
    const MarkSplits::Entry* entry = marks_.find(mark);
    if (!entry || mark->of_split) return {};
    const auto& splits = entry->splits;
    if (!mark->is_sum()) {
      VarRef var = sator::cast<Var>(mark->expr);
      if (!var) return {};
      bool inner = std::ranges::find(sub_iters_, var) != sub_iters_.end();
      for (const IterSplit& s : splits) {
        IterSplit unscaled = s;
        unscaled.scale = one_of(s.scale->dtype);
        divided_.emplace_back(
            s, inner ? inner_parts(single(unscaled), s.extent) : outer_parts(single(unscaled), s.extent));
      }
      return *known(split);
    }
    // source = Y * E + X, cut into digits: the cut between Y and X must lie between two of them.
    auto source = divide(mark->sum, mark->extent);
    if (!source) return {};
    if (splits.size() == 1 && is_one(split.lower_factor) && analyzer_.prove_equal(split.extent, mark->extent))
      return source;
    IterMarkRef outer_mark(new IterMark(source->outer, source->outer_extent));
    IterMarkRef inner_mark(new IterMark(source->inner, source->inner_extent));
    bool past = source->side == Halves::Side::outer;
    PooledVector<bool> used(splits.size(), false);
    PooledVector<IterSplit> inner, outer;
    Expr expected = one_of(mark->dtype());
    for (size_t taken = 0; taken < splits.size(); ++taken) {
      size_t at = 0;
      while (at < splits.size() && (used[at] || !analyzer_.prove_equal(splits[at].lower_factor, expected))) ++at;
      if (at == splits.size()) return {};
      used[at] = true;
      (past ? outer : inner).push_back(splits[at]);
      expected = imul(expected, splits[at].extent);
      if (analyzer_.prove_equal(expected, source->inner_extent)) past = true;
    }
    if (!past) return {};
    for (const IterSplit& s : inner) {
      IterSplit moved = s;
      moved.source = inner_mark;
      moved.scale = one_of(s.scale->dtype);
      divided_.emplace_back(s, inner_parts(single(moved), s.extent));
    }
    for (const IterSplit& s : outer) {
      IterSplit moved = s;
      moved.source = outer_mark;
      moved.scale = one_of(s.scale->dtype);
      moved.lower_factor = ifloordiv(s.lower_factor, outer[0].lower_factor);
      divided_.emplace_back(s, outer_parts(single(moved), s.extent));
    }
    const Halves* p = known(split);
    return p ? std::optional(*p) : std::nullopt;
  }

  Analyzer& analyzer_;
  MarkSplits marks_;
  const std::vector<VarRef>& sub_iters_;
  PooledVector<std::pair<IterSplit, Halves>> divided_;
};

}  // namespace

SubspaceDivision subspace_divide(const std::vector<Expr>& bindings, const RangeMap& iters,
                                 const std::vector<VarRef>& sub_iters, const Expr& predicate, IterMapLevel level,
                                 Analyzer& analyzer, bool simplify_trivial_iterators) {
  SubspaceDivision result;
  IterMap map = detect_iter_map(bindings, iters, predicate, level, analyzer, simplify_trivial_iterators);
  if (!map.ok()) {
    result.error = map.error;
    return result;
  }
  Divider divider(analyzer, map.indices, sub_iters);
  for (const IterSum& sum : map.indices) {
    auto parts = divider.divide_binding(sum);
    if (!parts) {
      result.bindings.clear();
      result.error = "a binding does not come apart into the given iterators and the others";
      return result;
    }
    result.bindings.push_back(
        {to_expr(parts->outer, analyzer), parts->outer_extent, to_expr(parts->inner, analyzer), parts->inner_extent});
  }
  result.outer_predicate = divider.outer_predicate;
  result.inner_predicate = divider.inner_predicate;
  return result;
}

}  // namespace sator::arith
