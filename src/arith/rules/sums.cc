// Additions and subtractions.
#include "arith/rules/tables.h"

namespace sator::arith::rules {
using namespace pattern;

const RuleTable& add_vector() {
  // clang-format off
  static const RuleTable table("add, vector", {
      {"ramp+ramp", {ramp(b1, s1) + ramp(b2, s2)}, ramp(b1 + b2, s1 + s2)},
      {"ramp+broadcast", {ramp(b1, s1) + broadcast(x)}, ramp(b1 + x, s1)},
      {"broadcast+ramp", {broadcast(x) + ramp(b1, s1)}, ramp(x + b1, s1)},
      {"broadcast+broadcast", {broadcast(x) + broadcast(y)}, broadcast(x + y)},
      {"+broadcast-zero", {x + broadcast(0)}, x},
  });
  // clang-format on
  return table;
}

const RuleTable& add_index() {
  // clang-format off
  static const RuleTable table("add, index", {
      // Cancellation.
      {"sub-then-add", {(x - y) + y}, x},
      {"add-of-sub", {x + (y - x)}, y},
      {"chain-sub", {(x - y) + (y - z)}, x - z},
      {"chain-sub-swapped", {(x - y) + (z - x)}, z - y},
      {"min-sub-right", {min(x, y - z) + z}, min(x + z, y)},
      {"min-sub-left", {min(x - z, y) + z}, min(x, y + z)},
      {"max-sub-right", {max(x, y - z) + z}, max(x + z, y)},
      {"max-sub-left", {max(x - z, y) + z}, max(x, y + z)},
      {"min-scaled-right", {min(x, y + z * c1) + z * c2}, min(x + z * c2, y), {c1 == 0 - c2}},
      {"max-scaled-right", {max(x, y + z * c1) + z * c2}, max(x + z * c2, y), {c1 == 0 - c2}},
      {"min-scaled-left", {min(y + z * c1, x) + z * c2}, min(x + z * c2, y), {c1 == 0 - c2}},
      {"max-scaled-left", {max(y + z * c1, x) + z * c2}, max(x + z * c2, y), {c1 == 0 - c2}},
      {"max-plus-min", {max(x, y) + min(x, y), min(x, y) + max(x, y), max(x, y) + min(y, x), min(x, y) + max(y, x)},
       x + y},
      {"min-constant-right", {min(x, y + c1) + c2}, min(x + c2, y), {c1 == 0 - c2}},
      {"min-constant-left", {min(x + c1, y) + c2}, min(x, y + c2), {c1 == 0 - c2}},
      {"max-constant-right", {max(x, y + c1) + c2}, max(x + c2, y), {c1 == 0 - c2}},
      {"max-constant-left", {max(x + c1, y) + c2}, max(x, y + c2), {c1 == 0 - c2}},
      // Like terms.
      {"constants", {(x + c1) + c2}, x + (c1 + c2)},
      {"double", {x + x}, x * 2},
      {"product-plus-factor", {x * y + x, y * x + x, x + y * x, x + x * y}, x * (y + 1)},
      {"common-factor", {x * y + x * z, y * x + x * z, x * y + z * x, y * x + z * x}, x * (y + z)},
      // Quotient and remainder.
      {"truncdiv-mod", {truncdiv(x, c1) * c1 + truncmod(x, c1)}, x, {c1 != 0}},
      {"floordiv-mod",
       {floordiv(x, y) * y + floormod(x, y), y * floordiv(x, y) + floormod(x, y), floormod(x, y) + floordiv(x, y) * y,
        floormod(x, y) + y * floordiv(x, y)},
       x},
      {"carry", {floordiv(floormod(x, c2) + c1, c2) + floordiv(x, c2)}, floordiv(x + c1, c2), {c2 > 0}},
      {"half-plus-parity", {floordiv(x, 2) + floormod(x, 2)}, floordiv(x + 1, 2), {}, kAgain},
      {"both-parities", {floormod(x + c1, 2) + floormod(x, 2), floormod(x, 2) + floormod(x + c1, 2)}, 1,
       {floormod(c1, 2) == 1}},
      // Normal order: constants last, then look again.
      {"constant-minus", {x + (c1 - y), (c1 - y) + x}, (x - y) + c1, {}, kAgain},
      {"constant-last", {(x + c1) + y, x + (c1 + y), x + (y + c1)}, (x + y) + c1, {}, kAgain},
      {"max-first", {x + max(y, z)}, max(y, z) + x, {}, kAgain},
      {"min-first", {x + min(y, z)}, min(y, z) + x, {}, kAgain},
      {"truncmod-last", {truncmod(y, c1) + x * c1}, x * c1 + truncmod(y, c1), {}, kAgain},
      {"floormod-last", {floormod(y, c1) + x * c1}, x * c1 + floormod(y, c1), {}, kAgain},
  });
  // clang-format on
  return table;
}

const RuleTable& sub_vector() {
  // clang-format off
  static const RuleTable table("sub, vector", {
      {"ramp-ramp", {ramp(b1, s1) - ramp(b2, s2)}, ramp(b1 - b2, s1 - s2)},
      {"ramp-broadcast", {ramp(b1, s1) - broadcast(x)}, ramp(b1 - x, s1)},
      {"broadcast-ramp", {broadcast(x) - ramp(b1, s1)}, ramp(x - b1, 0 - s1)},
      {"broadcast-broadcast", {broadcast(x) - broadcast(y)}, broadcast(x - y)},
  });
  // clang-format on
  return table;
}

const RuleTable& sub_index() {
  // clang-format off
  static const RuleTable table("sub, index", {
      // Cancellation.
      {"add-then-sub", {(x + y) - y, (y + x) - y}, x},
      {"sub-of-add", {x - (y + x), x - (x + y)}, 0 - y},
      {"min-minus-second", {min(x, y) - y, x - max(y, x)}, min(x - y, 0)},
      {"minus-max-first", {x - max(x, y), min(y, x) - y}, min(0, x - y)},
      {"max-minus-second", {max(x, y) - y, x - min(y, x)}, max(x - y, 0)},
      {"minus-min-first", {x - min(x, y), max(y, x) - y}, max(0, x - y)},
      {"self", {x - x}, 0},
      {"product-minus-factor", {x * y - x, y * x - x}, x * (y - 1)},
      {"factor-minus-product", {x - y * x, x - x * y}, x * (1 - y)},
      {"common-factor", {x * y - x * z, y * x - x * z, x * y - z * x, y * x - z * x}, x * (y - z)},
      {"constants", {(x + c1) - c2}, x + (c1 - c2)},
      {"constants-minus", {(c1 - x) - (c2 - y)}, (y - x) + (c1 - c2)},
      {"common-term", {(x + y) - (x + z), (x + y) - (z + x), (y + x) - (z + x), (y + x) - (x + z)}, y - z},
      {"min-add-first", {min(x + y, z) - x, min(y + x, z) - x}, min(y, z - x)},
      {"min-add-second", {min(z, x + y) - x, min(z, y + x) - x}, min(z - x, y)},
      {"max-add-first", {max(x + y, z) - x, max(y + x, z) - x}, max(y, z - x)},
      {"max-add-second", {max(z, x + y) - x, max(z, y + x) - x}, max(z - x, y)},
      {"minus-min-add-first", {x - min(x + y, z), x - min(y + x, z)}, max(0 - y, x - z)},
      {"minus-min-add-second", {x - min(z, x + y), x - min(z, y + x)}, max(x - z, 0 - y)},
      {"minus-max-add-first", {x - max(x + y, z), x - max(y + x, z)}, min(0 - y, x - z)},
      {"minus-max-add-second", {x - max(z, x + y), x - max(z, y + x)}, min(x - z, 0 - y)},
      {"min-commuted", {min(x, y) - min(y, x)}, 0},
      {"max-commuted", {max(x, y) - max(y, x)}, 0},
      {"min-min-parallel", {min(b1, b2) - min(s1, s2)}, b1 - s1, {(b1 - s1) - (b2 - s2) == 0}},
      {"min-min-crossed", {min(b1, b2) - min(s2, s1)}, b1 - s1, {(b1 - s1) - (b2 - s2) == 0}},
      {"max-max-parallel", {max(b1, b2) - max(s1, s2)}, b1 - s1, {(b1 - s1) - (b2 - s2) == 0}},
      {"max-max-crossed", {max(b1, b2) - max(s2, s1)}, b1 - s1, {(b1 - s1) - (b2 - s2) == 0}},
      // Truncated quotient against its dividend: c * (x / c) + x % c == x.
      {"truncdiv-rest", {x - truncdiv(x, c1) * c1}, truncmod(x, c1), {c1 != 0}},
      {"truncdiv-rest-negated", {truncdiv(x, c1) * c1 - x}, 0 - truncmod(x, c1), {c1 != 0}},
      {"truncdiv-rest-add", {x - truncdiv(x + y, c1) * c1}, truncmod(x + y, c1) - y, {c1 != 0}},
      {"truncdiv-rest-add-negated", {truncdiv(x + y, c1) * c1 - x}, y - truncmod(x + y, c1), {c1 != 0}},
      {"truncdiv-rest-sub", {x - truncdiv(x - y, c1) * c1}, truncmod(x - y, c1) + y, {c1 != 0}},
      {"truncdiv-rest-sub-negated", {truncdiv(x - y, c1) * c1 - x}, 0 - truncmod(x - y, c1) - y, {c1 != 0}},
      {"truncdiv-scaled", {x * c2 - truncdiv(x, c1) * c3}, truncmod(x, c1) * c2, {c1 != 0, c3 == c1 * c2}},
      {"truncdiv-scaled-negated", {truncdiv(x, c1) * c3 - x * c2}, 0 - truncmod(x, c1) * c2, {c1 != 0, c3 == c1 * c2}},
      {"truncdiv-scaled-add", {x * c2 - truncdiv(x + y, c1) * c3}, (truncmod(x + y, c1) - y) * c2,
       {c1 != 0, c3 == c1 * c2}},
      {"truncdiv-scaled-add-negated", {truncdiv(x + y, c1) * c3 - x * c2}, (y - truncmod(x + y, c1)) * c2,
       {c1 != 0, c3 == c1 * c2}},
      {"truncdiv-scaled-sub", {x * c2 - truncdiv(x - y, c1) * c3}, (truncmod(x - y, c1) + y) * c2,
       {c1 != 0, c3 == c1 * c2}},
      {"truncdiv-scaled-sub-negated", {truncdiv(x - y, c1) * c3 - x * c2}, (0 - truncmod(x - y, c1) - y) * c2,
       {c1 != 0, c3 == c1 * c2}},
      {"truncdiv-difference", {truncdiv(x + c1, c3) - truncdiv(x + c2, c3)},
       truncdiv(truncmod(x + floormod(c2, c3), c3) + (c1 - c2), c3), {c3 > 0, c1 >= c2, x >= 0 - c2, x >= 0 - floormod(c2, c3)}},
      {"truncdiv-difference-zero", {truncdiv(x + c1, c3) - truncdiv(x, c3)}, truncdiv(truncmod(x, c3) + c1, c3),
       {c1 >= 0, c3 > 0, x >= 0}},
      // The same for the floored quotient.
      {"floordiv-rest", {x - floordiv(x, c1) * c1}, floormod(x, c1), {c1 != 0}},
      {"floordiv-rest-negated", {floordiv(x, c1) * c1 - x}, 0 - floormod(x, c1), {c1 != 0}},
      {"floordiv-rest-add", {x - floordiv(x + y, c1) * c1}, floormod(x + y, c1) - y, {c1 != 0}},
      {"floordiv-rest-add-negated", {floordiv(x + y, c1) * c1 - x}, y - floormod(x + y, c1), {c1 != 0}},
      {"floordiv-rest-sub", {x - floordiv(x - y, c1) * c1}, floormod(x - y, c1) + y, {c1 != 0}},
      {"floordiv-rest-sub-negated", {floordiv(x - y, c1) * c1 - x}, 0 - floormod(x - y, c1) - y, {c1 != 0}},
      {"halves", {floordiv(x + c1, 2) - floordiv(x + c2, 2)},
       floormod(x, 2) * (floormod(c1, 2) - floormod(c2, 2)) + (floordiv(c1, 2) - floordiv(c2, 2)), {}, kAgain},
      {"half-minus-shifted", {floordiv(x, 2) - floordiv(x + c2, 2)},
       floormod(x, 2) * (0 - floormod(c2, 2)) - floordiv(c2, 2), {}, kAgain},
      {"shifted-minus-half", {floordiv(x + c1, 2) - floordiv(x, 2)}, floormod(x, 2) * floormod(c1, 2) + floordiv(c1, 2),
       {}, kAgain},
      {"floordiv-scaled", {x * c2 - floordiv(x, c1) * c3}, floormod(x, c1) * c2, {c1 != 0, c3 == c1 * c2}},
      {"floordiv-scaled-negated", {floordiv(x, c1) * c3 - x * c2}, 0 - floormod(x, c1) * c2, {c1 != 0, c3 == c1 * c2}},
      {"floordiv-scaled-add", {x * c2 - floordiv(x + y, c1) * c3}, (floormod(x + y, c1) - y) * c2,
       {c1 != 0, c3 == c1 * c2}},
      {"floordiv-scaled-add-negated", {floordiv(x + y, c1) * c3 - x * c2}, (y - floormod(x + y, c1)) * c2,
       {c1 != 0, c3 == c1 * c2}},
      {"floordiv-scaled-sub", {x * c2 - floordiv(x - y, c1) * c3}, (floormod(x - y, c1) + y) * c2,
       {c1 != 0, c3 == c1 * c2}},
      {"floordiv-scaled-sub-negated", {floordiv(x - y, c1) * c3 - x * c2}, (0 - floormod(x - y, c1) - y) * c2,
       {c1 != 0, c3 == c1 * c2}},
      {"rounded-half-minus-parity", {floordiv(x + 1, 2) - floormod(x, 2)}, floordiv(x, 2), {}, kAgain},
      {"floordiv-difference", {floordiv(x + c1, c3) - floordiv(x + c2, c3)},
       floordiv(floormod(x + floormod(c2, c3), c3) + (c1 - c2), c3), {c3 > 0}},
      {"floordiv-difference-zero", {floordiv(x + c1, c3) - floordiv(x, c3)}, floordiv(floormod(x, c3) + c1, c3),
       {c3 > 0}},
      // Normal order.
      {"minus-constant", {x - c1}, x + (0 - c1)},
      {"constant-out-left", {(x + c1) - y}, (x - y) + c1, {}, kAgain},
      {"constant-out-right", {x - (y + c1)}, (x - y) + (0 - c1), {}, kAgain},
      {"minus-difference", {x - (y - z)}, (x + z) - y, {}, kAgain},
      {"minus-product", {x - y * c1}, x + y * (0 - c1), {}, kAgain},
  });
  // clang-format on
  return table;
}

}  // namespace sator::arith::rules
