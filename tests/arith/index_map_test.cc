#include "arith/index_map.h"

#include <gtest/gtest.h>

#include <set>

#include "arith/analyzer.h"
#include "arith/eval.h"
#include "arith/kind.h"
#include "arith/text_form.h"

namespace sator::arith {
namespace {

IndexMapRef map_of(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, Names& names) {
  std::vector<VarRef> vars;
  for (const auto& n : inputs) vars.push_back(names.add(n, i32));
  std::vector<Expr> image;
  for (const auto& e : outputs) image.push_back(parse_expr(e, names));
  return make<IndexMap>(vars, image, IndexMapRef());
}

Region box(const std::vector<int64_t>& shape) {
  Region r;
  for (int64_t n : shape) r.push_back(range_of(int_imm(n)));
  return r;
}

std::vector<int64_t> numbers(const std::vector<Expr>& es) {
  std::vector<int64_t> out;
  for (const Expr& e : es) out.push_back(as_int(e).value_or(-1));
  return out;
}

TEST(IndexMap, MapsPointsAndShapes) {
  Names n;
  Analyzer a;
  IndexMapRef m = map_of({"i"}, {"i // 4", "i % 4"}, n);
  EXPECT_EQ(numbers(map_indices(*m, {int_imm(42)}, a)), (std::vector<int64_t>{10, 2}));
  EXPECT_EQ(numbers(map_shape(*m, {int_imm(16)}, a)), (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(numbers(map_shape(*m, {int_imm(14)}, a)), (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(numbers(map_shape(*m, {int_imm(4)}, a)), (std::vector<int64_t>{1, 4}));
  // A wider index widens the arithmetic.
  std::vector<Expr> wide = map_indices(*m, {make_var("k", i64)}, a);
  EXPECT_EQ(wide[0]->dtype, i64);
  EXPECT_EQ(numbers(map_indices(*m, {int_imm(42, i64)}, a)), (std::vector<int64_t>{10, 2}));
  EXPECT_EQ(map_shape(*m, {int_imm(14, i64)}, a)[0]->dtype, i64);
  EXPECT_THROW(map_indices(*m, {int_imm(1), int_imm(2)}, a), Error);
}

TEST(IndexMap, Inverse) {
  Names n;
  Analyzer a;
  IndexMapRef m = map_of({"i"}, {"i // 4", "i % 4"}, n);
  InverseMap back = inverse(*m, box({16}), a);
  ASSERT_TRUE(back.ok()) << back.error;
  Names k;
  EXPECT_TRUE(equivalent(*back.map, *map_of({"o", "p"}, {"4 * o + p"}, k)));
  EXPECT_FALSE(inverse(*m, box({14}), a).ok());
  // Inputs of extent 1 that the map does not use.
  Names q;
  IndexMapRef unused = map_of({"i0", "i1", "i2", "i3"}, {"i3 // 32", "i2 // 2", "i2 % 2", "i3 % 32"}, q);
  back = inverse(*unused, box({1, 1, 64, 64}), a);
  ASSERT_TRUE(back.ok()) << back.error;
  Names r;
  EXPECT_TRUE(equivalent(*back.map, *map_of({"i0", "i1", "i2", "i3"}, {"0", "0", "i2 + i1 * 2", "i3 + i0 * 32"}, r)));
}

struct Padded {
  std::vector<std::string> inputs, forward, inverse;
  std::vector<int64_t> shape, mapped;
  std::string padding;  ///< over o0, o1, ...; the form that TVM prints
};

class PaddedMaps : public testing::TestWithParam<Padded> {};

TEST_P(PaddedMaps, InverseAndPadding) {
  const Padded& p = GetParam();
  Names n;
  Analyzer a;
  IndexMapRef m = map_of(p.inputs, p.forward, n);
  std::vector<Expr> shape;
  for (int64_t e : p.shape) shape.push_back(int_imm(e));
  EXPECT_EQ(numbers(map_shape(*m, shape, a)), p.mapped);
  InverseMap back = non_surjective_inverse(*m, box(p.shape), a);
  ASSERT_TRUE(back.ok()) << back.error;
  Names k;
  std::vector<std::string> outputs;
  for (size_t i = 0; i < p.forward.size(); ++i) outputs.push_back(text("o", i));
  IndexMapRef expected = map_of(outputs, p.inverse, k);
  EXPECT_TRUE(equivalent(*back.map, *expected));
  // The predicate, in form and in meaning.
  VarMap rename;
  Values point;
  for (size_t i = 0; i < outputs.size(); ++i) rename[back.map->initial_indices[i]] = k[outputs[i]];
  Expr padding = substitute(back.padding_predicate, rename);
  EXPECT_TRUE(same(a.simplify(padding), a.simplify(parse_expr(p.padding, k)))) << show(a.simplify(padding));
  std::set<std::vector<int64_t>> reached;
  int64_t points = 1, mapped = 1;
  for (int64_t e : p.shape) points *= e;
  for (int64_t e : p.mapped) mapped *= e;
  for (int64_t i = 0; i < points; ++i) {
    Values in;
    int64_t rest = i;
    for (size_t d = p.shape.size(); d-- > 0; rest /= p.shape[d]) in[m->initial_indices[d]] = rest % p.shape[d];
    std::vector<int64_t> image;
    for (const Expr& e : m->final_indices) image.push_back(*evaluate(e, in));
    reached.insert(image);
  }
  for (int64_t i = 0; i < mapped; ++i) {
    std::vector<int64_t> at(p.mapped.size());
    int64_t rest = i;
    for (size_t d = at.size(); d-- > 0; rest /= p.mapped[d]) at[d] = rest % p.mapped[d];
    for (size_t d = 0; d < at.size(); ++d) point[k[outputs[d]]] = at[d];
    ASSERT_EQ(evaluate(padding, point).value_or(-1) != 0, !reached.count(at)) << show(padding);
  }
}

INSTANTIATE_TEST_SUITE_P(
    IndexMap, PaddedMaps,
    testing::Values(
        Padded{{"i"}, {"i // 4", "i % 4"}, {"4 * o0 + o1"}, {16}, {4, 4}, "false"},
        Padded{{"i"}, {"i // 4", "i % 4"}, {"4 * o0 + o1"}, {15}, {4, 4}, "o0 == 3 and EQ(3, o1)"},
        Padded{{"i"}, {"(i + 1) // 4", "(i + 1) % 4"}, {"4 * o0 + o1 - 1"}, {15}, {4, 4}, "o0 == 0 and o1 < 1"},
        Padded{{"i"},
               {"(i + 1) // 4", "(i + 1) % 4"},
               {"4 * o0 + o1 - 1"},
               {14},
               {4, 4},
               "o0 == 0 and o1 < 1 or o0 == 3 and EQ(3, o1)"},
        Padded{{"i", "j"},
               {"(i + 1) // 4", "(j + 5) // 8", "(i + 1) % 4", "(j + 5) % 8"},
               {"4 * o0 + o2 - 1", "8 * o1 + o3 - 5"},
               {14, 31},
               {4, 5, 4, 8},
               "(o0 == 0 and o2 < 1 or o0 == 3 and EQ(3, o2)) or (o1 == 0 and o3 < 5 or o1 == 4 and o3 >= 4)"},
        Padded{{"i"},
               {"i // 32", "i // 4 % 8", "i % 4"},
               {"32 * o0 + 4 * o1 + o2"},
               {116},
               {4, 8, 4},
               "o0 == 3 and 4 * o1 + o2 >= 20"},
        Padded{{"i"},
               {"i // 4 % 8", "i // 32", "i % 4"},
               {"32 * o1 + 4 * o0 + o2"},
               {116},
               {8, 4, 4},
               "o1 == 3 and 4 * o0 + o2 >= 20"},
        Padded{{"i"},
               {"(i + 5) // 32", "(i + 5) // 4 % 8", "(i + 5) % 4"},
               {"32 * o0 + 4 * o1 + o2 - 5"},
               {123},
               {4, 8, 4},
               "o0 == 0 and o1 * 4 + o2 < 5"},
        Padded{{"i"},
               {"(i + 5) // 4 % 8", "(i + 5) // 32", "(i + 5) % 4"},
               {"32 * o1 + 4 * o0 + o2 - 5"},
               {123},
               {8, 4, 4},
               "o1 == 0 and o0 * 4 + o2 < 5"},
        Padded{{"i"}, {"i // 4", "i % 4"}, {"o0 * 4 + o1"}, {3}, {1, 4}, "EQ(3, o1)"}));

struct Apart {
  std::vector<std::string> inputs, forward;
  std::vector<int64_t> shape;
};

class MapsOfBoxes : public testing::TestWithParam<Apart> {};

/// There is an inverse where no two points of the box go to one: counted point by point.
TEST_P(MapsOfBoxes, InvertibleWhereInjective) {
  const Apart& p = GetParam();
  Names n;
  Analyzer a;
  IndexMapRef m = map_of(p.inputs, p.forward, n);
  std::set<std::vector<int64_t>> images;
  size_t points = 1;
  for (int64_t e : p.shape) points *= static_cast<size_t>(e);
  for (size_t i = 0; i < points; ++i) {
    Values in;
    auto rest = static_cast<int64_t>(i);
    for (size_t d = p.shape.size(); d-- > 0; rest /= p.shape[d]) in[m->initial_indices[d]] = rest % p.shape[d];
    std::vector<int64_t> image;
    for (const Expr& e : m->final_indices) image.push_back(*evaluate(e, in));
    images.insert(image);
  }
  InverseMap back = non_surjective_inverse(*m, box(p.shape), a);
  EXPECT_EQ(back.ok(), images.size() == points) << back.error;
}

INSTANTIATE_TEST_SUITE_P(
    IndexMap, MapsOfBoxes,
    testing::Values(Apart{{"i", "j"}, {"i // 2", "j"}, {8, 8}}, Apart{{"i", "j"}, {"i % 4", "j"}, {8, 8}},
                    Apart{{"i", "j"}, {"i % 8", "j"}, {8, 8}}, Apart{{"i", "j"}, {"i // 8", "i % 4", "j"}, {16, 8}},
                    Apart{{"i", "j"}, {"(i * 8 + j) // 4"}, {8, 8}},
                    Apart{{"i", "j"}, {"(i * 8 + j) // 4", "j % 2"}, {8, 8}}, Apart{{"i"}, {"i // 4"}, {14}},
                    Apart{{"i"}, {"i % 4"}, {14}}, Apart{{"i"}, {"i % 4"}, {3}},
                    Apart{{"i"}, {"i // 4", "i % 2"}, {14}}, Apart{{"i"}, {"i // 12", "i // 4 % 3"}, {22}},
                    Apart{{"i"}, {"i // 12", "i // 4 % 3", "i % 4"}, {22}},
                    Apart{{"i"}, {"i // 12", "i % 12 // 4", "i % 12 % 4"}, {22}},
                    Apart{{"i"}, {"i // 4 // 3", "i // 4 % 3"}, {20}}, Apart{{"i"}, {"(i + 1) // 4"}, {14}},
                    Apart{{"i", "j"}, {"(i + 1) // 4", "j"}, {1, 3}}, Apart{{"i", "j"}, {"i // 4", "j // 2"}, {1, 3}}));

TEST(IndexMap, DynamicSize) {
  Names n;
  Analyzer a;
  IndexMapRef m = map_of({"i"}, {"i // 4", "i % 4"}, n);
  VarRef size = n.add("N", i32);
  InverseMap back = non_surjective_inverse(*m, {range_of(size)}, a);
  ASSERT_TRUE(back.ok()) << back.error;
  n.vars["p"] = back.map->initial_indices[0];
  n.vars["q"] = back.map->initial_indices[1];
  std::vector<Expr> shape = map_shape(*m, {size}, a);
  EXPECT_TRUE(same(shape[0], parse_expr("(N - N % (-4)) // 4", n))) << show(shape[0]);
  Expr expected = a.simplify(parse_expr("N % (-4) != 0 and (p == N // 4 and q >= N % 4)", n));
  EXPECT_TRUE(same(a.simplify(back.padding_predicate), expected)) << show(back.padding_predicate);
  EXPECT_FALSE(non_surjective_inverse(*map_of({"k"}, {"k // 4"}, n), {range_of(size)}, a).ok());
  const Region sixteen = {range_of(int_imm(16))};
  EXPECT_EQ(non_surjective_inverse(*map_of({"k"}, {"k // N", "k % N"}, n), sixteen, a).error, "");
  EXPECT_FALSE(non_surjective_inverse(*map_of({"k"}, {"k // N"}, n), sixteen, a).ok());
  EXPECT_FALSE(non_surjective_inverse(*map_of({"k"}, {"k % N"}, n), sixteen, a).ok());
}

}  // namespace
}  // namespace sator::arith
