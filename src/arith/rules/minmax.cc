// Minimum and maximum.
#include "arith/rules/tables.h"

namespace sator::arith::rules {
using namespace pattern;

const RuleTable& min_vector() {
  // clang-format off
  static const RuleTable table("min, vector", {
      {"broadcast,broadcast", {min(broadcast(x), broadcast(y))}, broadcast(min(x, y))},
      {"collect-broadcasts", {min(min(x, broadcast(y)), broadcast(z))}, min(x, broadcast(min(y, z)))},
  });
  // clang-format on
  return table;
}

const RuleTable& min_index() {
  // clang-format off
  static const RuleTable table("min, index", {
      // Operands that differ by a constant.
      {"offsets", {min(x + c1, x + c2)}, x + min(c1, c2)},
      {"offset-negative", {min(x + c1, x), min(x, x + c1)}, x + c1, {c1 < 0}},
      {"offset-positive", {min(x + c1, x), min(x, x + c1)}, x, {c1 >= 0}},
      {"constants-minus", {min(c1 - x, c2 - x)}, min(c1, c2) - x},
      // Rounding to a multiple.
      {"round-up",
       {min(truncdiv(x + c1, c2) * c2, x), min(x, truncdiv(x + c1, c2) * c2), min(floordiv(x + c1, c2) * c2, x),
        min(x, floordiv(x + c1, c2) * c2)},
       x, {c2 > 0, c1 + 1 == c2}},
      {"round-up-max",
       {min(truncdiv(x + c1, c2) * c2, max(x, c2)), min(max(x, c2), truncdiv(x + c1, c2) * c2),
        min(floordiv(x + c1, c2) * c2, max(x, c2)), min(max(x, c2), floordiv(x + c1, c2) * c2)},
       max(x, c2), {c2 > 0, c1 + 1 == c2, x >= 1}},
      {"round-down", {min(x, floordiv(x, c2) * c2), min(floordiv(x, c2) * c2, x)}, floordiv(x, c2) * c2, {c2 > 0}},
      // Absorption.
      {"absorb-into-min",
       {min(max(x, y), min(x, y)), min(max(x, y), min(y, x)), min(min(x, y), max(x, y)), min(min(x, y), max(y, x)),
        min(min(x, y), x), min(min(x, y), y), min(x, min(x, y)), min(y, min(x, y))},
       min(x, y)},
      {"absorb-max", {min(max(x, y), x), min(max(y, x), x), min(x, max(x, y)), min(x, max(y, x))}, x},
      {"seen-3", {min(min(min(x, y), z), y)}, min(min(x, y), z)},
      {"seen-4", {min(min(min(min(x, y), z), s1), y)}, min(min(min(x, y), z), s1)},
      {"seen-5", {min(min(min(min(min(x, y), z), s1), s2), y)}, min(min(min(min(x, y), z), s1), s2)},
      {"common-of-max", {min(max(x, y), max(x, z)), min(max(x, y), max(z, x)), min(max(y, x), max(x, z)), min(max(y, x), max(z, x))},
       max(min(y, z), x)},
      {"common-of-min", {min(min(x, y), min(x, z)), min(min(x, y), min(z, x)), min(min(y, x), min(x, z)), min(min(y, x), min(z, x))},
       min(min(y, z), x)},
      {"common-term", {min(y + x, z + x), min(y + x, x + z), min(x + y, x + z), min(x + y, z + x)}, min(y, z) + x},
      {"common-subtrahend", {min(y - x, z - x)}, min(y, z) - x},
      {"common-minuend", {min(x - y, x - z)}, x - max(y, z)},
      {"constants", {min(min(x, c1), c2)}, min(x, min(c1, c2))},
      // Common scale.
      {"truncdiv-positive", {min(truncdiv(x, c1), truncdiv(y, c1))}, truncdiv(min(x, y), c1), {c1 > 0}},
      {"truncdiv-negative", {min(truncdiv(x, c1), truncdiv(y, c1))}, truncdiv(max(x, y), c1), {c1 < 0}},
      {"floordiv-positive", {min(floordiv(x, c1), floordiv(y, c1))}, floordiv(min(x, y), c1), {c1 > 0}},
      {"floordiv-negative", {min(floordiv(x, c1), floordiv(y, c1))}, floordiv(max(x, y), c1), {c1 < 0}},
      {"scale-positive", {min(x * c1, y * c1)}, min(x, y) * c1, {c1 > 0}},
      {"scale-negative", {min(x * c1, y * c1)}, max(x, y) * c1, {c1 < 0}},
      {"scale-constant-positive", {min(x * c1, c2)}, min(x, floordiv(c2, c1)) * c1, {c1 > 0, divides(c1, c2)}},
      {"scale-constant-negative", {min(x * c1, c2)}, max(x, floordiv(c2, c1)) * c1, {c1 < 0, divides(c1, c2)}},
      // Normal order.
      {"constant-last", {min(min(x, c1), y)}, min(min(x, y), c1), {}, kAgain},
      {"constant-minus", {min(c1 - x, c2)}, c1 - max(x, c1 - c2), {c2 != 0}, kAgain},
      // A term of known sign.
      {"plus-nonnegative", {min(x + y, x), min(x, x + y), min(y + x, x), min(x, y + x)}, x, {y >= 0}},
      {"plus-nonpositive", {min(x + y, x), min(x, x + y), min(y + x, x), min(x, y + x)}, x + y, {y < 1}},
      {"plus-difference", {min((x + y) - z, x), min(x, (x + y) - z)}, x, {y - z >= 0}},
      {"scales", {min(x * c1, x * c2)}, x * min(c1, c2), {x >= 0}},
  });
  // clang-format on
  return table;
}

const RuleTable& max_vector() {
  // clang-format off
  static const RuleTable table("max, vector", {
      {"broadcast,broadcast", {max(broadcast(x), broadcast(y))}, broadcast(max(x, y))},
      {"collect-broadcasts", {max(max(x, broadcast(y)), broadcast(z))}, max(x, broadcast(max(y, z)))},
  });
  // clang-format on
  return table;
}

const RuleTable& max_index() {
  // clang-format off
  static const RuleTable table("max, index", {
      // Operands that differ by a constant.
      {"offsets", {max(x + c1, x + c2)}, x + max(c1, c2)},
      {"offset-positive", {max(x + c1, x), max(x, x + c1)}, x + c1, {c1 > 0}},
      {"offset-negative", {max(x + c1, x), max(x, x + c1)}, x, {c1 <= 0}},
      {"constants-minus", {max(c1 - x, c2 - x)}, max(c1, c2) - x},
      // Rounding to a multiple.
      {"round-up-truncated", {max(truncdiv(x + c1, c2) * c2, x), max(x, truncdiv(x + c1, c2) * c2)},
       truncdiv(x + c1, c2) * c2, {c2 > 0, c1 + 1 == c2}},
      {"round-up", {max(floordiv(x + c1, c2) * c2, x), max(x, floordiv(x + c1, c2) * c2)}, floordiv(x + c1, c2) * c2,
       {c2 > 0, c1 + 1 == c2}},
      {"round-down", {max(floordiv(x, c2) * c2, x), max(x, floordiv(x, c2) * c2)}, x, {c2 > 0}},
      // Absorption.
      {"absorb-into-max",
       {max(min(x, y), max(x, y)), max(min(x, y), max(y, x)), max(max(x, y), min(x, y)), max(max(x, y), min(y, x)),
        max(max(x, y), x), max(max(x, y), y), max(x, max(x, y)), max(y, max(x, y))},
       max(x, y)},
      {"absorb-min", {max(min(x, y), x), max(min(y, x), x), max(x, min(x, y)), max(x, min(y, x))}, x},
      {"seen-3", {max(max(max(x, y), z), y)}, max(max(x, y), z)},
      {"seen-4", {max(max(max(max(x, y), z), s1), y)}, max(max(max(x, y), z), s1)},
      {"seen-5", {max(max(max(max(max(x, y), z), s1), s2), y)}, max(max(max(max(x, y), z), s1), s2)},
      {"common-of-min", {max(min(x, y), min(x, z)), max(min(x, y), min(z, x)), max(min(y, x), min(x, z)), max(min(y, x), min(z, x))},
       min(max(y, z), x)},
      {"common-of-max", {max(max(x, y), max(x, z)), max(max(x, y), max(z, x)), max(max(y, x), max(x, z)), max(max(y, x), max(z, x))},
       max(max(y, z), x)},
      {"common-term", {max(y + x, z + x), max(y + x, x + z), max(x + y, x + z), max(x + y, z + x)}, max(y, z) + x},
      {"common-subtrahend", {max(y - x, z - x)}, max(y, z) - x},
      {"common-minuend", {max(x - y, x - z)}, x - min(y, z)},
      {"constants", {max(max(x, c1), c2)}, max(x, max(c1, c2))},
      // Common scale.
      {"truncdiv-positive", {max(truncdiv(x, c1), truncdiv(y, c1))}, truncdiv(max(x, y), c1), {c1 > 0}},
      {"truncdiv-negative", {max(truncdiv(x, c1), truncdiv(y, c1))}, truncdiv(min(x, y), c1), {c1 < 0}},
      {"floordiv-positive", {max(floordiv(x, c1), floordiv(y, c1))}, floordiv(max(x, y), c1), {c1 > 0}},
      {"floordiv-negative", {max(floordiv(x, c1), floordiv(y, c1))}, floordiv(min(x, y), c1), {c1 < 0}},
      {"scale-positive", {max(x * c1, y * c1)}, max(x, y) * c1, {c1 > 0}},
      {"scale-negative", {max(x * c1, y * c1)}, min(x, y) * c1, {c1 < 0}},
      {"scale-constant-positive", {max(x * c1, c2)}, max(x, floordiv(c2, c1)) * c1, {c1 > 0, divides(c1, c2)}},
      {"scale-constant-negative", {max(x * c1, c2)}, min(x, floordiv(c2, c1)) * c1, {c1 < 0, divides(c1, c2)}},
      // Normal order.
      {"constant-last", {max(max(x, c1), y)}, max(max(x, y), c1), {}, kAgain},
      {"constant-minus", {max(c1 - x, c2)}, c1 - min(x, c1 - c2), {c2 != 0}, kAgain},
      // A term of known sign.
      {"plus-nonnegative", {max(x + y, x), max(x, x + y), max(y + x, x), max(x, y + x)}, x + y, {y >= 0}},
      {"plus-nonpositive", {max(x + y, x), max(x, x + y), max(y + x, x), max(x, y + x)}, x, {y < 1}},
      {"plus-difference", {max((x + y) - z, x), max(x, (x + y) - z)}, (x + y) - z, {y - z >= 0}},
      {"scales", {max(x * c1, x * c2)}, x * max(c1, c2), {x >= 0}},
  });
  // clang-format on
  return table;
}

const RuleTable& of_selects() {
  // clang-format off
  static const RuleTable table("op of selects", {
      {"add", {select(x, b1, b2) + select(x, s1, s2)}, select(x, b1 + s1, b2 + s2)},
      {"sub", {select(x, b1, b2) - select(x, s1, s2)}, select(x, b1 - s1, b2 - s2)},
      {"sub-false", {select(x, y, z) - z}, select(x, y - z, 0)},
      {"sub-true", {select(x, y, z) - y}, select(x, 0, z - y)},
      {"min", {min(select(x, y, z), select(x, s1, s2))}, select(x, min(y, s1), min(z, s2))},
      {"max", {max(select(x, y, z), select(x, s1, s2))}, select(x, max(y, s1), max(z, s2))},
  });
  // clang-format on
  return table;
}

const RuleTable& select_any() {
  // clang-format off
  static const RuleTable table("select", {
      {"same-values", {select(x, y, y)}, y},
  });
  // clang-format on
  return table;
}

}  // namespace sator::arith::rules
