#include "arith/iter_map.h"

#include <algorithm>

#include "arith/analyzer.h"
#include "arith/fold.h"
#include "arith/interval_eval.h"
#include "arith/iter_rewriter.h"
#include "arith/kind.h"

namespace sator::arith {
namespace {

bool uses(const Expr& e, const RangeMap& iters) {
  bool found = false;
  walk(e, [&](const Var& v) { found |= iters.count(VarRef(&v)) > 0; });
  return found;
}

bool ranges_are_independent(const RangeMap& iters) {
  return std::ranges::all_of(
      iters, [&](const auto& entry) { return !uses(entry.second->min, iters) && !uses(entry.second->extent, iters); });
}

/// min <= expr < max, either end may be null.
struct Constraint {
  Expr expr, min, max;
  size_t size = 0;
};

/// a - b with what holds iterators in `a` and what does not in `b`: lhs < rhs becomes iters < bound.
void separate(Expr& a, Expr& b, const RangeMap& iters) {
  Expr with = int_imm(0, a->dtype), without = with;
  auto place = [&](const Expr& term, int sign) {
    if (uses(term, iters))
      with = sign > 0 ? iadd(with, term) : isub(with, term);
    else
      without = sign > 0 ? isub(without, term) : iadd(without, term);
  };
  for_each_term(a, place);
  for_each_term(b, place, -1);
  Analyzer analyzer;
  a = analyzer.simplify(with);
  b = analyzer.simplify(without);
}

/// The predicate with iterators of extent 1 at their one value: o * 1024 + i < 645 is then a condition on i alone.
Expr at_single_values(const Expr& predicate, const RangeMap& iters) {
  VarMap values;
  for (const auto& [v, range] : iters) {
    if (is_one(range->extent)) values.emplace(v, range->min);
  }
  if (values.empty()) return predicate;
  Analyzer analyzer;
  Expr out = bool_imm(true);
  for (const Expr& c : conjuncts(predicate)) {
    Expr at = substitute(c, values);
    out = logical_and(out, at == c ? c : analyzer.simplify(at));
  }
  return out;
}

/// Splits the predicate into constraints; those on one iterator narrow its range. False if it holds anything but
/// comparisons of integers.
bool match_constraints(const Expr& predicate, RangeMap& iters, std::vector<Constraint>& out) {
  std::vector<Expr> parts = conjuncts(predicate);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (is_one(*part)) continue;
    Kind kind = kind_of(*part);
    if (!is_compare(kind) || kind == Kind::eq || kind == Kind::ne) return false;
    Operands o = operands(**part, kind);
    Expr a = o.a, b = o.b;
    if (!a->dtype.is_integer() || a->dtype.lanes > 1) return false;
    bool in_a = uses(a, iters), in_b = uses(b, iters);
    if (!in_a && !in_b) continue;
    if (in_a && in_b) separate(a, b, iters);
    bool bound_left = !in_a;
    const Expr &bound = bound_left ? a : b, &expr = bound_left ? b : a;
    bool below = (kind == Kind::lt || kind == Kind::le) != bound_left;  // expr < bound
    bool inclusive = kind == Kind::le || kind == Kind::ge;
    Constraint c{expr, nullptr, nullptr};
    Expr one = one_of(bound->dtype);
    if (below)
      c.max = inclusive ? iadd(bound, one) : bound;
    else
      c.min = inclusive ? bound : iadd(bound, one);
    if (VarRef v = sator::cast<Var>(expr); v && iters.count(v)) {
      const Range& r = *iters[v];
      Expr low = r.min, high = iadd(r.min, r.extent);
      if (c.min) low = combine_exprs(Kind::max, low, c.min);
      if (c.max) high = combine_exprs(Kind::min, high, c.max);
      Analyzer analyzer;
      iters[v] = make<Range>(low, isub(high, low));
    } else {
      walk(expr, [&](const ExprNode&) { ++c.size; });
      out.push_back(std::move(c));
    }
  }
  return true;
}

}  // namespace

IterMap detect_iter_map(const std::vector<Expr>& indices, const RangeMap& iters, const Expr& predicate,
                        IterMapLevel level, Analyzer& analyzer, bool simplify_trivial_iterators) {
  IterMap map;
  auto failed = [&](std::string why) {
    map.indices.clear();
    map.error = std::move(why);
    return map;
  };
  if (!ranges_are_independent(iters)) return failed("the range of one iterator depends on another iterator");
  RangeMap narrowed = iters;
  std::vector<Constraint> constraints;
  const Expr condition = predicate && simplify_trivial_iterators ? at_single_values(predicate, iters) : predicate;
  if (condition && !is_one(condition) && !match_constraints(condition, narrowed, constraints))
    return failed("the predicate is not a conjunction of comparisons of iterators with bounds");
  // A constraint on a part of another's expression comes first: smaller ones do.
  std::ranges::stable_sort(constraints, {}, &Constraint::size);
  IterRewriter rewriter(analyzer, narrowed, level, simplify_trivial_iterators);
  for (const Constraint& c : constraints) {
    rewriter.constrain(c.expr, c.min, c.max);
    if (!rewriter.error().empty()) return failed(rewriter.error());
  }
  if (!rewriter.constraints_are_disjoint()) return failed("two conditions share some, but not all, of their iterators");
  // The first round may find that iterators need padding; the second then uses it.
  bool may_pad = level != IterMapLevel::bijective;
  for (bool first = true;; first = false) {
    map.indices.clear();
    for (const Expr& index : indices) {
      map.indices.push_back(may_pad && first ? rewriter.rewrite_and_pad(index) : rewriter.rewrite(index));
      if (!rewriter.error().empty()) return failed(rewriter.error());
    }
    if (!first || !may_pad || !rewriter.requires_padding()) break;
  }
  if (level != IterMapLevel::no_check && rewriter.loses_a_constraint(map.indices))
    return failed("a condition is on iterators that the indices use in another way");
  map.padding_predicate = rewriter.padding_predicate();
  if (!rewriter.map_is_valid(map.indices, level))
    return failed(level == IterMapLevel::bijective ? "the indices are not a bijective map of the iterators"
                                                   : "the indices are not independent of each other");
  return map;
}

