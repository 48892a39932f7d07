// The forms that simplify leaves (TVM's, as its own tests state them), facts, scopes, proofs, and what overflow does.
#include "arith/analyzer.h"

#include <gtest/gtest.h>

#include "arith/eval.h"
#include "arith/fold.h"
#include "arith/intset.h"
#include "arith/kind.h"
#include "arith/numbers.h"
#include "arith/text_form.h"

namespace sator::arith {
namespace {

struct Form {
  const char* expr;
  const char* want;
  const char* ranges = "";     ///< "i:8 j:64"
  const char* condition = "";  ///< in force
};

/// Variables with ranges from 0; a name alone is a size.
void bind_ranges(Analyzer& a, Names& names, std::string_view spec, DType dtype = i32) {
  for (std::string_view word : split(spec, ' ')) {
    if (word.empty()) continue;
    size_t colon = word.find(':');
    std::string name(word.substr(0, colon));
    names.add(name, dtype, colon == word.npos);
    if (colon != word.npos)
      a.bind(names[name], range_of(cast_to(dtype, parse_expr(std::string(word.substr(colon + 1)), names))));
  }
}

class Forms : public testing::TestWithParam<Form> {};
TEST_P(Forms, Simplify) {
  const Form& f = GetParam();
  SCOPED_TRACE(f.expr);
  Names names;
  Analyzer a;
  bind_ranges(a, names, f.ranges);
  Expr e = parse_expr(f.expr, names), want = parse_expr(f.want, names);
  if (*f.condition) {
    auto scope = a.with_constraint(parse_expr(f.condition, names));
    Expr got = a.simplify(e);
    EXPECT_TRUE(same(got, want)) << show(got);
  } else {
    Expr got = a.simplify(e);
    EXPECT_TRUE(same(got, want)) << show(got);
    // Simplified is simple: again it is the same node.
    EXPECT_EQ(a.simplify(got), got) << show(a.simplify(got));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sums, Forms,
    testing::Values(Form{"2 + (3 * x + z + y + 1) * 4 + x", "x * 13 + z * 4 + y * 4 + 6"},
                    Form{"x * 3 - 4 * x + 1", "1 - x"}, Form{"y + x * 3 - 5 * x + 1 + y", "y * 2 + 1 - x * 2"},
                    Form{"x // 3 * 3 + x % 3", "x"}, Form{"x // 6 * 6 + x // 3 % 2 * 3 + x % 3", "x"},
                    Form{"x % 16 // 2 * 2 // 4", "x % 16 // 4"}, Form{"(x * 4 + y) // 4", "x", "y:4"},
                    Form{"(x * 4 + y) % 4", "y", "y:4"}, Form{"(x * 8 + y) // 4", "x * 2 + y // 4", "y:8"},
                    Form{"(i * 64 + j) // 64", "i", "i:16 j:64"},
                    Form{"(i * 64 + j) // 32 % 2", "j // 32", "i:16 j:64"},
                    Form{
                        "(i * 3 + j) // 12 * 12 + (i * 3 + j) % 12 // 4 * 4 + (i * 3 + j) % 4", "i * 3 + j", "i:8 j:3"},
                    Form{"x * y + x * 2 - y * x", "x * 2"}, Form{"(n + 3) // 4 * 4 // 4", "(n + 3) // 4", "n"},
                    Form{"(0 - x) % 4", "x % (-4) * (-1)"}));
INSTANTIATE_TEST_SUITE_P(Extremes, Forms,
                         testing::Values(Form{"min(x, x + 1)", "x"}, Form{"max(x * 2, y * 2)", "max(x, y) * 2"},
                                         Form{"min(i, 7)", "i", "i:8"}, Form{"max(min(i, 3), 0)", "min(i, 3)", "i:8"},
                                         Form{"min(x + 3, y) - 3", "min(x, y - 3)"}, Form{"select(x < 3, y, y)", "y"},
                                         Form{"if_then_else(i < 8, x, y)", "x", "i:8"}));
INSTANTIATE_TEST_SUITE_P(Comparisons, Forms,
                         testing::Values(Form{"i * 8 + j < 128", "true", "i:16 j:8"},
                                         Form{"x * 8 + j < 16", "x < 2", "j:8"}, Form{"x + 1 <= 5", "x <= 4"},
                                         Form{"4 > x", "x < 4"}, Form{"x == x + 1", "false"},
                                         Form{"x // 10 == 5 and x % 10 == 7", "x == 57"},
                                         Form{"not (x < 3 and y < 4)", "LE(3, x) or LE(4, y)"},
                                         Form{"x * 2 < 50", "x < 25"}, Form{"x % 2 < 2", "true"},
                                         Form{"x < 3 or x >= 3", "true"}, Form{"x < y", "true", "", "x < y"},
                                         Form{"x < y + 1", "true", "", "x < y"}, Form{"x >= y", "false", "", "x < y"},
                                         Form{"x // 4 < 3", "x < 12"},
                                         // 16 < x * 8 + j says nothing of x alone: x = 2, j = 1 is a solution.
                                         Form{"16 < x * 8 + j", "16 < x * 8 + j", "j:8"}));

TEST(Analyzer, VectorsOfIndices) {
  Names n;
  Analyzer a;
  auto expect = [&](const char* e, const char* want) {
    Expr got = a.simplify(parse_expr(e, n));
    EXPECT_TRUE(same(got, parse_expr(want, n))) << show(got);
  };
  expect("ramp(x, 1, 4) + ramp(y, 2, 4)", "ramp(x + y, 3, 4)");
  expect("ramp(x * 8, 1, 4) // broadcast(4, 4)", "broadcast(x * 2, 4)");
  expect("ramp(x * 8, 1, 4) % broadcast(4, 4)", "ramp(0, 1, 4)");
  expect("ramp(x, 8, 4) // broadcast(8, 4)", "ramp(x // 8, 1, 4)");
}

TEST(Analyzer, UnchangedIsTheSameNode) {
  Names n;
  Analyzer a;
  for (const char* s : {"x + y", "x * 4 + y", "x % 32 // 4", "min(x, y) + 3", "x == 3 and y < 4"}) {
    Expr e = parse_expr(s, n);
    EXPECT_EQ(a.simplify(e), e) << s;
    EXPECT_EQ(a.rewrite(e), e) << s;
  }
}

TEST(Analyzer, ConstantsNeverWrap) {
  Names n;
  Analyzer a;
  // Evaluated over the integers, each side is beyond int32: nothing may be folded to a wrapped value.
  for (const char* s : {"x * 65536 * 65536", "x + 2147483647 + 2147483647", "x * 2147483647 * 3 + y"}) {
    Expr e = parse_expr(s, n);
    walk(a.simplify(e), [&](const IntImm& i) {
      EXPECT_GE(i.value, 3);
      EXPECT_LE(i.value, INT32_MAX);
    });
  }
  VarRef k = make_var("k", i64);
  Expr big = make<Add>(make<Add>(k, int_imm(INT64_MAX, i64)), int_imm(INT64_MAX, i64));
  walk(a.simplify(big), [&](const IntImm& i) { EXPECT_GT(i.value, 0); });
  EXPECT_FALSE(try_fold(Kind::add, int_imm(INT32_MAX), int_imm(1)));
  EXPECT_FALSE(try_fold(Kind::mul, int_imm(INT64_MAX, i64), int_imm(2, i64)));
  EXPECT_FALSE(try_fold(Kind::floordiv, int_imm(7), int_imm(0)));
  EXPECT_FALSE(try_fold(Kind::div, int_imm(INT64_MIN, i64), int_imm(-1, i64)));
  // The least int32 has no negative.
  Expr least = make<Sub>(int_imm(INT32_MIN), Expr(n["x"]));
  EXPECT_TRUE(same(a.simplify(least), least)) << show(a.simplify(least));
}

TEST(Analyzer, NothingLeavesARangeThatItKept) {
  // The dividends stay in range. Made of their residues, or by bounds at the ends of int64, they would not, or had another
  // sign.
  struct Case {
    const char* expr;
    DType dtype = i32;
  };
  for (const Case& c : {Case{"(0 - i * 3) % 998244353"},
                        Case{"(i * 31 - j * 17) % 1000000007"},
                        Case{"(i - 1) % 2147483647"},
                        Case{"(i * 3 + j * 3 - 16) % 16"},
                        Case{"(i + j * (0 - 5)) % 2147483629"},
                        Case{"(i * 195225787 - 16 + j * 195225787) % 8"},
                        Case{"(i - j) % i64(9223372036854775807)", i64},
                        Case{"truncmod(i64(9223372036854775807) - i, i64(8))", i64},
                        Case{"truncmod(i64(9223372036854775807) - i, i64(9223372036854775807))", i64},
                        Case{"(i64(9223372036854775807) - i) // i64(9223372036854775807)", i64},
                        Case{"select(i <= i64(-9223372036854775807) - i64(1), i, j)", i64},
                        Case{"select(i64(-9223372036854775807) - i64(1) >= i, i, j)", i64},
                        Case{"select(i64(-9223372036854775807) - i64(1) < i, i, j)", i64}}) {
    SCOPED_TRACE(c.expr);
    Names names;
    Analyzer a;
    bind_ranges(a, names, "i:8 j:5", c.dtype);
    Expr e = parse_expr(c.expr, names), simple = a.simplify(e);
    for (int64_t i = 0; i < 8; ++i) {
      for (int64_t j = 0; j < 5; ++j) {
        const Values values{{names["i"], i}, {names["j"], j}};
        ASSERT_EQ(wrapped(e, values), evaluate(e, values)) << "the case wraps at i=" << i << " j=" << j;
        EXPECT_EQ(wrapped(simple, values), evaluate(e, values)) << show(simple) << " at i=" << i << " j=" << j;
      }
    }
  }
}

TEST(Analyzer, Bounds) {
  Names n;
  Analyzer a;
  bind_ranges(a, n, "i:8 j:64 n");
  auto check = [&](const char* e, int64_t min, int64_t max) {
    Bounds b = a.bounds(parse_expr(e, n));
    EXPECT_EQ(b.min, min) << e;
    EXPECT_EQ(b.max, max) << e;
  };
  check("i * 64 + j", 0, 511);
  check("i - j", -63, 7);
  check("j // 10", 0, 6);
  check("(j - 32) // 10", -4, 3);
  check("x % 10", 0, 9);
  check("x % (-10)", -9, 0);
  check("truncmod(x, 10)", -9, 9);
  check("min(i, j) + n", 0, kPosInf);
  check("bitwise_and(x, 15)", 0, 15);
  check("j % n", 0, 63);  // a divisor that may be any size is at least 1
  EXPECT_EQ(a.bounds(make_var("b", i8)), (Bounds{-128, 127}));
  EXPECT_EQ(a.bounds(make_var("u", u8)), (Bounds{0, 255}));
}

TEST(Analyzer, Residues) {
  Names n;
  Analyzer a;
  auto check = [&](const char* e, int64_t coeff, int64_t base) {
    Modular m = a.modular(parse_expr(e, n));
    EXPECT_EQ(m.coeff, coeff) << e;
    EXPECT_EQ(m.base, base) << e;
  };
  check("x * 6 + y * 4", 2, 0);
  check("x * 6 + 5", 6, 5);
  check("(x * 4 + 1) * (y * 8 + 3)", 4, 3);
  check("(x * 12 + 8) // 4", 3, 2);
  check("(x * 12 + 8) % 6", 6, 2);
  check("min(x * 3, y * 9)", 3, 0);
  auto scope = a.with_constraint(parse_expr("x % 3 == 2", n));
  auto inner = a.with_constraint(parse_expr("x % 5 == 3", n));
  check("x", 15, 8);
}

TEST(Analyzer, ScopesEnd) {
  Names n;
  Analyzer a;
  Expr e = parse_expr("x < 10", n);
  {
    auto scope = a.with_constraint(parse_expr("x < 5 and y >= 3", n));
    EXPECT_TRUE(a.prove(e));
    EXPECT_TRUE(a.prove(parse_expr("y > 2", n)));
    {
      auto inner = a.with_constraint(parse_expr("x >= 5", n));
      EXPECT_EQ(a.bounds(n["x"]).min, 5);
    }
    EXPECT_LT(a.bounds(n["x"]).min, 5);
  }
  EXPECT_FALSE(a.prove(e));
  EXPECT_FALSE(a.prove(parse_expr("y > 2", n)));
}

TEST(Analyzer, ProvesOverSymbolicRanges) {
  Names n;
  Analyzer a;
  bind_ranges(a, n, "n m i0:(n+31)//32 i1:32", i64);
  Expr e = parse_expr("i0 * 32 + i1 < (n + 31) // 32 * 32", n);
  EXPECT_FALSE(a.prove(e));
  EXPECT_TRUE(a.prove(e, Strength::symbolic));
  EXPECT_TRUE(a.prove(parse_expr("i0 * 32 + i1 < (n + 31) // 32 * 32 + m", n), Strength::symbolic));
  EXPECT_FALSE(a.prove(parse_expr("i0 * 32 + i1 < (n + 31) // 32 * 32 - m", n), Strength::symbolic));
  EXPECT_TRUE(a.prove_le_shape(int_imm(32, i64), parse_expr("n * 32", n)));
  EXPECT_FALSE(a.prove_le_shape(int_imm(33, i64), parse_expr("n * 32", n)));
}

TEST(Analyzer, SizesAreNotNegative) {
  Names n;
  Analyzer a;
  n.add("n", i64, true);
  n.add("k", i64);
  EXPECT_TRUE(a.prove(parse_expr("n >= 0", n)));
  EXPECT_FALSE(a.prove(parse_expr("k >= 0", n)));
  a.assume_size(parse_expr("k * 4 - 4", n));
  EXPECT_TRUE(a.prove(parse_expr("k >= 1", n)));
  EXPECT_FALSE(a.prove(parse_expr("k >= 2", n)));
}

TEST(Analyzer, BoundValuesTakeTheVariablesPlace) {
  Names n;
  Analyzer a;
  a.bind(n["y"], parse_expr("x * 4 + 4", n));
  Expr got = a.simplify(parse_expr("y // 4", n));
  EXPECT_TRUE(same(got, parse_expr("x + 1", n))) << show(got);
  EXPECT_TRUE(a.prove_equal(n["y"], parse_expr("4 * (x + 1)", n)));
  a.bind(n["y"], int_imm(7));  // a later fact replaces it
  EXPECT_EQ(as_int(a.simplify(n["y"])), 7);
}

TEST(Analyzer, ChainsOfInequalities) {
  Names n;
  Analyzer a;
  auto s1 = a.with_constraint(parse_expr("x <= y and y <= z - 3", n));
  Expr e = parse_expr("x < z", n);
  EXPECT_FALSE(a.prove(e));
  a.chain_inequalities = true;
  EXPECT_TRUE(a.prove(e));
  EXPECT_TRUE(a.prove(parse_expr("x + 3 <= z", n)));
  EXPECT_FALSE(a.prove(parse_expr("x + 4 <= z", n)));
}

TEST(Analyzer, ALoadIsNotPure) {
  // A condition on memory is not kept: the memory may change.
  Names n;
  Analyzer a;
  Expr e = lt(load(make_buffer("A", {int_imm(8)}, i32), {n["x"]}), int_imm(3));
  EXPECT_FALSE(is_pure(e));
  EXPECT_TRUE(is_pure(parse_expr("if_then_else(x < 3, y, 4) + likely(y)", n)));
}

TEST(Analyzer, NamesTheRulesItApplies) {
  Names n;
  Analyzer a;
  std::vector<std::string> names;
  a.on_rule = [&](std::string_view name) { names.emplace_back(name); };
  a.rewrite(parse_expr("min(x, y) + max(x, y)", n));
  EXPECT_EQ(names, std::vector<std::string>{"max-plus-min"});
}

// With a NaN neither x < y nor y <= x holds.
TEST(Analyzer, AComparisonOfFloatsIsNotTurnedRound) {
  Analyzer analyzer;
  const Expr x = make_var("x", f32), y = make_var("y", f32), i = make_var("i", i32), j = make_var("j", i32);
  for (const Expr& e : {lt(x, y), le(x, y), gt(x, y), ge(x, y)}) {
    const Expr negated = make<Not>(e);
    EXPECT_EQ(kind_of(analyzer.simplify(negated)), Kind::logical_not);
    EXPECT_EQ(kind_of(analyzer.simplify(make<Not>(negated))), kind_of(analyzer.simplify(e)));
  }
  EXPECT_EQ(kind_of(analyzer.simplify(make<Not>(eq(x, y)))), Kind::ne);
  EXPECT_EQ(kind_of(analyzer.simplify(make<Not>(lt(i, j)))), Kind::le);
}

TEST(Analyzer, ZeroTimesAVectorOfFloatsStays) {
  Analyzer analyzer;
  auto of_zeros = [](DType dtype) {
    const Expr zero = dtype.is_float() ? float_imm(0, dtype) : int_imm(0, dtype);
    return make<Mul>(make<Broadcast>(zero, 4), make_var("x", dtype.with_lanes(4)));
  };
  EXPECT_EQ(kind_of(analyzer.simplify(of_zeros(f32))), Kind::mul);
  EXPECT_EQ(kind_of(analyzer.simplify(of_zeros(i32))), Kind::broadcast);
}

}  // namespace
}  // namespace sator::arith
