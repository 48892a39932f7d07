#include "arith/deduce_bound.h"

#include <gtest/gtest.h>

#include "arith/eval.h"
#include "arith/numbers.h"
#include "arith/text_form.h"

namespace sator::arith {
namespace {

std::string show_set(const IntSet& s) {
  if (s.empty) return "nothing";
  return text(s.min ? show(s.min) : "..", " to ", s.max ? show(s.max) : "..");
}

IntSet constants(int64_t low, int64_t high) { return IntSet::interval(int_imm(low), int_imm(high)); }

TEST(DeduceBound, SolvesForOneVariable) {
  struct Row {
    const char *condition, *expected;
  };
  // b is one of 2 and 3, d one of -3 to -1; c is 10 to 15.
  const Row rows[] = {
      {"a * 4 + 3 < 17", ".. to 3"},
      {"17 < a * 4 + 3", "4 to .."},
      {"3 - a <= 5", "-2 to .."},
      {"a // 8 > 3", "32 to .."},
      {"a // 8 <= 3", ".. to 31"},
      {"a // (-8) > 3", ".. to (-32)"},
      {"a // (-8) < 3", "-23 to .."},
      {"5 * a == -10", "-2 to -2"},
      {"5 * a == 11", "nothing"},
      {"a * 4 < c", ".. to ((c - 1) // 4)"},
      {"c <= a * 4", "(((c - 1) // 4) + 1) to .."},
      {"a * c >= d", "(((d - 1) // c) + 1) to .."},
      {"a * d >= c", ".. to (c // d)"},
      {"a * e >= c", "nothing"},   // the sign of e is not known
      {"a + a > c", "nothing"},    // twice
      {"a % 16 < 10", "nothing"},  // not an interval
      {"min(a, 16) < 10", "nothing"},
      {"a + c", "nothing"},  // no comparison
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.condition);
    Names n;
    SetMap hints = {{n["b"], constants(2, 3)}, {n["c"], constants(10, 15)}, {n["d"], constants(-3, -1)}};
    std::string got = show_set(deduce_bound(n["a"], parse_expr(row.condition, n), hints, {}));
    std::erase(got, '(');
    std::erase(got, ')');
    std::string expected = row.expected;
    std::erase(expected, '(');
    std::erase(expected, ')');
    EXPECT_EQ(got, expected);
  }
}

/// Tried on all small values: `a` is inside of the bound exactly where the condition holds for all values of b.
TEST(DeduceBound, IsWhatTryingAllValuesGives) {
  int tried = 0;
  for (const char* side : {"b + a * 4 + 3",
                           "b * 3 + a * (-4)",
                           "(b * 3 + a * 4) * 4",
                           "b - a * 3",
                           "b * 3 + a // 8",
                           "(a + b) // 4",
                           "b - a // (-3)"}) {
    for (const char* op : {"<", "<=", ">", ">="}) {
      for (int limit : {-7, 0, 5, 17}) {
        for (bool swapped : {false, true}) {
          Names n;
          VarRef a = n["a"], b = n["b"];
          std::string c = swapped ? text("(", limit, ") ", op, " ", side) : text(side, " ", op, " (", limit, ")");
          SCOPED_TRACE(c);
          Expr condition = parse_expr(c, n);
          SetMap of_b = {{b, constants(1, 5)}};
          IntSet s = deduce_bound(a, condition, of_b, of_b);
          ASSERT_FALSE(s.empty);
          auto low = s.min ? as_int(s.min) : kNegInf, high = s.max ? as_int(s.max) : kPosInf;
          ASSERT_TRUE(low && high) << show_set(s);
          for (int64_t x = -200; x <= 200; ++x) {
            bool always = true;
            for (int64_t y = 1; y <= 5; ++y) always &= evaluate(condition, {{a, x}, {b, y}}) != 0;
            EXPECT_EQ(always, *low <= x && x <= *high) << x;
          }
          ++tried;
        }
      }
    }
  }
  EXPECT_EQ(tried, 7 * 4 * 4 * 2);
}

TEST(DetectClipBound, OneVariablePerConjunct) {
  struct Row {
    const char* condition;
    std::vector<const char*> vars;
    std::vector<std::string> expected;
  };
  const Row rows[] = {
      {"a < b * 6 and a - 1 > 0", {"a"}, {"2 to ((b * 6) - 1)"}},
      {"a < b * 6 and a - 1 > 0", {"a", "b"}, {}},  // the first is about both
      {"min(a, b) > 3 and a - 10 < 0", {"a", "b"}, {"4 to 9", "4 to .."}},
      {"a == 4 and b == 3", {"a", "b"}, {"4 to 4", "3 to 3"}},
      {"b == 3", {"a", "b"}, {".. to ..", "3 to 3"}},
      {"a * 2 < b", {"a"}, {}},
      {"a % 4 == 0", {"a"}, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.condition);
    Names n;
    std::vector<VarRef> vars;
    for (const char* v : row.vars) vars.push_back(n[v]);
    std::vector<std::string> got;
    for (const IntSet& s : detect_clip_bound(parse_expr(row.condition, n), vars)) got.push_back(show_set(s));
    EXPECT_EQ(got, row.expected);
  }
}

/// The narrowed condition has none of the free variables, and implies the given one for each of their values.
TEST(NarrowPredicate, ImpliesTheConditionForAllValues) {
  int useful = 0;
  for (const char* c : {"i > n",
                        "i < n",
                        "i <= n",
                        "n >= i",
                        "i == n",
                        "i != n",
                        "i // 4 > n",
                        "(i + n) // 4 > 0",
                        "i - n < 10",
                        "not (i < n)",
                        "not (i == n)",
                        "i % 8 == n",
                        "i // n == 0",
                        "i - n * 3 >= n and i < 40",
                        "i < 3 or n < i",
                        "i > n + 3 or load(\"int32\", \"A\", i) > n",
                        "i > n + 3 or not (load(\"int32\", \"A\", i) > n)",
                        "min(i, n) >= 4 - n"}) {
    SCOPED_TRACE(c);
    Names names;
    VarRef i = names["i"], n = names["n"];
    Expr given = parse_expr(c, names);
    Expr narrow = narrow_predicate(given, {{n, make<Range>(int_imm(0), int_imm(8))}});
    EXPECT_FALSE(uses_var(narrow, *n)) << show(narrow);
    for (int64_t x = -60; x < 60; ++x) {
      if (evaluate(narrow, {{i, x}}).value_or(0) == 0) continue;
      ++useful;
      for (int64_t y = 0; y < 8; ++y) {
        // Nothing where the truth depends on memory.
        EXPECT_EQ(evaluate(given, {{i, x}, {n, y}}), 1) << "i = " << x << ", n = " << y << ": " << show(narrow);
      }
    }
  }
  EXPECT_GT(useful, 500);
}

}  // namespace
}  // namespace sator::arith