std::vector<Expr> iter_map_simplify(const std::vector<Expr>& indices, const RangeMap& iters, const Expr& predicate,
                                    IterMapLevel level, Analyzer& analyzer, bool simplify_trivial_iterators) {
  IterMap map = detect_iter_map(indices, iters, predicate, level, analyzer, simplify_trivial_iterators);
  // A map over all iterations holds for those of the predicate too.
  if (!map.ok() && predicate && !is_one(predicate) && level != IterMapLevel::bijective)
    map = detect_iter_map(indices, iters, nullptr, level, analyzer, simplify_trivial_iterators);
  if (!map.ok()) return indices;
  std::vector<Expr> out;
  for (size_t i = 0; i < indices.size(); ++i) {
    map.indices[i].base = analyzer.simplify(map.indices[i].base);
    Expr e = cast_to(indices[i]->dtype, to_expr(map.indices[i], analyzer));
    out.push_back(same(e, indices[i]) ? indices[i] : e);
  }
  return out;
}

IterSum normalize_to_iter_sum(const Expr& index, const RangeMap& iters, Analyzer& analyzer) {
  if (!ranges_are_independent(iters)) return {{}, index};
  IterRewriter rewriter(analyzer, iters, IterMapLevel::no_check, true);
  return rewriter.rewrite_to_sum(index);
}

namespace {

Expr in_dtype(const IterSum& sum, DType dtype, Analyzer& analyzer);

/// The factors of a product that are not constants, in their order.
void symbols_of(const Expr& e, std::vector<Expr>& out) {
  if (const Mul* m = e.as<Mul>()) {
    symbols_of(m->a, out);
    symbols_of(m->b, out);
  } else if (!as_int(e)) {
    out.push_back(e);
  }
}

/// The same extent. Products of several sizes also name them in the same order: as TVM, whose indices these forms are, the others keep
/// a remainder that changes nothing (Simplify takes it off).
bool same_extent(const Expr& a, const Expr& b, Analyzer& analyzer) {
  if (!analyzer.prove_equal(a, b)) return false;
  std::vector<Expr> x, y;
  symbols_of(a, x);
  symbols_of(b, y);
  return x.size() < 2 || x.size() != y.size() || std::equal(x.begin(), x.end(), y.begin(), same);
}

/// A sum may be of iterators that are narrower than it: what is under a cast that changes no value.
Expr in_dtype(const IterSplit& split, DType dtype, Analyzer& analyzer) {
  const IterMark& mark = *split.source;
  Expr source = mark.is_sum() ? in_dtype(mark.sum, dtype, analyzer) : cast_to(dtype, mark.expr);
  const Expr scale = cast_to(dtype, split.scale), factor = cast_to(dtype, split.lower_factor);
  if (is_one(factor) && analyzer.prove_equal(split.extent, mark.extent)) return imul(source, scale);
  Expr period = imul(split.lower_factor, split.extent);
  if (same_extent(mark.extent, period, analyzer)) {
    // A digit that is always 0; an iterator of extent 1 itself keeps its name.
    if (is_one(split.extent) && !is_one(mark.extent)) return zero_of(dtype);
    return imul(ifloordiv(source, factor), scale);
  }
  return imul(ifloordiv(ifloormod(source, cast_to(dtype, period)), factor), scale);
}

Expr in_dtype(const IterSum& sum, DType dtype, Analyzer& analyzer) {
  Expr e = zero_of(dtype);
  for (const IterSplit& split : sum.args) e = iadd(e, in_dtype(split, dtype, analyzer));
  return iadd(e, cast_to(dtype, sum.base));
}

}  // namespace

Expr to_expr(const IterSplit& split, Analyzer& analyzer) { return in_dtype(split, split.extent->dtype, analyzer); }

Expr to_expr(const IterSum& sum, Analyzer& analyzer) { return in_dtype(sum, sum.base->dtype, analyzer); }

Expr normalize_iter_map_to_expr(const IterSum& sum) {
  Analyzer analyzer;
  return to_expr(sum, analyzer);
}

}  // namespace sator::arith
