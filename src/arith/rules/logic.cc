// Comparisons and their combinations. Comparisons are brought to `<`, `<=`, `==`, `!=`.
#include <algorithm>

#include "arith/analyzer.h"
#include "arith/rewrite.h"
#include "arith/rules/tables.h"

namespace sator::arith::rules {
using namespace pattern;

const RuleTable& compare_vector() {
  // clang-format off
  static const RuleTable table("compare, vector", {
      {"broadcast==broadcast", {broadcast(x) == broadcast(y)}, broadcast(x == y)},
      {"broadcast<broadcast", {broadcast(x) < broadcast(y)}, broadcast(x < y)},
      {"ramp<ramp", {ramp(x, s1) < ramp(y, s1)}, broadcast(x < y)},
      {"not-broadcast", {!broadcast(x)}, broadcast(!x)},
      {"broadcast-and-broadcast", {broadcast(x) && broadcast(y)}, broadcast(x && y)},
      {"broadcast-or-broadcast", {broadcast(x) || broadcast(y)}, broadcast(x || y)},
  });
  // clang-format on
  return table;
}

const RuleTable& eq_index() {
  // clang-format off
  static const RuleTable table("eq, index", {
      {"constant-right", {c1 == x}, x == c1},
      {"minus-constant", {x - c1 == c2}, x == c2 + c1},
      {"constant-minus", {c1 - x == c2}, x == c1 - c2},
      {"plus-constant", {x + c1 == c2}, x == c2 - c1},
      {"zero-product", {x * y == 0}, x == 0 || y == 0, {}, kAgain},
  });
  // clang-format on
  return table;
}

namespace {

/// x * y * product < (x + y) * sum of positive x, y: sum / x + sum / y > product, least where both are greatest.
Expr below_sum(const Bindings& b, Rewriter& r, int64_t product) {
  constexpr int64_t kLimit = int64_t{1} << 31;  // all products below fit 128 bits
  int64_t sum = b.constant(c1), most_x = r.analyzer().bounds(b[x]).max, most_y = r.analyzer().bounds(b[y]).max;
  if (std::max({most_x, most_y, sum, product}) >= kLimit || sum <= 0 || product <= 0) return nullptr;
  __int128 left = static_cast<__int128>(most_x) * most_y * product;
  return left < static_cast<__int128>(most_x + most_y) * sum ? bool_imm(true) : nullptr;
}
Expr product_below_sum(const Bindings& b, Rewriter& r) { return below_sum(b, r, 1); }
Expr scaled_product_below_sum(const Bindings& b, Rewriter& r) { return below_sum(b, r, b.constant(c2)); }

}  // namespace

const RuleTable& lt_index() {
  // clang-format off
  static const RuleTable table("lt, index", {
      // Common terms and factors.
      {"common-term", {x + y < x + z, x + y < z + x, y + x < x + z, y + x < z + x}, y < z},
      {"common-subtrahend", {y - x < z - x}, y < z},
      {"common-minuend", {x - y < x - z}, z < y},
      {"self-plus", {x < x + z, x < z + x}, 0 < z},
      {"self-minus", {x < x - z}, z < 0},
      {"common-scale-positive", {x * c1 < y * c1}, x < y, {c1 > 0}},
      {"common-scale-negative", {x * c1 < y * c1}, y < x, {c1 < 0}},
      // A scaled value against a constant.
      {"scaled<positive", {x * c2 < c1}, x < truncdiv(c1 - 1, c2) + 1, {c1 > 0, c2 > 0}},
      {"scaled<nonpositive", {x * c2 < c1}, x < truncdiv(c1, c2), {c1 <= 0, c2 > 0}},
      {"negated<positive", {x * c2 < c1}, truncdiv(c1 - 1, c2) - 1 < x, {c1 > 0, c2 < 0}},
      {"negated<nonpositive", {x * c2 < c1}, truncdiv(c1, c2) < x, {c1 <= 0, c2 < 0}},
      {"negative<scaled", {c1 < x * c2}, truncdiv(c1 + 1, c2) - 1 < x, {c1 < 0, c2 > 0}},
      {"nonnegative<scaled", {c1 < x * c2}, truncdiv(c1, c2) < x, {c1 >= 0, c2 > 0}},
      {"negative<negated", {c1 < x * c2}, x < truncdiv(c1 + 1, c2) + 1, {c1 < 0, c2 < 0}},
      {"nonnegative<negated", {c1 < x * c2}, x < truncdiv(c1, c2), {c1 >= 0, c2 < 0}},
      // A quotient against a constant.
      {"truncdiv<positive", {truncdiv(x, c1) < c2}, x < c1 * c2, {c1 > 0, c2 > 0}},
      {"truncdiv<nonpositive", {truncdiv(x, c1) < c2}, x < c1 * (c2 - 1) + 1, {c1 > 0, c2 <= 0}},
      {"nonnegative<truncdiv", {c1 < truncdiv(x, c2)}, (c1 + 1) * c2 - 1 < x, {c1 >= 0, c2 > 0}},
      {"negative<truncdiv", {c1 < truncdiv(x, c2)}, c1 * c2 < x, {c1 < 0, c2 > 0}},
      // x - (x / c) * c is x % c.
      {"truncdiv-rest", {truncdiv(x, c1) * c1 < x}, 0 < truncmod(x, c1), {c1 > 0}},
      {"truncdiv-rest-plus", {truncdiv(x, c1) * c1 < x + y}, 0 < truncmod(x, c1) + y, {c1 > 0}},
      {"truncdiv-rest-minus", {truncdiv(x, c1) * c1 < x - y}, y < truncmod(x, c1), {c1 > 0}},
      {"truncdiv-shifted", {truncdiv(x + c2, c1) * c1 < x}, c2 < truncmod(x + c2, c1), {c1 > 0}},
      {"truncdiv-shifted-plus", {truncdiv(x + c2, c1) * c1 < x + y}, c2 < truncmod(x + c2, c1) + y, {c1 > 0}},
      {"truncdiv-shifted-minus", {truncdiv(x + c2, c1) * c1 < x - y}, y < truncmod(x + c2, c1) + (0 - c2), {c1 > 0}},
      {"floordiv<constant", {floordiv(x, c1) < c2}, x < c1 * c2, {c1 > 0}},
      {"constant<floordiv", {c1 < floordiv(x, c2)}, (c1 + 1) * c2 - 1 < x, {c2 > 0}},
      {"floordiv-rest", {floordiv(x, c1) * c1 < x}, 0 < floormod(x, c1), {c1 > 0}},
      {"floordiv-rest-plus", {floordiv(x, c1) * c1 < x + y}, 0 < floormod(x, c1) + y, {c1 > 0}},
      {"floordiv-rest-minus", {floordiv(x, c1) * c1 < x - y}, y < floormod(x, c1), {c1 > 0}},
      {"floordiv-shifted", {floordiv(x + c2, c1) * c1 < x}, c2 < floormod(x + c2, c1), {c1 > 0}},
      {"floordiv-shifted-plus", {floordiv(x + c2, c1) * c1 < x + y}, c2 < floormod(x + c2, c1) + y, {c1 > 0}},
      {"floordiv-shifted-minus", {floordiv(x + c2, c1) * c1 < x - y}, y < floormod(x + c2, c1) + (0 - c2), {c1 > 0}},
      // Extremes come apart.
      {"min<", {min(x, y) < z}, x < z || y < z, {}, kAgain},
      {"max<", {max(x, y) < z}, x < z && y < z, {}, kAgain},
      {"<min", {z < min(x, y)}, z < x && z < y, {}, kAgain},
      {"<max", {z < max(x, y)}, z < x || z < y, {}, kAgain},
      // Constants to one side.
      {"constant<plus", {c1 < x + c2}, c1 - c2 < x, {}, kAgain},
      {"constant-minus<constant", {c1 - x < c2}, c1 - c2 < x, {}, kAgain},
      {"constant<constant-minus", {c1 < c2 - x, x + c1 < c2}, x < c2 - c1, {}, kAgain},
      {"constant<minus", {c1 < x - c2}, c1 + c2 < x, {}, kAgain},
      {"minus<constant", {x - c2 < c1}, x < c1 + c2, {}, kAgain},
      {"<constant-minus", {x < c1 - y}, x + y < c1, {}, kAgain},
      {"constant-minus<", {c1 - y < x}, c1 < x + y, {}, kAgain},
      {"<constant-plus", {x < c1 + y}, x - y < c1, {}, kAgain},
      {"constant-plus<", {c1 + y < x}, c1 < x - y, {}, kAgain},
      // A product against a sum of the same.
      {"product<sum", {x * y < (x + y) * c1, x * y < (y + x) * c1}, {}, {x >= 1, y >= 1}, false, product_below_sum},
      {"scaled-product<sum", {(x * y) * c2 < (x + y) * c1, (x * y) * c2 < (y + x) * c1}, {}, {x >= 1, y >= 1}, false,
       scaled_product_below_sum},
  });
  // clang-format on
  return table;
}

const RuleTable& logical_not() {
  // clang-format off
  static const RuleTable table("not", {
      {"not-not", {!(!x)}, x},
      {"not<=", {!(x <= y)}, y < x},
      {"not>=", {!(x >= y)}, x < y},
      {"not<", {!(x < y)}, y <= x},
      {"not>", {!(x > y)}, x <= y},
      {"not==", {!(x == y)}, x != y},
      {"not!=", {!(x != y)}, x == y},
      {"not-or", {!(x || y)}, (!x) && (!y), {}, kAgain},
      {"not-and", {!(x && y)}, (!x) || (!y), {}, kAgain},
  });
  // clang-format on
  return table;
}

const RuleTable& logical_and() {
  // clang-format off
  static const RuleTable table("and", {
      // Contradictions.
      {"eq-ne", {x == y && x != y, x != y && x == y}, no},
      {"not-self", {x && !x}, no},
      {"le-lt", {x <= y && y < x, y < x && x <= y}, no},
      {"lt-lt", {x < c1 && c2 < x, c2 < x && x < c1}, no, {c2 + 1 >= c1}},
      {"lt-le", {x < c1 && c2 <= x, c2 <= x && x < c1, x <= c1 && c2 < x, c2 < x && x <= c1}, no, {c2 >= c1}},
      {"le-le", {x <= c1 && c2 <= x, c2 <= x && x <= c1}, no, {c2 > c1}},
      // Equal to a constant.
      {"eq-eq", {(x == c1) && (x == c2)}, (x == c1) && (c1 == c2)},
      {"eq-ne-constants", {x == c1 && x != c2, x != c2 && x == c1}, x == c1 && c1 != c2},
      // Quotient and remainder together.
      {"quotient-and-remainder",
       {floordiv(x, c2) == c1 && floormod(x, c2) == c3, floormod(x, c2) == c3 && floordiv(x, c2) == c1},
       x == c1 * c2 + c3, {c2 > 0, c3 >= 0, c3 < c2}, kAgain},
      {"as-quotient", {0 <= x - y * c1 && x - y * c1 < c1, x - y * c1 < c1 && 0 <= x - y * c1}, y == floordiv(x, c1),
       {c1 > 0}, kAgain},
      {"as-quotient-negative", {c1 < x - y * c1 && x - y * c1 <= 0, x - y * c1 <= 0 && c1 < x - y * c1},
       y == floordiv(x, c1), {c1 < 0}, kAgain},
      {"as-quotient-added", {0 <= x + y * c2 && x + y * c2 < c1, x + y * c2 < c1 && 0 <= x + y * c2},
       y == floordiv(x, c1), {c2 == 0 - c1, c1 > 0}, kAgain},
      // A bound above that the remainder sharpens: the largest x below it whose remainder is below c3.
      {"lt-remainder-whole", {x < c1 && floormod(x, c2) < c3}, x < c1 - c2 + c3 && floormod(x, c2) < c3,
       {c2 > 0, c3 > 0, c3 < c2, divides(c2, c1)}, kAgain},
      {"lt-remainder", {x < c1 && floormod(x, c2) < c3}, x < c1 - floormod(c1, c2) + c3 && floormod(x, c2) < c3,
       {c2 > 0, c3 > 0, floormod(c1, c2) > c3}, kAgain},
      {"le-remainder-whole", {x <= c1 && floormod(x, c2) < c3}, x < c1 + 1 - c2 + c3 && floormod(x, c2) < c3,
       {c2 > 0, c3 > 0, c3 < c2, divides(c2, c1 + 1)}, kAgain},
      {"le-remainder", {x <= c1 && floormod(x, c2) < c3},
       x < c1 + 1 - floormod(c1 + 1, c2) + c3 && floormod(x, c2) < c3, {c2 > 0, c3 > 0, floormod(c1 + 1, c2) > c3},
       kAgain},
      {"quotient-lt-remainder",
       {floordiv(x, c2) == c1 && floormod(x, c2) < c3, floormod(x, c2) < c3 && floordiv(x, c2) == c1},
       c1 * c2 <= x && x < c1 * c2 + c3, {c2 > 0, c3 <= c2}, kAgain},
      {"quotient-le-remainder",
       {floordiv(x, c2) == c1 && floormod(x, c2) <= c3, floormod(x, c2) <= c3 && floordiv(x, c2) == c1},
       c1 * c2 <= x && x <= c1 * c2 + c3, {c2 > 0, c3 < c2}, kAgain},
      {"quotient-ge-remainder",
       {floordiv(x, c2) == c1 && c3 <= floormod(x, c2), c3 <= floormod(x, c2) && floordiv(x, c2) == c1},
       c1 * c2 + c3 <= x && x < (c1 + 1) * c2, {c2 > 0, c3 >= 0}, kAgain},
      {"quotient-gt-remainder",
       {floordiv(x, c2) == c1 && c3 < floormod(x, c2), c3 < floormod(x, c2) && floordiv(x, c2) == c1},
       c1 * c2 + c3 < x && x < (c1 + 1) * c2, {c2 > 0, c3 >= -1}, kAgain},
      {"left-assoc", {x && (y && z)}, (x && y) && z, {}, kAgain},
  });
  // clang-format on
  return table;
}

const RuleTable& logical_or() {
  // clang-format off
  static const RuleTable table("or", {
      // Tautologies.
      {"eq-ne", {x == y || x != y, x != y || x == y}, yes},
      {"not-self", {x || !x}, yes},
      {"le-lt", {x <= y || y < x, y < x || x <= y}, yes},
      {"lt-gt", {x < y || y < x}, x != y},
      {"lt-lt", {x < c1 || c2 < x, c2 < x || x < c1}, yes, {c2 < c1}},
      {"le-lt-constants", {x <= c1 || c2 < x, c2 < x || x <= c1, x < c1 || c2 <= x, c2 <= x || x < c1}, yes, {c2 <= c1}},
      {"le-le", {x <= c1 || c2 <= x, c2 <= x || x <= c1}, yes, {c2 <= c1 + 1}},
      // Different from a constant.
      {"ne-ne", {x != c1 || x != c2}, x != c1 || c1 != c2},
      {"ne-eq", {x != c1 || x == c2, x == c2 || x != c1}, x != c1 || c1 == c2},
      {"lt-eq", {x < y || x == y, x < y || y == x, x == y || x < y, y == x || x < y}, x <= y, {}, kAgain},
      {"left-assoc", {x || (y || z)}, (x || y) || z, {}, kAgain},
  });
  // clang-format on
  return table;
}

}  // namespace sator::arith::rules
