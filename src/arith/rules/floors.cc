// Floored division, the division of indices.
#include "arith/analyzer.h"
#include "arith/fold.h"
#include "arith/rewrite.h"
#include "arith/rules/tables.h"

namespace sator::arith::rules {
using namespace pattern;

namespace {

/// (x * c1 + y) // c2, where y may be absent: the multiple leaves if the rest divides to one constant; else the divisor
/// shrinks if y's residue stays below c1.
Expr scaled_quotient(const Bindings& b, Rewriter& r) {
  int64_t scale = b.constant(c1), divisor = b.constant(c2);
  Expr rest = b.hole[1] ? b[y] : int_imm(0, b.dtype);
  auto number = [&](int64_t v) { return int_imm(v, b.dtype); };
  Expr rest_residue = fold(Kind::floormod, rest, number(divisor));
  Expr residue = fold(Kind::floordiv,
                      fold(Kind::add, fold(Kind::mul, b[x], number(floor_mod(scale, divisor))), rest_residue),
                      number(divisor));
  Expr rest_quotient = fold(Kind::floordiv, rest, number(divisor));
  if (r.compare(rest_quotient, 0) == Order::eq) rest_quotient = number(0);
  Bounds bounds = r.analyzer().bounds(residue);
  if (bounds.is_constant() && fits(bounds.max, b.dtype))
    return fold(Kind::add,
                fold(Kind::mul, b[x], number(floor_div(scale, divisor))),
                fold(Kind::add, rest_quotient, number(bounds.max)));
  // c2 == a * c1, x == a * x' + p, y == d * c2 + e with e < c1: the sum divides to x' + d, as p * c1 + e < c2.
  if (scale > 0 && divisor > 0 && divisor % scale == 0 && r.analyzer().prove_lt(rest_residue, scale))
    return fold(Kind::add, fold(Kind::floordiv, b[x], number(divisor / scale)), rest_quotient);
  return nullptr;
}

/// Where base and every lane of the ramp have one quotient by c2.
bool one_quotient(const Bindings& b, const Modular& m) {
  if (b.lanes.scalable) return false;
  int64_t stride = b.constant(c1), divisor = b.constant(c2);
  auto last = narrow(m.base + static_cast<__int128>(b.lanes.count - 1) * stride);
  if (!last || floor_div(m.base, divisor) != floor_div(*last, divisor)) return false;
  if (m.coeff % divisor == 0) return true;
  // Or all lanes stay inside one period of the base's class, and periods tile the divisor.
  return divisor % m.coeff == 0 && *last >= 0 && *last < m.coeff;
}

Expr ramp_quotient(const Bindings& b, Rewriter& r) {
  Modular m = r.analyzer().modular(b[b1]);
  if (b.constant(c2) <= 0 || !one_quotient(b, m)) return nullptr;
  return make<Broadcast>(fold(Kind::floordiv, b[b1], b[c2]), Lanes(b.lanes));
}

Expr ramp_floormod(const Bindings& b, Rewriter& r) {
  int64_t divisor = b.constant(c2);
  Modular m = r.analyzer().modular(b[b1]);
  if (divisor <= 0) return nullptr;
  auto ramp_from = [&](Expr base) { return make<Ramp>(std::move(base), b[c1], Lanes(b.lanes)); };
  DType dtype = b.dtype.element();
  bool known = m.coeff % divisor == 0;
  if (one_quotient(b, m))
    return ramp_from(known ? int_imm(floor_mod(m.base, divisor), dtype) : fold(Kind::floormod, b[b1], b[c2]));
  int64_t base = floor_mod(m.base, divisor);
  if (!known || is_int(b[b1], base)) return nullptr;
  return make<FloorMod>(Expr(ramp_from(int_imm(base, dtype))), Expr(make<Broadcast>(b[c2], Lanes(b.lanes))));
}

Expr known_floormod(const Bindings& b, Rewriter& r) {
  int64_t divisor = b.constant(c1);
  if (divisor <= 0) return nullptr;
  Modular m = r.analyzer().modular(b[x]);
  if (m.coeff % divisor == 0) return int_imm(floor_mod(m.base, divisor), b.dtype);
  Bounds bounds = r.analyzer().bounds(b[x]);
  return bounds.min >= 0 && bounds.max < divisor ? b[x] : nullptr;
}

/// floormod(dividend, c2) with c1 in the dividend reduced.
template <class Dividend>
Expr reduced(const Bindings& b, Rewriter& r, Dividend dividend) {
  const int64_t given = b.constant(c1), divisor = b.constant(c2);
  if (divisor == 0 || divisor == -1) return nullptr;
  auto with = [&](int64_t number) { return dividend(int_imm(number, b.dtype)); };
  const int64_t residue = r.residue(given, divisor, with);
  return residue == given ? nullptr : fold(Kind::floormod, with(residue), b[c2]);
}
Expr scaled_by(const Expr& e, const Expr& factor) { return fold(Kind::mul, e, factor); }
Expr reduced_scale(const Bindings& b, Rewriter& r) {
  return reduced(b, r, [&](const Expr& c) { return scaled_by(b[x], c); });
}
Expr reduced_scale_first(const Bindings& b, Rewriter& r) {
  return reduced(b, r, [&](const Expr& c) { return fold(Kind::add, scaled_by(b[x], c), b[y]); });
}
Expr reduced_scale_second(const Bindings& b, Rewriter& r) {
  return reduced(b, r, [&](const Expr& c) { return fold(Kind::add, b[x], scaled_by(b[y], c)); });
}
Expr reduced_constant(const Bindings& b, Rewriter& r) {
  return reduced(b, r, [&](const Expr& c) { return fold(Kind::add, b[x], c); });
}

/// x // y and x % y where 0 <= x < y is known of the two together.
Expr below_divisor(const Bindings& b, Rewriter& r) {
  return r.compare(b[x], b[y]) == Order::lt ? int_imm(0, b.dtype) : nullptr;
}
Expr below_modulus(const Bindings& b, Rewriter& r) { return r.compare(b[x], b[y]) == Order::lt ? b[x] : nullptr; }

}  // namespace

const RuleTable& floordiv_vector() {
  // clang-format off
  static const RuleTable table("floordiv, vector", {
      {"broadcast//broadcast", {floordiv(broadcast(x), broadcast(y))}, broadcast(floordiv(x, y))},
      {"ramp//divisor-of-stride", {floordiv(ramp(b1, c1), broadcast(c2))}, ramp(floordiv(b1, c2), floordiv(c1, c2)),
       {c2 != 0, divides(c2, c1)}},
      {"ramp-one-quotient", {floordiv(ramp(b1, c1), broadcast(c2))}, {}, {}, false, ramp_quotient},
  });
  // clang-format on
  return table;
}

const RuleTable& floordiv_index() {
  // clang-format off
  static const RuleTable table("floordiv, index", {
      {"div-of-div", {floordiv(floordiv(x, c1), c2)}, floordiv(x, c1 * c2), {c1 > 0, c2 > 0}},
      {"div-of-div-plus", {floordiv(floordiv(x, c1) + c2, c3)}, floordiv(x + c1 * c2, c1 * c3), {c1 > 0, c3 > 0}},
      {"scaled", {floordiv(x * c1 + y, c2), floordiv(x * c1, c2), floordiv(y + x * c1, c2)}, {}, {c2 != 0}, false,
       scaled_quotient},
      {"self", {floordiv(x, x)}, 1},
      {"constant-multiple", {floordiv(x * c1, x), floordiv(c1 * x, x)}, c1},
      {"parity-plus-one", {floordiv(floormod(x, 2) + 1, 2)}, floormod(x, 2)},
      // Two terms.
      {"min-multiple-first", {floordiv(min(x * c1, y), c2)}, min(x * floordiv(c1, c2), floordiv(y, c2)),
       {c2 > 0, divides(c2, c1)}},
      {"max-multiple-first", {floordiv(max(x * c1, y), c2)}, max(x * floordiv(c1, c2), floordiv(y, c2)),
       {c2 > 0, divides(c2, c1)}},
      {"min-multiple-second", {floordiv(min(y, x * c1), c2)}, min(floordiv(y, c2), x * floordiv(c1, c2)),
       {c2 > 0, divides(c2, c1)}},
      {"max-multiple-second", {floordiv(max(y, x * c1), c2)}, max(floordiv(y, c2), x * floordiv(c1, c2)),
       {c2 > 0, divides(c2, c1)}},
      // Three terms.
      {"multiple-plus-plus", {floordiv(x * c1 + y + z, c2)}, x * floordiv(c1, c2) + floordiv(y + z, c2),
       {c2 > 0, divides(c2, c1)}},
      {"small-rest", {floordiv(x * c1 + y + z, c2)}, floordiv(x, floordiv(c2, c1)),
       {c1 > 0, c2 > 0, divides(c1, c2), floordiv(y + z, c1) == 0}},
      {"multiple-minus-plus", {floordiv(x * c1 - y + z, c2), floordiv(x * c1 + z - y, c2)},
       x * floordiv(c1, c2) + floordiv(z - y, c2), {c2 > 0, divides(c2, c1)}},
      {"plus-multiple-plus", {floordiv(y + x * c1 + z, c2)}, x * floordiv(c1, c2) + floordiv(y + z, c2),
       {c2 > 0, divides(c2, c1)}},
      {"plus-multiple-constant", {floordiv(x + c1, c2)}, floordiv(x, c2) + floordiv(c1, c2), {c2 > 0, divides(c2, c1)}},
      {"common-scale", {floordiv(x * c1, x * c2)}, floordiv(c1, c2), {c2 > 0}},
      {"divisor-as-term", {floordiv(x + y, x), floordiv(y + x, x)}, floordiv(y, x) + 1, {x >= 0}},
      {"divisor-as-one-of-three",
       {floordiv((x + y) + z, x), floordiv((y + x) + z, x), floordiv(y + (z + x), x), floordiv(y + (x + z), x)},
       floordiv(y + z, x) + 1, {x >= 0}},
      {"divisor-as-factor", {floordiv(x * y, y), floordiv(y * x, y)}, x, {y >= 0}},
      {"divisor-as-factor-first", {floordiv(x * z + y, z), floordiv(z * x + y, z)}, x + floordiv(y, z), {z >= 0}},
      {"divisor-as-factor-second", {floordiv(y + x * z, z), floordiv(y + z * x, z)}, floordiv(y, z) + x, {z >= 0}},
      {"scaled-divisor-as-factor", {floordiv(x * z * c1 + y, z * c1)}, x + floordiv(y, z * c1), {z * c1 >= 0}},
      {"rounded-down-dividend", {floordiv(x - floormod(x, c1), c1)}, floordiv(x, c1), {c1 != 0}},
      // By a product.
      {"product-multiple", {floordiv((x * y) * c1 + z, y * c1)}, x + floordiv(z, y * c1), {c1 != 0}},
      {"below-divisor", {floordiv(x, y)}, {}, {x >= 0}, false, below_divisor},
  });
  // clang-format on
  return table;
}

const RuleTable& floormod_vector() {
  // clang-format off
  static const RuleTable table("floormod, vector", {
      {"broadcast%broadcast", {floormod(broadcast(x), broadcast(y))}, broadcast(floormod(x, y))},
      {"ramp%divisor-of-stride", {floormod(ramp(b1, c1), broadcast(c2))}, broadcast(floormod(b1, c2)),
       {c2 != 0, divides(c2, c1)}},
      {"ramp-known-base", {floormod(ramp(b1, c1), broadcast(c2))}, {}, {}, false, ramp_floormod},
  });
  // clang-format on
  return table;
}

const RuleTable& floormod_index() {
  // clang-format off
  static const RuleTable table("floormod, index", {
      {"reduce-scale", {floormod(x * c1, c2)}, {}, {}, false, reduced_scale},
      {"scaled-small-rest", {floormod(x * c1 + y, c2)}, floormod(x, floordiv(c2, c1)) * c1 + y,
       {c1 > 0, c2 > 0, divides(c1, c2), floordiv(y, c1) == 0}},
      {"reduce-scale-first", {floormod(x * c1 + y, c2)}, {}, {c2 > 0}, false, reduced_scale_first},
      {"reduce-constant", {floormod(x + c1, c2)}, {}, {c2 > 0}, false, reduced_constant},
      {"reduce-scale-second", {floormod(x + y * c1, c2)}, {}, {c2 > 0}, false, reduced_scale_second},
      {"common-scale", {floormod(x * c1, x * c2)}, x * floormod(c1, c2), {c2 != 0}},
      {"of-multiple", {floormod(x * y, y), floormod(y * x, y)}, 0},
      {"completing", {floormod(x + floormod(z, y), y), floormod(floormod(z, y) + x, y)}, 0, {floormod(x + z, y) == 0}},
      {"rounded-down", {floormod(x - floormod(x, z), y), floormod(floormod(x, z) - x, y)}, 0, {y - z == 0}},
      {"rounded-up", {floormod(x - floormod(x, z), y), floormod(floormod(x, z) - x, y)}, 0, {y + z == 0}},
      {"scaled-divisor-as-factor", {floormod(x * z * c1 + y, z * c1)}, floormod(y, z * c1), {z * c1 >= 0}},
      {"known-residue", {floormod(x, c1)}, {}, {}, false, known_floormod},
      // By a product.
      {"product-multiple", {floormod((x * y) * c1 + z, y * c1)}, floormod(z, y * c1), {c1 != 0}},
      {"below-divisor", {floormod(x, y)}, {}, {x >= 0}, false, below_modulus},
  });
  // clang-format on
  return table;
}

}  // namespace sator::arith::rules
