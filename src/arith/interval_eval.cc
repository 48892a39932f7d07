#include "arith/interval_eval.h"

#include "arith/fold.h"

namespace sator::arith {
namespace {

/// The lesser (min) or greater (max) of two ends, an open one given by `open`: it wins or yields.
Expr extreme(Kind kind, const Expr& a, const Expr& b, bool open_wins) {
  if (!a || !b) return open_wins ? nullptr : (a ? a : b);
  return combine_exprs(kind, a, b);
}

Expr ends(Kind kind, const Expr& a, const Expr& b) { return a && b ? combine_exprs(kind, a, b) : nullptr; }

}  // namespace

Expr combine_exprs(Kind kind, const Expr& a, const Expr& b) {
  if (a->dtype == b->dtype) return fold(kind, a, b);
  switch (kind) {
    case Kind::add: return a + b;
    case Kind::sub: return a - b;
    case Kind::mul: return a * b;
    case Kind::div: return div(a, b);
    case Kind::mod: return truncmod(a, b);
    case Kind::floordiv: return floordiv(a, b);
    case Kind::floormod: return floormod(a, b);
    case Kind::min: return min(a, b);
    case Kind::max: return max(a, b);
    case Kind::lt: return lt(a, b);
    case Kind::le: return le(a, b);
    case Kind::gt: return gt(a, b);
    case Kind::ge: return ge(a, b);
    case Kind::eq: return eq(a, b);
    case Kind::ne: return ne(a, b);
    default: return fold(kind, a, b);
  }
}

IntSet IntervalEvaluator::relax(const IntSet& set) {
  // Domains that mention each other are followed once through all of them, not for ever.
  if (set.empty || depth_ >= domains_.size()) return set;
  ++depth_;
  IntSet out;
  if (set.min) out.min = (*this)(set.min).min;
  if (set.max) out.max = set.max == set.min ? (*this)(set.min).max : (*this)(set.max).max;
  --depth_;
  return out;
}

IntSet IntervalEvaluator::of_var(const Expr& e) {
  VarRef var(static_cast<const Var*>(e.get()));
  std::vector<IntSet> sets;
  if (constraints_)
    for (const SetConstraint& c : *constraints_)
      if (c.var == var) sets.push_back(c.set);
  if (auto at = domains_.find(var); at != domains_.end()) sets.push_back(at->second);
  if (sets.empty()) return IntSet::point(e);
  IntSet set = sets.size() == 1 ? sets[0] : intersect(sets);
  if (set.min == e && set.max == e) return set;
  return relax(set);
}

IntSet IntervalEvaluator::operator()(const Expr& e) {
  Kind kind = kind_of(e);
  if (is_binary(kind)) {
    Operands o = operands(*e, kind);
    IntSet a = (*this)(o.a), b = (*this)(o.b);
    if (a.min == o.a && a.max == o.a && b.min == o.b && b.max == o.b) return IntSet::point(e);
    return combine(kind, a, b, e->dtype);
  }
  switch (kind) {
    case Kind::int_imm: return IntSet::point(e);
    case Kind::var: return of_var(e);
    case Kind::select: {
      const auto& n = static_cast<const Select&>(*e);
      IntSet t = (*this)(n.true_value), f = (*this)(n.false_value);
      if (f.empty) return t;
      if (t.empty) return f;
      return {extreme(Kind::min, f.min, t.min, true), extreme(Kind::max, f.max, t.max, true), false};
    }
    case Kind::cast: return of_cast(static_cast<const Cast&>(*e));
    case Kind::ramp: return of_ramp(static_cast<const Ramp&>(*e));
    case Kind::broadcast: return (*this)(static_cast<const Broadcast&>(*e).value);
    case Kind::load: {
      // The value is one unknown number while no index is relaxed.
      const auto& n = static_cast<const BufferLoad&>(*e);
      if (!n.dtype.is_integer()) return IntSet::everything();
      for (const Expr& index : n.indices)
        for (const VarRef& v : vars_in(index))
          if (domains_.count(v)) return IntSet::everything();
      return IntSet::point(e);
    }
    default: return IntSet::everything();
  }
}

IntSet IntervalEvaluator::of_cast(const Cast& n) {
  IntSet v = (*this)(n.value);
  if (v.empty) return v;
  if (v.is_point()) return IntSet::point(cast_to(n.dtype, v.min));
  return {v.min ? cast_to(n.dtype, v.min) : nullptr, v.max ? cast_to(n.dtype, v.max) : nullptr, false};
}

IntSet IntervalEvaluator::of_ramp(const Ramp& n) {
  IntSet base = (*this)(n.base);
  auto stride = as_int(n.stride);
  auto span = stride && !n.lanes.scalable ? checked_mul(*stride, n.lanes.count - 1) : std::nullopt;
  if (!span || !fits(*span, n.base->dtype)) return IntSet::everything();
  Expr zero = int_imm(0, n.base->dtype), last = int_imm(*span, n.base->dtype);
  return combine(Kind::add, base, *stride > 0 ? IntSet::interval(zero, last) : IntSet::interval(last, zero), n.dtype);
}

/// Products and quotients by one point: monotonic, rising or falling with its sign.
IntSet IntervalEvaluator::scaled(Kind kind, const IntSet& a, const Expr& b) {
  if (is_one(b)) return a;
  auto at = [&](const Expr& end) { return end ? combine_exprs(kind, end, b) : nullptr; };
  if (analyzer_.prove_ge(b, 0)) return {at(a.min), at(a.max), false};
  if (analyzer_.prove_lt(b, 0)) return {at(a.max), at(a.min), false};
  if (!a.min || !a.max) return IntSet::everything();
  Expr rising = ge(b, int_imm(0, b->dtype));
  Expr low = at(a.min), high = at(a.max);
  return {select(rising, low, high), select(rising, high, low), false};
}

IntSet IntervalEvaluator::remainder(Kind kind, const IntSet& a, const Expr& divisor) {
  DType dtype = divisor->dtype;
  Expr one = int_imm(1, dtype), zero = int_imm(0, dtype);
  bool positive = analyzer_.prove_ge(divisor, 0);
  if (positive && kind == Kind::floormod) {
    // Inside one period the remainder is a shift.
    if (divisor.as<IntImm>() && a.min && a.max) {
      Expr low = combine_exprs(Kind::floordiv, a.min, divisor), high = combine_exprs(Kind::floordiv, a.max, divisor);
      if (analyzer_.prove_equal(high, low)) {
        Expr start = combine_exprs(Kind::mul, low, divisor);
        return {combine_exprs(Kind::sub, a.min, start), combine_exprs(Kind::sub, a.max, start), false};
      }
    }
    return {zero, fold(Kind::sub, divisor, one), false};
  }
  if (positive && a.min && analyzer_.prove_ge(a.min, 0)) return {zero, fold(Kind::sub, divisor, one), false};
  Expr bound = fold(Kind::sub, fold(Kind::max, divisor, fold(Kind::sub, zero, divisor)), one);
  return {fold(Kind::sub, zero, bound), bound, false};
}

IntSet IntervalEvaluator::combine(Kind kind, const IntSet& a, const IntSet& b, DType dtype) {
  if (a.empty) return a;
  if (b.empty) return b;
  if (a.is_point() && b.is_point() && !(is_zero(b.min) && kind >= Kind::div && kind <= Kind::floormod))
    return IntSet::point(combine_exprs(kind, a.min, b.min));
  switch (kind) {
    case Kind::add: return {ends(kind, a.min, b.min), ends(kind, a.max, b.max), false};
    case Kind::sub: return {ends(kind, a.min, b.max), ends(kind, a.max, b.min), false};
    case Kind::mul: {
      const IntSet &set = a.is_point() ? b : a, &point = a.is_point() ? a : b;
      if (!point.is_point()) return IntSet::everything();
      return is_zero(point.min) ? point : scaled(kind, set, point.min);
    }
    case Kind::div:
    case Kind::floordiv: return b.is_point() && !is_zero(b.min) ? scaled(kind, a, b.min) : IntSet::everything();
    case Kind::mod:
    case Kind::floormod: return b.is_point() && !is_zero(b.min) ? remainder(kind, a, b.min) : IntSet::everything();
    case Kind::min: return {extreme(kind, a.min, b.min, true), extreme(kind, a.max, b.max, false), false};
    case Kind::max: return {extreme(kind, a.min, b.min, false), extreme(kind, a.max, b.max, true), false};
    default: {  // comparisons and logic
      DType element = dtype.element();
      return {int_imm(0, element), int_imm(1, element), false};
    }
  }
}

std::vector<SetConstraint> set_constraints(const Expr& condition) {
  std::vector<SetConstraint> out;
  for (const Expr& part : conjuncts(condition)) {
    Kind kind = kind_of(part);
    if (!is_compare(kind) || kind == Kind::ne) continue;
    Operands o = operands(*part, kind);
    if (!o.a->dtype.is_int() || o.a->dtype.lanes > 1) continue;
    Expr one = int_imm(1, o.a->dtype);
    auto note = [&](const Expr& var, const Expr& limit, Kind k) {
      VarRef v = sator::cast<Var>(var);
      if (!v) return;
      switch (k) {
        case Kind::eq: out.push_back({v, IntSet::point(limit)}); break;
        case Kind::le: out.push_back({v, IntSet::interval(nullptr, limit)}); break;
        case Kind::lt: out.push_back({v, IntSet::interval(nullptr, fold(Kind::sub, limit, one))}); break;
        case Kind::ge: out.push_back({v, IntSet::interval(limit, nullptr)}); break;
        default: out.push_back({v, IntSet::interval(fold(Kind::add, limit, one), nullptr)}); break;
      }
    };
    Kind mirrored = kind == Kind::le   ? Kind::ge
                    : kind == Kind::ge ? Kind::le
                    : kind == Kind::lt ? Kind::gt
                    : kind == Kind::gt ? Kind::lt
                                       : kind;
    note(o.a, o.b, kind);
    note(o.b, o.a, mirrored);
  }
  return out;
}

}  // namespace sator::arith
