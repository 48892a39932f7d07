// What quasi-affine maps are used for: simplification, sums of splits, inverses, division into subspaces. The expected forms
// are those of TVM's tests; that they mean the same is checked by walking all iterations.
#include <gtest/gtest.h>

#include <map>

#include "arith/analyzer.h"
#include "arith/iters.h"
#include "arith/kind.h"

namespace sator::arith {
namespace {

// ---- iter_map_simplify

void check_simplify(const std::string& iters_spec, const std::string& index, const std::string& want,
                    const std::string& predicate = "true", bool trivial = true) {
  SCOPED_TRACE(iters_spec + " : " + index);
  Iters iters(iters_spec, i64);
  Analyzer analyzer;
  auto out =
      iter_map_simplify(iters.exprs({index}), iters.ranges, iters.expr(predicate), kSurjective, analyzer, trivial);
  EXPECT_TRUE(same(out.at(0), iters.expr(want))) << show(out[0]);
}

TEST(IterMapSimplify, Symbolic) {
  std::string z = "(x * 32 + y)";
  auto fuse0 = [](const std::string& v) { return v + " // n * n + " + v + " % n"; };
  auto fuse1 = [](const std::string& v) {
    return "(" + v + " // (n * n)) % 32 * (n * n) + (" + v + " // n) % n * n + " + v + " % n";
  };
  auto fuse2 = [](const std::string& v) {
    return "((" + v + " % (n * n * 32)) // (n * n) * n + (" + v + " % (n * n) // n)) * n + " + v + " % n";
  };
  auto fuse3 = [](const std::string& v) {
    return "(" + v + " // (n * n) * n + " + v + " % (n * n) // n) * n + " + v + " % n";
  };
  check_simplify("n x:n*32", fuse0("x"), "x");
  check_simplify("n x:n y:32", fuse0(z), "x * 32 + y");
  check_simplify("n x:n*n*32", fuse1("x"), "x");
  check_simplify("n x:n*n y:32", fuse1(z), "x * 32 + y");
  check_simplify("n x:n*n*32", fuse2("x"), "x");
  check_simplify("n x:n*n y:32", fuse2(z), "x * 32 + y");
  check_simplify("n x:n*n*32", fuse3("x"), "x");
  check_simplify("n x:(n+1)//2 y:32", fuse0(z), "x * 32 + y", "x * 32 + y < n * 16");
  check_simplify("n x:(n*n+1)//2 y:64", fuse3("(x * 64 + y)"), "x * 64 + y", "x * 64 + y < n * n * 32");
  check_simplify(
      "n fused:n*4096",
      "((fused % 4096 // 4096 + fused // 4096 // n * n + fused // 4096 % n) % n) * 4096 + fused % 4096 % 4096",
      "fused");
}

TEST(IterMapSimplify, UnitLoopsKeepTheirPlace) {
  check_simplify("x:1 y:1 z:1", "x + y + z", "x + y + z", "true", false);
  check_simplify("x:1 y:1 z:32", "x + y + z // 4 * 4 + z % 4", "z + x + y", "true", false);
  check_simplify("x:6 y:64", "y + 64 - x % 2 * 64", "y + 64 - x % 2 * 64", "true", false);
  check_simplify("x:128 y:128 z:1", "x // 128 + y + z", "y + z", "true", false);
}

TEST(IterMapSimplify, KeepsWhatItCannotRead) {
  Iters iters("x:8 y:8");
  Analyzer analyzer;
  Expr e = iters.expr("x * y + x");
  EXPECT_EQ(iter_map_simplify({e}, iters.ranges, nullptr, kSurjective, analyzer).at(0), e);
}

// ---- normalize_to_iter_sum

void check_sum(const std::string& iters_spec, const std::string& index,
               const std::vector<std::pair<std::string, std::string>>& args, const std::string& base) {
  SCOPED_TRACE(index);
  Iters iters(iters_spec, i64);
  for (const char* free : {"a", "n"})
    if (!iters.names.vars.count(free)) iters.names.add(free, i64);
  Analyzer analyzer;
  IterSum sum = normalize_to_iter_sum(iters.expr(index), iters.ranges, analyzer);
  ASSERT_EQ(sum.args.size(), args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    EXPECT_TRUE(analyzer.prove_equal(sum.args[i].scale, iters.expr(args[i].second))) << show(sum.args[i].scale);
    EXPECT_TRUE(analyzer.prove_equal(to_expr(sum.args[i], analyzer),
                                     iters.expr("(" + args[i].first + ") * (" + args[i].second + ")")))
        << show(to_expr(sum.args[i], analyzer));
  }
  EXPECT_TRUE(analyzer.prove_equal(sum.base, iters.expr(base))) << show(sum.base);
}

TEST(NormalizeToIterSum, OrdersByScale) {
  check_sum("x:9 y:4 z:3", "z + (y + x * 4 + 2) * n + 3", {{"x", "n * 4"}, {"y", "n"}, {"z", "1"}}, "2 * n + 3");
  check_sum(
      "x:9 y:4 z:3", "max(z, a) + (y + x * 4 + 2) * n + 3", {{"x", "n * 4"}, {"y", "n"}}, "max(z, a) + 2 * n + 3");
  check_sum("a n y:a*n*4 x:n*4 z:a",
            "z + (y * 4 * a + x * 4 + 2) * n + 3",
            {{"y", "a * n * 4"}, {"x", "n * 4"}, {"z", "1"}},
            "2 * n + 3");
  check_sum("a n y:a*n*4 x:n*4 z:a", "z + 2 * y * 3 + 4 * x", {{"y", "6"}, {"x", "4"}, {"z", "1"}}, "0");
  check_sum("a n y:a*n*4 x:n*4 z:a", "z + 2 * y * 3 + 4 * (x // 2)", {{"y", "6"}, {"x // 2", "4"}, {"z", "1"}}, "0");
  check_sum(
      "a n y:a*n*4 x:n*4 z:a", "z * 2 + 2 * y * 3 + 4 * (x // 4) + x % 4", {{"y", "6"}, {"z", "2"}, {"x", "1"}}, "0");
  Iters iters("x:4096", i64);
  Analyzer analyzer;
  IterSum sum = normalize_to_iter_sum(iters.expr("x // 5"), iters.ranges, analyzer);
  ASSERT_EQ(sum.args.size(), 1u);
  EXPECT_TRUE(is_int(sum.args[0].lower_factor, 5));
  EXPECT_TRUE(is_int(sum.args[0].extent, 820));  // ceil(4096 / 5)
}

// ---- inverse

void check_inverse(const std::string& iters_spec, const std::vector<std::string>& indices,
                   const std::map<std::string, std::string>& want) {
  SCOPED_TRACE(iters_spec);
  Iters iters(iters_spec);
  Analyzer analyzer;
  IterMap map = detect_iter_map(iters.exprs(indices), iters.ranges, nullptr, kBijective, analyzer);
  ASSERT_TRUE(map.ok()) << map.error;
  std::vector<Expr> outputs;
  for (size_t i = 0; i < indices.size(); ++i) outputs.push_back(iters.names[text("o", i)]);
  InverseResult inverse = inverse_affine_iter_map(map.indices, outputs);
  ASSERT_TRUE(inverse.ok()) << inverse.error;
  EXPECT_EQ(inverse.values.size(), want.size());
  for (const auto& [name, e] : want) {
    const Expr& got = inverse.values.at(iters.names[name]);
    EXPECT_TRUE(analyzer.prove_equal(got, iters.expr(e))) << name << ": " << show(got);
  }
  // Applied to the indices it gives the iterators back.
  VarMap forward;
  for (size_t i = 0; i < indices.size(); ++i) forward[iters.names[text("o", i)]] = iters.expr(indices[i]);
  std::vector<Expr> both;
  for (const auto& [name, e] : want) {
    both.push_back(iters.names[name]);
    both.push_back(substitute(inverse.values.at(iters.names[name]), forward));
  }
  auto points = walk_all(iters, both, bool_imm(true));
  if (!points) return;
  for (const auto& p : *points)
    for (size_t i = 0; i < p.size(); i += 2) ASSERT_EQ(p[i], p[i + 1]);
}

TEST(InverseIterMap, UndoesSplitsAndFusions) {
  check_inverse("l0:64 l1:64",
                {"l0 % 16 * 4 + l1 % 4", "l0 // 16", "l1 // 4"},
                {{"l0", "o0 // 4 + o1 * 16"}, {"l1", "o0 % 4 + o2 * 4"}});
  check_inverse(
      "l0:64 l1:64 l2:64",
      {"((l0 % 16 * 4 + l2 // 4 % 4) * 4 + l1 % 4) * 4 + l2 // 4 // 4", "l0 // 16", "l2 % 4", "l1 // 4"},
      {{"l0", "o0 // 64 + o1 * 16"}, {"l1", "o0 // 4 % 4 + o3 * 4"}, {"l2", "o0 % 4 * 16 + o0 // 16 % 4 * 4 + o2"}});
  // One variable through two digits that meet again.
  std::string l1 = "(l0 % 16 * 4 + l0 // 16)", back = "(o0 % 8 * 8 + o0 // 8)";
  check_inverse("l0:64", {l1 + " % 8 * 8 + " + l1 + " // 8"}, {{"l0", back + " % 4 * 16 + " + back + " // 4"}});
  check_inverse("l0:64 l1:64", {"0", "l0", "l1"}, {{"l0", "o1"}, {"l1", "o2"}});
}

// ---- subspace_divide

struct Part {
  std::string outer, inner;
};
void check_division(const std::string& iters_spec, const std::vector<std::string>& bindings,
                    const std::vector<std::string>& sub, const std::string& predicate, const std::vector<Part>& want,
                    const Part& predicates, bool trivial = true) {
  SCOPED_TRACE(iters_spec + " sub " + join(sub, ","));
  Iters iters(iters_spec);
  std::vector<VarRef> sub_iters;
  for (const auto& s : sub) sub_iters.push_back(iters.names[s]);
  Analyzer analyzer;
  SubspaceDivision d = subspace_divide(
      iters.exprs(bindings), iters.ranges, sub_iters, iters.expr(predicate), kSurjective, analyzer, trivial);
  if (want.empty()) {
    EXPECT_FALSE(d.ok());
    return;
  }
  ASSERT_TRUE(d.ok()) << d.error;
  ASSERT_EQ(d.bindings.size(), want.size());
  auto expect = [&](const Expr& got, const std::string& e) {
    EXPECT_TRUE(same(got, iters.expr(e))) << show(got) << " not " << e;
  };
  for (size_t i = 0; i < want.size(); ++i) {
    expect(d.bindings[i].outer, want[i].outer);
    expect(d.bindings[i].inner, want[i].inner);
  }
  expect(d.outer_predicate, predicates.outer);
  expect(d.inner_predicate, predicates.inner);
  // binding = outer * inner_extent + inner
  std::vector<Expr> values;
  for (size_t i = 0; i < want.size(); ++i) {
    values.push_back(iters.expr(bindings[i]));
    values.push_back(d.bindings[i].outer * d.bindings[i].inner_extent + d.bindings[i].inner);
  }
  auto points = walk_all(iters, values, iters.expr(predicate));
  if (!points) return;
  for (const auto& p : *points)
    for (size_t i = 0; i < p.size(); i += 2) ASSERT_EQ(p[i], p[i + 1]);
}

TEST(SubspaceDivide, OneBinding) {
  check_division(
      "c x:3 y:4 z:5", {"z * 12 + y * 3 + x + c"}, {"x"}, "true", {{"z * 4 + y", "x + c"}}, {"true", "true"});
  check_division("c x:3 y:4 z:5",
                 {"z * 12 + y * 3 + x + c"},
                 {"x"},
                 "z * 4 + y < 18",
                 {{"z * 4 + y", "x + c"}},
                 {"z * 4 + y < 18", "true"});
}

TEST(SubspaceDivide, SplitsAndFusions) {
  std::string iters = "i0:4 j0:8 i3:2", k0 = "i0 * 2 + j0 // 4", k1 = "j0 % 4 * 2 + i3";
  std::vector<Part> by_i3 = {{"i0 * 2 + j0 // 4", "0"}, {"j0 % 4", "i3"}};
  std::vector<Part> by_both = {{"i0", "j0 // 4"}, {"0", "j0 % 4 * 2 + i3"}};
  check_division(iters, {k0, k1}, {"i3"}, "true", by_i3, {"true", "true"});
  check_division(iters, {k0, k1}, {"j0", "i3"}, "true", by_both, {"true", "true"});
  check_division(iters, {k0, k1}, {"i0", "i3"}, "true", {}, {});
  check_division(iters, {k0, k1}, {"i3"}, k0 + " < 7", by_i3, {"i0 * 2 + j0 // 4 < 7", "true"});
  check_division(iters, {k0, k1}, {"j0", "i3"}, k1 + " < 7", by_both, {"true", "j0 % 4 * 2 + i3 < 7"});
  check_division(iters, {k0, k1}, {"i3"}, k0 + " < 7 and " + k1 + " < 7", {}, {});
}

TEST(SubspaceDivide, DigitsOfAFusion) {
  // k0 = l0, l1 fused; cut into j2 (% 3), i1 (// 3 % 2), j1 (// 6).
  std::string iters = "j0:4 l0:2 l1:6 j3:3", k0 = "(l0 * 6 + l1)";
  std::string i0 = "j0 * 2 + " + k0 + " // 3 // 2", i1 = k0 + " // 3 % 2", i2 = k0 + " % 3 * 3 + j3";
  std::vector<Part> by_l1 = {{"j0 * 2 + l0", "0"}, {"0", "l1 // 3"}, {"0", "l1 % 3 * 3 + j3"}};
  check_division(iters, {i0, i1, i2}, {"l1", "j3"}, "true", by_l1, {"true", "true"});
  check_division(iters,
                 {i0, i1, i2},
                 {"l0", "l1", "j3"},
                 "true",
                 {{"j0", "(l0 * 6 + l1) // 6"}, {"0", "(l0 * 6 + l1) % 6 // 3"}, {"0", "(l0 * 6 + l1) % 3 * 3 + j3"}},
                 {"true", "true"});
  check_division(iters, {i0, i1, i2}, {"l0", "j3"}, "true", {}, {});
  check_division(iters,
                 {i0, i1, i2},
                 {"l1", "j3"},
                 i0 + " < 7 and " + i2 + " < 8",
                 by_l1,
                 {"j0 * 2 + l0 < 7", "l1 % 3 * 3 + j3 < 8"});
  check_division(iters, {i0, i1, i2}, {"j3"}, i2 + " < 8", {}, {});
}

TEST(SubspaceDivide, TrivialIterators) {
  check_division("x:1 y:16", {"x * 16 + y"}, {"y"}, "true", {{"x", "y"}}, {"true", "true"}, false);
  check_division("x:1 y:1", {"x", "y"}, {"y"}, "true", {{"x", "0"}, {"0", "y"}}, {"true", "true"}, false);
}

TEST(SubspaceDivide, ManyConditions) {
  std::string l2 = complex_l2(), iters = "l0:4 l1:8 n0:2 n1:4 m1:3 l3:32";
  std::string j0 = "(l0 // 2 * 4 + l1 // 2)", j1 = "(" + l2 + " // 4 * 8 + l3 // 4)";
  std::string j2 = "(l0 % 2 * 2 + l1 % 2)", j3 = "(" + l2 + " % 4 * 4 + l3 % 4)";
  check_division(
      iters,
      {j0 + " * 32 + " + j1, j2 + " * 15 + " + j3},
      {"n0", "n1", "m1", "l3"},
      "n0 * 4 + n1 < 6 and " + l2 + " < 16 and " + j0 + " < 7 and " + j3 + " < 15",
      {{"l0 // 2 * 4 + l1 // 2", l2 + " // 4 * 8 + l3 // 4"}, {"l0 % 2 * 2 + l1 % 2", l2 + " % 4 * 4 + l3 % 4"}},
      {"l0 // 2 * 4 + l1 // 2 < 7",
       "n0 * 4 + n1 < 6 and (n0 * 4 + n1) * 3 + m1 < 16 and " + l2 + " % 4 * 4 + l3 % 4 < 15"});
}

}  // namespace
}  // namespace sator::arith
