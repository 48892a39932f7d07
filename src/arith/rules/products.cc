// Products and truncated division. Truncated division rounds toward zero: most rows need operands that are not negative.
#include "arith/analyzer.h"
#include "arith/fold.h"
#include "arith/rewrite.h"
#include "arith/rules/tables.h"

namespace sator::arith::rules {
using namespace pattern;

const RuleTable& mul_vector() {
  // clang-format off
  static const RuleTable table("mul, vector", {
      {"broadcast*broadcast", {broadcast(x) * broadcast(y)}, broadcast(x * y)},
      {"ramp*broadcast", {ramp(b1, s1) * broadcast(x), broadcast(x) * ramp(b1, s1)}, ramp(b1 * x, s1 * x)},
      {"broadcast-zero", {broadcast(0) * x}, {}, {}, false,
       [](const Bindings& b, Rewriter&) {  // of floats x may be infinite
         return b.dtype.is_float() ? Expr() : make<Broadcast>(int_imm(0, b.dtype.element()), b.lanes);
       }},
  });
  // clang-format on
  return table;
}

const RuleTable& mul_index() {
  // clang-format off
  static const RuleTable table("mul, index", {
      {"distribute", {(x + c1) * c2}, x * c2 + c1 * c2},
      {"constants", {(x * c1) * c2}, x * (c1 * c2)},
      {"min*max", {min(x, y) * max(x, y), max(x, y) * min(x, y)}, x * y},
      // The other spelling of c * ceildiv(x, c).
      {"ceildiv-product", {floordiv(x - floormod(x, c2), c1) * c1}, x - floormod(x, c2), {c1 == 0 - c2}},
      {"constant-out", {x * (c1 * y)}, (x * y) * c1, {}, kAgain},
      {"constant-last", {c1 * x}, x * c1, {}, kAgain},
      {"positive-scale", {(x - y) * c1}, (y - x) * (0 - c1), {c1 < 0}, kAgain},
  });
  // clang-format on
  return table;
}

namespace {

/// ramp(b, c1) div c2 where every lane has the same quotient: the residue of b modulo c2 is known and no lane crosses.
Expr same_quotient(const Bindings& b, Rewriter& r) {
  int64_t stride = b.constant(c1), divisor = b.constant(c2);
  if (divisor <= 0 || b.lanes.scalable || !r.analyzer().prove_ge(b[b1], 0)) return nullptr;
  Modular m = r.analyzer().modular(b[b1]);
  auto last = narrow(m.base + static_cast<__int128>(b.lanes.count - 1) * stride);
  if (m.coeff % divisor != 0 || !last || *last < 0 || m.base / divisor != *last / divisor) return nullptr;
  return make<Broadcast>(fold(Kind::div, b[b1], b[c2]), Lanes(b.lanes));
}

Expr ramp_truncmod(const Bindings& b, Rewriter& r) {
  int64_t stride = b.constant(c1), divisor = b.constant(c2);
  if (divisor <= 0 || b.lanes.scalable || !r.analyzer().prove_ge(b[b1], 0)) return nullptr;
  Modular m = r.analyzer().modular(b[b1]);
  auto last = narrow(m.base + static_cast<__int128>(b.lanes.count - 1) * stride);
  if (m.coeff % divisor != 0 || !last || *last < 0) return nullptr;
  DType dtype = b.dtype.element();
  int64_t first = m.base % divisor;
  Expr ramp = make<Ramp>(int_imm(first, dtype), b[c1], Lanes(b.lanes));
  if (m.base / divisor == *last / divisor) return ramp;
  if (is_int(b[b1], first)) return nullptr;
  return make<Mod>(ramp, Expr(make<Broadcast>(b[c2], Lanes(b.lanes))));
}

Expr known_truncmod(const Bindings& b, Rewriter& r) {
  int64_t divisor = b.constant(c1);
  if (divisor <= 0) return nullptr;
  Modular m = r.analyzer().modular(b[x]);
  if (m.coeff % divisor != 0 || !r.analyzer().prove_ge(b[x], 0)) return nullptr;
  return int_imm(m.base % divisor, b.dtype);
}

}  // namespace

const RuleTable& div_vector() {
  // clang-format off
  static const RuleTable table("div, vector", {
      {"broadcast/broadcast", {truncdiv(broadcast(x), broadcast(y))}, broadcast(truncdiv(x, y))},
      {"ramp/divisor-of-stride", {truncdiv(ramp(b1, c1), broadcast(c2))}, ramp(truncdiv(b1, c2), truncdiv(c1, c2)),
       {c2 > 0, divides(c2, c1), c1 >= 0, b1 >= 0}},
      {"ramp-same-quotient", {truncdiv(ramp(b1, c1), broadcast(c2))}, {}, {}, false, same_quotient},
  });
  // clang-format on
  return table;
}

const RuleTable& div_index() {
  // clang-format off
  static const RuleTable table("div, index", {
      {"div-of-div", {truncdiv(truncdiv(x, c1), c2)}, truncdiv(x, c1 * c2), {c1 > 0, c2 > 0}},
      {"div-of-div-plus", {truncdiv(truncdiv(x, c1) + c2, c3)}, truncdiv(x + c1 * c2, c1 * c3),
       {c1 > 0, c2 >= 0, c3 > 0, x >= 0}},
      {"of-multiple", {truncdiv(x * c1, c2)}, x * truncdiv(c1, c2), {c1 > 0, c2 > 0, divides(c2, c1)}},
      {"by-multiple", {truncdiv(x * c1, c2)}, truncdiv(x, truncdiv(c2, c1)), {c1 > 0, c2 > 0, divides(c1, c2)}},
      {"self", {truncdiv(x, x)}, 1},
      {"constant-multiple", {truncdiv(x * c1, x), truncdiv(c1 * x, x)}, c1},
      // Two terms.
      {"multiple-first", {truncdiv(x * c1 + y, c2)}, x * truncdiv(c1, c2) + truncdiv(y, c2),
       {c1 >= 0, c2 > 0, divides(c2, c1), x >= 0, y >= 0}},
      {"min-multiple-first", {truncdiv(min(x * c1, y), c2)}, min(x * truncdiv(c1, c2), truncdiv(y, c2)),
       {c1 >= 0, c2 > 0, divides(c2, c1), x >= 0, y >= 0}},
      {"max-multiple-first", {truncdiv(max(x * c1, y), c2)}, max(x * truncdiv(c1, c2), truncdiv(y, c2)),
       {c1 >= 0, c2 > 0, divides(c2, c1), x >= 0, y >= 0}},
      {"multiple-second", {truncdiv(y + x * c1, c2)}, truncdiv(y, c2) + x * truncdiv(c1, c2),
       {c1 >= 0, c2 > 0, divides(c2, c1), x >= 0, y >= 0}},
      {"min-multiple-second", {truncdiv(min(y, x * c1), c2)}, min(truncdiv(y, c2), x * truncdiv(c1, c2)),
       {c1 >= 0, c2 > 0, divides(c2, c1), x >= 0, y >= 0}},
      {"max-multiple-second", {truncdiv(max(y, x * c1), c2)}, max(truncdiv(y, c2), x * truncdiv(c1, c2)),
       {c1 >= 0, c2 > 0, divides(c2, c1), x >= 0, y >= 0}},
      // Three terms.
      {"multiple-plus-plus", {truncdiv(x * c1 + y + z, c2)}, x * truncdiv(c1, c2) + truncdiv(y + z, c2),
       {c1 >= 0, c2 > 0, divides(c2, c1), x >= 0, y + z >= 0}},
      {"multiple-minus-plus", {truncdiv(x * c1 - y + z, c2)}, x * truncdiv(c1, c2) + truncdiv(z - y, c2),
       {c1 >= 0, c2 > 0, divides(c2, c1), x >= 0, z - y >= 0}},
      {"multiple-plus-minus", {truncdiv(x * c1 + y - z, c2)}, x * truncdiv(c1, c2) + truncdiv(y - z, c2),
       {c1 >= 0, c2 > 0, divides(c2, c1), x >= 0, y - z >= 0}},
      {"plus-multiple-plus", {truncdiv(y + x * c1 + z, c2)}, x * truncdiv(c1, c2) + truncdiv(y + z, c2),
       {c1 > 0, c2 > 0, divides(c2, c1), x >= 0, y + z >= 0}},
      {"plus-multiple-constant", {truncdiv(x + c1, c2)}, truncdiv(x, c2) + truncdiv(c1, c2),
       {c1 > 0, c2 > 0, divides(c2, c1), x >= 0}},
      {"divisor-as-term", {truncdiv(x + y, x), truncdiv(y + x, x)}, truncdiv(y, x) + 1, {x >= 0, y >= 0}},
      {"divisor-as-one-of-three",
       {truncdiv((x + y) + z, x), truncdiv((y + x) + z, x), truncdiv(y + (z + x), x), truncdiv(y + (x + z), x)},
       truncdiv(y + z, x) + 1, {x >= 0, y + z >= 0}},
      {"divisor-as-factor", {truncdiv(x * y, y), truncdiv(y * x, y)}, x, {x >= 0, y >= 0}},
      {"divisor-as-factor-first", {truncdiv(x * z + y, z), truncdiv(z * x + y, z)}, x + truncdiv(y, z),
       {x >= 0, y >= 0, z >= 0}},
      {"divisor-as-factor-second", {truncdiv(y + x * z, z), truncdiv(y + z * x, z)}, truncdiv(y, z) + x,
       {x >= 0, y >= 0, z >= 0}},
  });
  // clang-format on
  return table;
}

const RuleTable& mod_vector() {
  // clang-format off
  static const RuleTable table("mod, vector", {
      {"broadcast%broadcast", {truncmod(broadcast(x), broadcast(y))}, broadcast(truncmod(x, y))},
      {"ramp%divisor-of-stride", {truncmod(ramp(b1, c1), broadcast(c2))}, broadcast(truncmod(b1, c2)),
       {c2 > 0, divides(c2, c1), c1 >= 0, b1 >= 0}},
      {"ramp-known-base", {truncmod(ramp(b1, c1), broadcast(c2))}, {}, {}, false, ramp_truncmod},
  });
  // clang-format on
  return table;
}

const RuleTable& mod_index() {
  // clang-format off
  static const RuleTable table("mod, index", {
      {"of-multiple", {truncmod(x * c1, c2)}, 0, {c2 != 0, truncmod(c1, c2) == 0}},
      {"multiple-first", {truncmod(x * c1 + y, c2)}, truncmod(y, c2), {c2 > 0, divides(c2, c1), x * c1 >= 0, y >= 0}},
      {"multiple-constant", {truncmod(x + c1, c2)}, truncmod(x, c2), {c2 > 0, c1 >= 0, divides(c2, c1), x >= 0}},
      {"multiple-second", {truncmod(x + y * c1, c2)}, truncmod(x, c2), {c2 > 0, divides(c2, c1), x >= 0, y * c1 >= 0}},
      // The sign is the dividend's alone.
      {"positive-divisor", {truncmod(x, c1)}, truncmod(x, 0 - c1), {c1 < 0}, kAgain},
      {"known-residue", {truncmod(x, c1)}, {}, {}, false, known_truncmod},
  });
  // clang-format on
  return table;
}

}  // namespace sator::arith::rules
