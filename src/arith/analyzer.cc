#include "arith/analyzer.h"

#include "arith/bounds.h"
#include "arith/canonical.h"
#include "arith/fold.h"
#include "arith/interval_eval.h"
#include "arith/known.h"
#include "arith/modular.h"

namespace sator::arith {

struct Analyzer::Parts {
  explicit Parts(Analyzer& a) : modular(a), rewriter(a), canonical(a) {}
  BoundsAnalysis bounds;
  ModularAnalysis modular;
  KnownComparisons known;
  Rewriter rewriter;
  Canonicalizer canonical;
  SetMap sets;
  std::vector<SetConstraint> set_constraints;
};

Analyzer::Analyzer() : parts_(std::make_unique<Parts>(*this)) {}
Analyzer::~Analyzer() = default;

void Analyzer::bind(const VarRef& var, const Expr& value) {
  const Expr simple = value.as<IntImm>() ? value : rewrite(canonical(value));
  parts_->bounds.bind(var, bounds(simple));
  parts_->modular.bind(var, modular(simple));
  parts_->rewriter.bind(var, simple);
  parts_->canonical.bind(var, simple);
  parts_->sets[var] = set(simple);
  parts_->known.bind(var, value);
}

void Analyzer::bind(const VarRef& var, const RangeRef& range) {
  if (is_one(range->extent)) return bind(var, range->min);
  parts_->bounds.bind(var, *range);
  parts_->sets[var] = IntSet::from_range(*range);
  parts_->known.bind(var, *range);
}

void Analyzer::bind(const VarRef& var, Bounds bounds) { parts_->bounds.bind(var, bounds); }
void Analyzer::bind(const VarRef& var, Modular modular) { parts_->modular.bind(var, modular); }

void Analyzer::assume_size(const Expr& value) {
  // value = var * scale + offset >= 0
  if (!is_index(value->dtype)) return;
  std::optional<int64_t> offset = 0;
  Expr symbol = int_imm(0, value->dtype);
  for_each_term(value, [&](const Expr& term, int sign) {
    if (auto v = as_int(term))
      offset = offset && *v > kNegInf ? checked_add(*offset, sign * *v) : std::nullopt;
    else
      symbol = fold(sign > 0 ? Kind::add : Kind::sub, symbol, term);
  });
  std::optional<int64_t> scale = 1;
  Expr factor = int_imm(1, value->dtype);
  for_each_operand(symbol, Kind::mul, [&](const Expr& f) {
    if (auto v = as_int(f))
      scale = scale ? checked_mul(*scale, *v) : std::nullopt;
    else
      factor = fold(Kind::mul, factor, f);
  });
  VarRef var = sator::cast<Var>(factor);
  if (!var || !scale || *scale <= 0 || !offset || *offset <= kNegInf) return;
  // var >= -offset / scale, rounded up.
  parts_->bounds.bind(var, Bounds{-floor_div(*offset, *scale), kPosInf});
}

Analyzer::Scope::Scope(Analyzer& analyzer, const Expr& condition) : analyzer_(&analyzer) {
  Parts& p = *analyzer.parts_;
  marks_[0] = p.bounds.mark();
  p.bounds.assume(condition);
  marks_[1] = p.modular.mark();
  p.modular.assume(condition);
  marks_[2] = p.rewriter.mark();
  p.rewriter.assume(condition);
  marks_[3] = p.set_constraints.size();
  for (SetConstraint& c : set_constraints(condition)) p.set_constraints.push_back(std::move(c));
  marks_[4] = p.known.mark();
  p.known.assume(condition);
}

Analyzer::Scope::~Scope() {
  if (!analyzer_) return;
  Parts& p = *analyzer_->parts_;
  p.known.release(marks_[4]);
  p.set_constraints.erase(p.set_constraints.begin() + static_cast<std::ptrdiff_t>(marks_[3]), p.set_constraints.end());
  p.rewriter.release(marks_[2]);
  p.modular.release(marks_[1]);
  p.bounds.release(marks_[0]);
}

Expr Analyzer::rewrite(const Expr& e) { return parts_->rewriter(e); }

Expr Analyzer::canonical(const Expr& e) {
  Expr result = parts_->canonical.visit(e);
  return same(result, e) ? e : result;
}

Expr Analyzer::simplify(const Expr& e, int steps) {
  if (e.as<IntImm>()) return e;
  // The canonical form first: rewriting may destroy structure that it reads.
  Expr result = parts_->canonical.visit(e);
  for (int i = 0; i < steps && !result.as<IntImm>(); ++i)
    result = i % 2 == 0 ? parts_->rewriter(result) : parts_->canonical.visit(result);
  return same(result, e) ? e : result;
}

/// Whether the bounds of both sides alone tell that the inequality holds.
static bool follows_from_bounds(const Expr& condition, Analyzer& analyzer) {
  const Kind kind = kind_of(condition);
  if (!is_compare(kind) || kind == Kind::eq || kind == Kind::ne) return false;
  const Operands o = operands(*condition, kind);
  if (!is_index(o.a->dtype)) return false;
  const bool less = kind == Kind::lt || kind == Kind::le, strict = kind == Kind::lt || kind == Kind::gt;
  const Bounds low = analyzer.bounds(less ? o.a : o.b), high = analyzer.bounds(less ? o.b : o.a);
  return low.max < kPosInf && high.min > kNegInf && (strict ? low.max < high.min : low.max <= high.min);
}

bool Analyzer::prove(const Expr& condition, Strength strength) {
  if (auto v = as_int(condition)) return *v != 0;
  if (follows_from_bounds(condition, *this)) return true;
  Expr simple = simplify(condition);
  if (auto v = as_int(simple)) return *v != 0;
  if (strength == Strength::simple) return false;
  // a < b + ...: the difference, relaxed over the ranges of its variables, stays on its side of zero.
  Kind kind = kind_of(condition);
  if (!is_compare(kind) || kind == Kind::eq || kind == Kind::ne) return false;
  Operands o = operands(*condition, kind);
  if (!is_index(o.a->dtype)) return false;
  bool less = kind == Kind::lt || kind == Kind::le;
  Expr difference = less ? fold(Kind::sub, o.b, o.a) : fold(Kind::sub, o.a, o.b);
  IntSet s = set(simplify(difference));
  if (!s.has_lower()) return false;
  int64_t at_least = kind == Kind::lt || kind == Kind::gt ? 1 : 0;
  return bounds(simplify(s.min)).min >= at_least;
}

bool Analyzer::prove_equal(const Expr& a, const Expr& b) {
  if (a == b) return true;
  auto x = as_int(a), y = as_int(b);
  if (x && y) return *x == *y;
  if (a->dtype.is_handle() || b->dtype.is_handle()) return false;
  Expr difference = combine_exprs(Kind::sub, a, b);
  return prove(combine_exprs(Kind::eq, difference, int_constant(0, difference->dtype)));
}

bool Analyzer::prove_ge(const Expr& e, int64_t bound) {
  if (auto v = as_int(e)) return *v >= bound;
  return bounds(rewrite(e)).min >= bound;
}

bool Analyzer::prove_lt(const Expr& e, int64_t bound) {
  if (auto v = as_int(e)) return *v < bound;
  return bounds(rewrite(e)).max < bound;
}

bool Analyzer::prove_le_shape(const Expr& lhs, const Expr& shape) {
  if (prove(combine_exprs(Kind::le, lhs, shape), Strength::symbolic)) return true;
  if (shape.as<IntImm>()) return false;
  std::optional<int64_t> scale = 1;
  for_each_operand(shape, Kind::mul, [&](const Expr& f) {
    if (auto v = as_int(f)) scale = scale ? checked_mul(*scale, *v) : std::nullopt;
  });
  if (!scale || !fits(*scale, shape->dtype) || *scale <= kNegInf) return false;
  return prove(combine_exprs(Kind::le, lhs, int_imm(std::abs(*scale), shape->dtype)), Strength::symbolic);
}

Bounds Analyzer::bounds(const Expr& e) { return parts_->bounds(e); }
Modular Analyzer::modular(const Expr& e) { return parts_->modular(e); }

IntSet Analyzer::set(const Expr& e) { return IntervalEvaluator(*this, parts_->sets, &parts_->set_constraints)(e); }

IntSet Analyzer::set(const Expr& e, const SetMap& domains) { return IntervalEvaluator(*this, domains)(e); }

Order Analyzer::known_order(const Expr& a, const Expr& b) { return parts_->known.compare(a, b, chain_inequalities); }

}  // namespace sator::arith
