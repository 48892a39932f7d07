// Intervals and regions against the values themselves.
#include "arith/intset.h"

#include <gtest/gtest.h>

#include "arith/analyzer.h"
#include "arith/eval.h"
#include "arith/kind.h"
#include "arith/text_form.h"

namespace sator::arith {
namespace {

struct Row {
  const char* expr;
  const char* domains;  ///< "x:0..10 y:2..z"
  const char* min;      ///< "" if open
  const char* max;
};

SetMap domains_of(const std::string& spec, Names& names) {
  SetMap out;
  size_t at = 0;
  while (at < spec.size()) {
    size_t end = std::min(spec.find(' ', at), spec.size()), colon = spec.find(':', at), dots = spec.find("..", at);
    IntSet s;
    std::string low = spec.substr(colon + 1, dots - colon - 1), high = spec.substr(dots + 2, end - dots - 2);
    if (!low.empty()) s.min = parse_expr(low, names);
    if (!high.empty()) s.max = high == low ? s.min : parse_expr(high, names);
    out[names[spec.substr(at, colon - at)]] = s;
    at = end + 1;
  }
  return out;
}

class EvalSet : public testing::TestWithParam<Row> {};
TEST_P(EvalSet, Gives) {
  const Row& row = GetParam();
  SCOPED_TRACE(row.expr);
  Names names;
  Analyzer a;
  SetMap domains = domains_of(row.domains, names);
  IntSet s = eval_set(parse_expr(row.expr, names), domains);
  auto check = [&](const Expr& got, const char* want) {
    EXPECT_EQ(static_cast<bool>(got), *want != 0) << show(got);
    if (got && *want) {
      EXPECT_TRUE(a.prove_equal(got, parse_expr(want, names))) << show(got);
    }
  };
  check(s.min, row.min);
  check(s.max, row.max);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, EvalSet,
    testing::Values(Row{"x + y", "x:0..10", "y", "10 + y"}, Row{"x + y", "x:0..10 y:1..11", "1", "21"},
                    Row{"x - y", "x:0..10 y:1..11", "-11", "9"}, Row{"x * 3", "x:2..5", "6", "15"},
                    Row{"x * (-3)", "x:2..5", "-15", "-6"}, Row{"x // 4", "x:3..9", "0", "2"},
                    Row{"x // (-4)", "x:3..9", "-3", "-1"}, Row{"x % 10", "x:3..5", "3", "5"},
                    Row{"x % 10", "x:13..15", "3", "5"}, Row{"x % 10", "x:3..15", "0", "9"},
                    Row{"x % 10", "x:3..11", "0", "9"}, Row{"min(x, 8)", "x:3..11", "3", "8"},
                    Row{"max(x, y)", "x:0..10 y:1..11", "1", "11"}, Row{"min(x, 8)", "x:0..", "0", "8"},
                    Row{"max(x, 8)", "x:..20", "8", "20"}, Row{"x + 1", "x:0..", "1", ""},
                    Row{"select(x < 3, x, x + 5)", "x:0..9", "0", "14"},
                    // A domain that depends on another variable.
                    Row{"x + 1", "x:y..y+7 y:0..3", "1", "11"}, Row{"truncdiv(x, 2)", "x:1..10", "0", "5"},
                    Row{"x * y", "x:0..10 y:2..3", "", ""}));

TEST(EvalSet, HoldsEveryValue) {
  for (const char* e : {"x * 7 - y * 3 + x // 3",
                        "(x * 4 + y) % 7",
                        "min(x, y) * 2 - max(x, 5)",
                        "(x - y) // 2 % 3",
                        "truncmod(x - 6, 4)",
                        "select(x < y, x * 2, 0 - y)",
                        "truncdiv(x - 9, 2) + y"}) {
    SCOPED_TRACE(e);
    Names names;
    Expr expr = parse_expr(e, names);
    IntSet s = eval_set(expr, domains_of("x:0..12 y:-3..5", names));
    for (int64_t x = 0; x <= 12; ++x) {
      for (int64_t y = -3; y <= 5; ++y) {
        Values at = {{names["x"], x}, {names["y"], y}};
        int64_t v = *evaluate(expr, at);
        if (s.min) {
          EXPECT_LE(*evaluate(s.min, at), v);
        }
        if (s.max) {
          EXPECT_GE(*evaluate(s.max, at), v);
        }
      }
    }
  }
}

TEST(IntSet, UnionsAndIntersections) {
  auto set = [](int64_t a, int64_t b) { return IntSet::interval(int_imm(a), int_imm(b)); };
  IntSet hull = unite({set(0, 3), set(10, 12)});
  EXPECT_EQ(as_int(hull.min), 0);
  EXPECT_EQ(as_int(hull.max), 12);
  // A lower bound joins only what touches.
  IntSet apart = unite_lower_bound({set(0, 3), set(10, 12)});
  EXPECT_EQ(as_int(apart.max), 3);
  IntSet touching = unite_lower_bound({set(0, 3), set(4, 12)});
  EXPECT_EQ(as_int(touching.max), 12);
  EXPECT_TRUE(intersect({set(0, 3), set(4, 12)}).empty);
  EXPECT_EQ(as_int(intersect({set(0, 8), set(4, 12)}).min), 4);
  EXPECT_TRUE(unite({}).empty);
  EXPECT_TRUE(intersect({set(0, 3), IntSet::everything()}).has_upper());
}

struct RegionRow {
  const char* starts;  ///< separated by ;
  std::vector<int64_t> extents;
  const char* loops;  ///< "i:0..7" inclusive
  const char* predicate;
  const char* strict;  ///< "min..max; ..." or "none"
};
class RegionBounds : public testing::TestWithParam<RegionRow> {};

std::vector<std::string> parts(const std::string& s) {
  std::vector<std::string> out;
  for (auto p : split(s, ';')) out.emplace_back(trim(p));
  return out;
}

TEST_P(RegionBounds, StrictAndUpper) {
  const RegionRow& row = GetParam();
  SCOPED_TRACE(row.starts);
  Names names;
  Analyzer a;
  RangeMap loops;
  for (const auto& [v, s] : domains_of(row.loops, names)) loops[v] = make<Range>(s.min, a.simplify(s.max - s.min + 1));
  Region region;
  std::vector<Expr> starts;
  size_t d = 0;
  for (const std::string& e : parts(row.starts)) {
    starts.push_back(parse_expr(e, names));
    region.push_back(make<Range>(starts.back(), int_imm(row.extents[d++])));
  }
  Expr predicate = parse_expr(row.predicate, names);
  auto strict = estimate_region_strict_bound(region, loops, predicate, a);
  if (std::string(row.strict) == "none") {
    EXPECT_FALSE(strict);
  } else {
    ASSERT_TRUE(strict);
    size_t i = 0;
    for (const std::string& b : parts(row.strict)) {
      size_t dots = b.find("..");
      EXPECT_TRUE(a.prove_equal((*strict)[i].min, parse_expr(b.substr(0, dots), names))) << show((*strict)[i].min);
      EXPECT_TRUE(a.prove_equal((*strict)[i].max, parse_expr(b.substr(dots + 2), names))) << show((*strict)[i].max);
      ++i;
    }
  }
  // The upper bound holds every element that any iteration touches.
  Region upper = relax_region(region, loops, predicate, std::vector<Expr>(region.size(), int_imm(100000)), a);
  std::vector<std::pair<VarRef, std::pair<int64_t, int64_t>>> order;
  int64_t total = 1;
  for (const auto& [v, r] : loops) {
    order.push_back({v, {*as_int(r->min), *as_int(r->extent)}});
    total *= *as_int(r->extent);
  }
  for (int64_t k = 0; k < total; ++k) {
    Values at;
    int64_t rest = k;
    for (const auto& [v, r] : order) {
      at[v] = r.first + rest % r.second;
      rest /= r.second;
    }
    auto holds = evaluate(predicate, at);
    if (!holds || !*holds) continue;
    for (size_t i = 0; i < region.size(); ++i) {
      auto start = evaluate(starts[i], at);
      if (!start) continue;
      EXPECT_LE(*evaluate(upper[i]->min, at), *start);
      EXPECT_LE(*start + row.extents[i], *evaluate(upper[i]->min, at) + *evaluate(upper[i]->extent, at));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, RegionBounds,
                         testing::Values(RegionRow{"i * 4 + j", {1}, "i:0..7 j:0..3", "true", "0..31"},
                                         RegionRow{"i * 4", {4}, "i:0..7", "true", "0..31"},
                                         RegionRow{"i * 4", {3}, "i:0..7", "true", "none"},            // gaps
                                         RegionRow{"i * 8; i * 8", {8, 8}, "i:0..3", "true", "none"},  // dependent
                                         RegionRow{"i * 8; j", {8, 1}, "i:0..3 j:0..4", "true", "0..31; 0..4"},
                                         RegionRow{"i * 8 + j", {1}, "i:0..3 j:0..7", "i * 8 + j < 27", "0..26"},
                                         RegionRow{"i + 3", {5}, "i:0..9", "true", "3..16"},
                                         RegionRow{"i * i", {1}, "i:0..9", "true", "none"},
                                         RegionRow{"i // 4; i % 4", {1, 1}, "i:0..15", "true", "0..3; 0..3"}));

}  // namespace
}  // namespace sator::arith
