#include "arith/canonical.h"

#include <algorithm>

#include "arith/analyzer.h"
#include "arith/fold.h"
#include "arith/normal_product.h"

namespace sator::arith {
namespace {

Split as_split(const Form& form) {
  if (const Split* s = std::get_if<Split>(&form)) return *s;
  if (const Sum* s = std::get_if<Sum>(&form); s && s->base == 0 && s->terms.size() == 1) return s->terms[0];
  Split split;
  split.index = to_expr(form);
  split.dtype = split.index->dtype;
  return split;
}

Sum as_sum(const Form& form) {
  if (const Sum* s = std::get_if<Sum>(&form)) return *s;
  Sum sum;
  if (const Expr* e = std::get_if<Expr>(&form)) {
    sum.dtype = (*e)->dtype;
    if (auto v = as_int(*e)) {
      sum.base = *v;
      return sum;
    }
  }
  sum.terms.push_back(as_split(form));
  sum.dtype = sum.terms[0].dtype;
  return sum;
}

const IntImm* constant_of(const Form& form) {
  const Expr* e = std::get_if<Expr>(&form);
  return e ? e->as<IntImm>() : nullptr;
}

/// Folds where one side is plain and decides alone (0 + x stays a form).
std::optional<Form> folded(Kind kind, const Form& a, const Form& b) {
  const IntImm *x = constant_of(a), *y = constant_of(b);
  if (x && y) {
    if (Expr e = try_fold(kind, std::get<Expr>(a), std::get<Expr>(b))) return Form(e);
    return {};
  }
  if (kind == Kind::add && x && x->value == 0) return b;
  if ((kind == Kind::add || kind == Kind::sub) && y && y->value == 0) return a;
  if (kind == Kind::mul && x && x->value == 1) return b;
  if (kind == Kind::mul && y && y->value == 1) return a;
  if (kind == Kind::mul && x && x->value == 0) return a;
  if (kind == Kind::mul && y && y->value == 0) return b;
  bool quotient = kind == Kind::div || kind == Kind::floordiv, remainder = kind == Kind::mod || kind == Kind::floormod;
  if ((quotient || remainder) && x && x->value == 0) return a;
  if (quotient && y && y->value == 1) return a;
  if (remainder && y && y->value == 1) return Form(int_imm(0, y->dtype));
  return {};
}

Split with_rounding(Split s, Rounding rounding) {
  if (!s.can_round(rounding)) s = as_split(Form(s.expr()));
  s.rounding = rounding;
  return s;
}

/// The terms (and the constant) that `divisor` divides, and the others.
struct Parts {
  Sum divisible, rest;
};
Parts separate(const Sum& sum, int64_t divisor) {
  Parts p;
  p.divisible.dtype = p.rest.dtype = sum.dtype;
  (sum.base % divisor == 0 ? p.divisible : p.rest).base = sum.base;
  for (const Split& t : sum.terms) (t.scale % divisor == 0 ? p.divisible : p.rest).terms.push_back(t);
  return p;
}

Expr remainder_expr(const Expr& a, int64_t b, Rounding rounding) {
  return fold(rounding == Rounding::floored ? Kind::floormod : Kind::mod, a, int_imm(b, a->dtype));
}

}  // namespace

Form Canonicalizer::form(const Expr& e) {
  Kind kind = kind_of(e);
  if (kind == Kind::lt) return of_lt(e);
  if (!is_index(e->dtype)) return visit_node(e);
  switch (kind) {
    case Kind::add:
    case Kind::sub: return of_sum(e, kind);
    case Kind::mul: return of_product(e);
    case Kind::div:
    case Kind::mod:
    case Kind::floordiv:
    case Kind::floormod: return of_division(e, kind);
    case Kind::cast: return of_cast(e);
    default: return visit_node(e);
  }
}

Form Canonicalizer::of_sum(const Expr& e, Kind kind) {
  Operands o = operands(*e, kind);
  Form a = form(o.a), b = form(o.b);
  if (auto f = folded(kind, a, b)) return *f;
  Sum sum = as_sum(a);
  int sign = kind == Kind::add ? 1 : -1;
  bool ok;
  if (const IntImm* c = constant_of(b))
    ok = c->value > kNegInf && sum.add(sign * c->value);
  else if (const Sum* s = std::get_if<Sum>(&b))
    ok = sum.add(*s, sign);
  else
    ok = sum.add(as_split(b), sign);
  if (ok && sum.fits()) return sum;
  return fold(kind, to_expr(a), to_expr(b));
}

Form Canonicalizer::of_product(const Expr& e) {
  Operands o = operands(*e, Kind::mul);
  Form a = form(o.a), b = form(o.b);
  if (auto f = folded(Kind::mul, a, b)) return *f;
  if (constant_of(a)) std::swap(a, b);
  if (const IntImm* c = constant_of(b); c && !constant_of(a)) {
    bool is_sum = std::holds_alternative<Sum>(a);
    Sum sum = as_sum(a);
    if (sum.multiply(c->value) && sum.fits()) return is_sum ? Form(sum) : Form(sum.terms.at(0));
    return fold(Kind::mul, to_expr(a), to_expr(b));
  }
  Expr product = multiply_normal(to_expr(a), to_expr(b));
  return same(product, e) ? e : product;
}

bool Canonicalizer::within(const Expr& e, int64_t limit) {
  Bounds b = analyzer().bounds(e);
  return b.min >= 0 && b.max < limit;
}

bool Canonicalizer::stands_alone(const Expr& part, const Sum& whole) {
  return stays_in_range(part) || !stays_in_range(whole.expr());
}

Split Canonicalizer::quotient(Split x, int64_t divisor, Rounding rounding) {
  x = with_rounding(std::move(x), rounding);
  if (x.scale % divisor == 0) {
    x.scale /= divisor;
    return x;
  }
  auto lower = divisor % x.scale == 0 ? checked_mul(x.lower, divisor / x.scale) : std::nullopt;
  if (lower && x.scale > 0 && fits(*lower, x.dtype)) {
    if (x.upper == kPosInf || x.upper % *lower == 0) {
      x.scale = 1;
      x.lower = *lower;
      return x;
    }
    if (x.upper > 0 && x.upper <= *lower) return as_split(Form(int_imm(0, x.dtype)));  // (x % c1) / c2 with c1 <= c2
    // The modulus moves into the index.
    x.index = remainder_expr(x.index, x.upper, rounding);
    x.upper = kPosInf;
    x.scale = 1;
    x.lower = *lower;
    return x;
  }
  Split whole = as_split(Form(x.expr()));
  whole.lower = divisor;
  whole.rounding = rounding;
  return whole;
}

Split Canonicalizer::remainder(Split x, int64_t divisor, Rounding rounding) {
  x = with_rounding(std::move(x), rounding);
  if (x.scale % divisor == 0) {
    x.scale = 0;
    return x;
  }
  if (divisor % x.scale == 0 && x.scale < 0 && x.plain()) {
    x.upper = divisor / x.scale;  // (-x) % 4 is (x % -4) * -1
    return x;
  }
  if (divisor % x.scale == 0 && x.scale > 0) {
    // ((i % u) / l * s) % d = ((i % u) % (l * d / s)) / l * s
    auto upper = checked_mul(x.lower, divisor / x.scale);
    if (upper && *upper < kPosInf && fits(*upper, x.dtype)) {
      if (x.upper == kPosInf) {
        x.upper = *upper;
        return x;
      }
      if (x.upper % *upper == 0) {
        if (*upper == x.upper) return x;
        // A smaller modulus may simplify the index itself.
        Split s = as_split(Form(visit(remainder_expr(x.index, *upper, rounding))));
        if (x.lower != 1) s = quotient(std::move(s), x.lower, rounding);
        if (auto scale = checked_mul(s.scale, x.scale); scale && fits(*scale, s.dtype)) {
          s.scale = *scale;
          return s;
        }
      } else if (x.upper > 0 && *upper % x.upper == 0) {
        return x;  // (x % 2) % 4
      }
    }
  }
  Split whole = as_split(Form(x.expr()));
  whole.upper = divisor;
  whole.rounding = rounding;
  return whole;
}

Form Canonicalizer::quotient(const Form& x, int64_t divisor, Rounding rounding) {
  bool floored = rounding == Rounding::floored;
  const Sum* sum = std::get_if<Sum>(&x);
  if (!sum) {
    Expr e = to_expr(x);
    if (within(e, divisor)) return int_imm(0, e->dtype);
    return quotient(as_split(x), divisor, rounding);
  }
  auto [divisible, rest] = separate(*sum, divisor);
  if (rest.is_zero()) {
    divisible.divide(divisor);
    return divisible;
  }
  // Truncation lets the divisible part out only where both parts have no sign to lose.
  Expr rest_expr = rest.expr();
  if (stands_alone(rest_expr, *sum) &&
      (floored || (analyzer().prove_ge(divisible.expr(), 0) && analyzer().prove_ge(rest_expr, 0)))) {
    divisible.divide(divisor);
    bool ok = true;
    if (auto c = as_int(rest_expr)) {
      ok = divisible.add(floored ? floor_div(*c, divisor) : *c / divisor);
    } else {
      bool vanishes = compare(rest_expr, divisor) == Order::lt && (!floored || analyzer().prove_ge(rest_expr, 0));
      if (!vanishes) ok = divisible.add(quotient(as_split(Form(rest_expr)), divisor, rounding), 1);
    }
    if (ok && divisible.fits()) return divisible;
  }
  return quotient(as_split(x), divisor, rounding);
}

Form Canonicalizer::remainder(const Form& x, int64_t divisor, Rounding rounding) {
  bool floored = rounding == Rounding::floored;
  const Sum* sum = std::get_if<Sum>(&x);
  if (!sum) {
    Expr e = to_expr(x);
    if (within(e, divisor)) return x;
    return remainder(as_split(x), divisor, rounding);
  }
  auto [divisible, rest] = separate(*sum, divisor);
  Sum left = *sum;
  if (!floored && rest.is_zero()) return int_imm(0, sum->dtype);
  Expr rest_expr = rest.expr();
  if (stands_alone(rest_expr, *sum) &&
      (floored || (analyzer().prove_ge(divisible.expr(), 0) && analyzer().prove_ge(rest_expr, 0)))) {
    if (rest_expr.as<IntImm>()) return remainder_expr(rest_expr, divisor, rounding);
    if (compare(rest_expr, divisor) == Order::lt && (!floored || analyzer().prove_ge(rest_expr, 0))) return rest_expr;
    left = rest;
  }
  if (floored) {
    left.base = residue(left.base, divisor, [&](int64_t base) {
      Sum with_base = left;
      with_base.base = base;
      return with_base.expr();
    });
    return remainder(as_split(Form(left)), divisor, rounding);
  }
  // (x - 5) % 3 is (x - 2) % 3 where x - 5 >= 0 and x - 2 >= 0.
  Bounds b = analyzer().bounds(left.expr());
  int64_t base = left.base % divisor;
  if (b.min >= 0 && b.min - static_cast<__int128>(left.base) + base >= 0) left.base = base;
  return remainder(as_split(Form(left)), divisor, rounding);
}

Form Canonicalizer::of_division(const Expr& e, Kind kind) {
  Operands o = operands(*e, kind);
  Form a = form(o.a), b = form(o.b);
  if (auto f = folded(kind, a, b)) return *f;
  bool is_quotient = kind == Kind::div || kind == Kind::floordiv;
  Rounding rounding = kind == Kind::div || kind == Kind::mod ? Rounding::truncated : Rounding::floored;
  // The greatest int64 stands for no modulus in a `Split`.
  if (const IntImm* c = constant_of(b); c && c->value > 0 && c->value < kPosInf)
    return is_quotient ? quotient(a, c->value, rounding) : remainder(a, c->value, rounding);
  Expr x = to_expr(a), y = kept_divisor(kind, o.b, to_expr(b));
  if (auto common = cancel_common_factors(x, y)) {
    Expr r = fold(kind, common->a, common->b);
    return is_quotient ? r : fold(Kind::mul, r, common->factor);
  }
  return x == o.a && y == o.b ? e : fold(kind, x, y);
}

Form Canonicalizer::of_cast(const Expr& e) {
  const auto& c = static_cast<const Cast&>(*e);
  if (!is_index(c.value->dtype)) return visit_node(e);
  Form value = form(c.value);
  const Sum* sum = std::get_if<Sum>(&value);
  const Split* split = std::get_if<Split>(&value);
  if (!sum && !split) return cast_to(c.dtype, to_expr(value));
  // A widening cast commutes with arithmetic that does not overflow; a narrowing one if every intermediate value fits.
  bool widening = c.dtype.bits >= c.value->dtype.bits;
  auto safe = [&](const Expr& x) {
    Bounds b = analyzer().bounds(x);
    return b.min >= min_int(c.dtype) && b.max <= max_int(c.dtype);
  };
  auto split_safe = [&](const Split& s) { return safe(s.index) && safe(s.expr()); };
  Sum moved = as_sum(value);
  if (!widening) {
    bool ok = moved.fits() && std::ranges::all_of(moved.terms, split_safe);
    Sum partial;
    partial.dtype = moved.dtype;
    for (const Split& t : moved.terms) ok = ok && partial.add(t, 1) && safe(partial.expr());
    if (!ok || !safe(moved.expr())) return cast_to(c.dtype, to_expr(value));
  }
  moved.dtype = c.dtype;
  for (Split& t : moved.terms) {
    t.index = cast_to(c.dtype, t.index);
    t.dtype = c.dtype;
  }
  if (!moved.fits()) return cast_to(c.dtype, to_expr(value));
  return split ? Form(moved.terms.at(0)) : Form(moved);
}

Form Canonicalizer::of_lt(const Expr& e) {
  const auto& lt = static_cast<const LT&>(*e);
  if (!is_index(lt.a->dtype)) return visit_node(e);
  // a - b < 0 as x0 * s0 + x1 * s1 + ... + rest + c < 0, with d the common divisor of the scales and c.
  Form difference = form(fold(Kind::sub, lt.a, lt.b));
  const Sum* sum = std::get_if<Sum>(&difference);
  if (!sum) return visit_node(e);
  int64_t d = gcd(sum->base, 0);  // its size; 1 of the least int64, which has none
  bool scaled = false;
  for (const Split& t : sum->terms) {
    if (t.scale <= 1 && t.scale >= -1) continue;
    scaled = true;
    d = gcd(d, t.scale);
  }
  if (!scaled || d <= 1) return visit_node(e);
  auto [divisible, rest] = separate(*sum, d);
  Expr rest_expr = rest.expr(), zero = int_imm(0, sum->dtype), limit = int_imm(d, sum->dtype);
  if (analyzer().prove(make<LT>(rest_expr, limit)) && analyzer().prove(make<GT>(rest_expr, int_imm(-d, sum->dtype)))) {
    // d * X + rest < 0 is X < 0 for rest in [0, d), and X <= 0 for rest in (-d, 0): x * 8 + y < 16 with y in [0, 8) is
    // x < 2.
    divisible.divide(d);
    if (analyzer().prove_ge(rest_expr, 0)) return visit_node(make<LT>(divisible.expr(), zero));
    if (analyzer().prove_lt(rest_expr, 0)) return visit_node(make<LT>(divisible.expr(), int_imm(1, sum->dtype)));
  } else if (rest.terms.size() == 1 && rest.base == 0 && rest.terms[0].upper != kPosInf && rest.terms[0].upper > 0 &&
             rest.terms[0].scale == 1 && rest.terms[0].rounding == Rounding::floored) {
    // rest is (y % m) / l with d * l dividing m: x * 64 + (y % 64) < 120 is x * 8 + (y // 8) % 8 < 15.
    const Split& t = rest.terms[0];
    auto lower = checked_mul(d, t.lower);
    if (lower && t.upper % *lower == 0) {
      divisible.divide(d);
      Expr digit =
          remainder_expr(fold(Kind::floordiv, t.index, int_imm(*lower, t.dtype)), t.upper / *lower, Rounding::floored);
      return visit_node(make<LT>(fold(Kind::add, divisible.expr(), digit), zero));
    }
  }
  return visit_node(e);
}

}  // namespace sator::arith
