#include "arith/sum.h"

#include <algorithm>

#include "arith/fold.h"

namespace sator::arith {
namespace {

bool accumulate(int64_t& to, int64_t value, int64_t factor) {
  auto scaled = checked_mul(value, factor);
  auto sum = scaled ? checked_add(to, *scaled) : std::nullopt;
  // The one value without a negative is kept out: scales and constants are negated freely.
  if (!sum || *sum == std::numeric_limits<int64_t>::min()) return false;
  to = *sum;
  return true;
}

/// (x / (c * s)) * s + (x % (c * s)) / c is x / c, for truncated and floored division alike, as (x % (c * s)) / c is
/// (x / c) % s. Here x = high.index % high.upper, s = high.scale / low.scale, c = low.lower.
bool mergeable(const Split& high, const Split& low) {
  return high.lower == low.upper && low.scale != 0 && high.scale % low.scale == 0 &&
         checked_mul(high.scale / low.scale, low.lower) == high.lower && high.can_round(low.rounding);
}

PooledVector<Split> merged(PooledVector<Split> terms) {
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].scale == 0) continue;
    for (size_t j = i + 1; j < terms.size(); ++j) {
      Split &high = terms[i], &low = terms[j];
      if (!same(high.index, low.index) || high.upper < low.lower) break;
      if (high.upper == low.upper && high.lower == low.lower && high.can_round(low.rounding)) {
        if (!accumulate(low.scale, high.scale, 1)) break;
        high.scale = 0;
      } else if (mergeable(high, low)) {
        low.upper = high.upper;
        high.scale = 0;
        break;
      }
    }
  }
  if (terms.size() < 2) return terms;  // the sort takes memory before it looks
  std::stable_sort(terms.begin(), terms.end(), [](const Split& a, const Split& b) {
    if (a.scale != b.scale) return a.scale > b.scale;
    if (a.lower != b.lower) return a.lower > b.lower;
    if (a.upper != b.upper) return a.upper > b.upper;
    return a.rounding > b.rounding;
  });
  return terms;
}

}  // namespace

Expr Split::expr(int64_t factor) const {
  if (scale == 0) return int_imm(0, dtype);
  bool floored = rounding == Rounding::floored;
  Expr e = index;
  if (upper != kPosInf) e = fold(floored ? Kind::floormod : Kind::mod, e, int_imm(upper, dtype));
  if (lower != 1) e = fold(floored ? Kind::floordiv : Kind::div, e, int_imm(lower, dtype));
  return fold(Kind::mul, e, int_imm(scale * factor, dtype));
}

Expr Sum::expr() const {
  Expr e = int_imm(0, dtype);
  if (terms.empty()) return int_imm(base, dtype);
  PooledVector<Split> ordered = merged(terms);
  for (const Split& t : ordered)
    if (t.scale > 0) e = fold(Kind::add, e, t.expr());
  // The least value has no negative: it is added.
  bool least = base == std::numeric_limits<int64_t>::min() || !arith::fits(-base, dtype);
  if (base > 0 || least) e = fold(Kind::add, e, int_imm(base, dtype));
  for (const Split& t : ordered)
    if (t.scale < 0) e = fold(Kind::sub, e, t.expr(-1));
  if (base < 0 && !least) e = fold(Kind::sub, e, int_imm(-base, dtype));
  return e;
}

bool Sum::fits() const {
  auto ok = [&](int64_t v) { return arith::fits(v, dtype) && arith::fits(-v, dtype); };
  return arith::fits(base, dtype) && std::ranges::all_of(terms, [&](const Split& t) {
           return ok(t.scale) && ok(t.lower) && (t.upper == kPosInf || ok(t.upper));
         });
}

bool Sum::add(Split term, int64_t factor) {
  if (term.scale == 0) return true;
  size_t at = 0;
  while (at < terms.size() && !same(terms[at].index, term.index)) ++at;
  for (; at < terms.size(); ++at) {
    Split& t = terms[at];
    if (!same(t.index, term.index) || term.lower > t.lower) break;
    if (term.lower == t.lower && term.upper == t.upper && term.can_round(t.rounding))
      return accumulate(t.scale, term.scale, factor);
  }
  int64_t scale = 0;
  if (!accumulate(scale, term.scale, factor)) return false;
  term.scale = scale;
  terms.insert(terms.begin() + static_cast<std::ptrdiff_t>(at), std::move(term));
  return true;
}

bool Sum::add(const Sum& other, int64_t factor) {
  for (const Split& t : other.terms)
    if (!add(t, factor)) return false;
  return accumulate(base, other.base, factor);
}

bool Sum::add(int64_t value) { return accumulate(base, value, 1); }

bool Sum::multiply(int64_t factor) {
  int64_t b = 0;
  if (!accumulate(b, base, factor)) return false;
  base = b;
  for (Split& t : terms) {
    int64_t scale = 0;
    if (!accumulate(scale, t.scale, factor)) return false;
    t.scale = scale;
  }
  return true;
}

void Sum::divide(int64_t divisor) {
  base /= divisor;
  for (Split& t : terms) t.scale /= divisor;
}

Expr to_expr(const Form& form) {
  if (const Expr* e = std::get_if<Expr>(&form)) return *e;
  if (const Split* s = std::get_if<Split>(&form)) return s->expr();
  return std::get<Sum>(form).expr();
}

}  // namespace sator::arith
