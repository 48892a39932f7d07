// Products whose rows read matrices of their own: one group is the dense product, and all of them compute what the function
// says, in the interpreter, scheduled and lowered.
#include "rules/grouped.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "passes/lower/lower.h"
#include "rules/cpu.h"
#include "rules/functions.h"
#include "schedule/schedule.h"
#include "tir/interp.h"
#include "tir/print.h"

namespace sator::rules {
namespace {

/// y[i, j] = max(sum over k of x[i, k] * w(i, j, k) + b(i, j), 0), of the matrices of row i's group, or of one matrix for all.
tir::PrimFuncRef biased_product(Expr rows, int64_t matrices, int64_t columns, int64_t depth) {
  const bool grouped = matrices > 0;
  std::vector<Expr> panels = {size((columns + 31) / 32), size(depth), size(32)}, numbers = {size(columns)};
  if (grouped) panels.insert(panels.begin(), size(matrices)), numbers.insert(numbers.begin(), size(matrices));
  te::Tensor x = te::placeholder({rows, size(depth)}, f32, "x"), w = te::placeholder(panels, f32, "w"),
             b = te::placeholder(numbers, f32, "b"), group = te::placeholder({rows}, i32, "group");
  auto of_row = [&](const Expr& i, te::Indices at) {
    if (grouped) at.insert(at.begin(), cast_to(i64, group({i})));
    return at;
  };
  tir::IterVarRef k = te::reduce_axis(size(depth), "k");
  te::Tensor sum = te::reduce({.name = "product", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return te::reduce_sum(x({i[0], k->var}) * w(of_row(i[0], {floordiv(i[1], 32), k->var, floormod(i[1], 32)})), {k});
  });
  te::Tensor biased = te::compute({.name = "bias", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return sum(i) + b(of_row(i[0], {i[1]}));
  });
  te::Tensor y = te::compute({.name = "relu", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return max(biased(i), constant(0, f32));
  });
  return grouped ? te::create_prim_func({x, w, b, group, y}) : te::create_prim_func({x, w, b, y});
}

/// A row of x, the code of whose group is a byte of the word: y[i, j] = sum over k of x[i, k] * code(group of i, j, k).
tir::PrimFuncRef code_products(int64_t matrices, int64_t columns, int64_t depth) {
  Expr rows = rows_of(0);
  te::Tensor x = te::placeholder({rows, size(depth)}, i8, "x"),
             codes = te::placeholder({size(matrices), size(columns / 32), size(depth / 4), size(32)}, u32, "codes"),
             group = te::placeholder({rows}, i32, "group");
  te::Tensor w = te::compute(
      {.name = "unpack", .axis = "i"}, {size(matrices), size(columns), size(depth)}, [&](const te::Indices& i) {
        Expr shift = cast_to(u32, floormod(i[2], 4) * 8);
        Expr word = codes({i[0], floordiv(i[1], 32), floordiv(i[2], 4), floormod(i[1], 32)});
        return cast_to(u8,
                       call(u32, "tir.bitwise_and", {call(u32, "tir.shift_right", {word, shift}), int_imm(255, u32)}));
      });
  tir::IterVarRef k = te::reduce_axis(size(depth), "k");
  te::Tensor y = te::reduce({.name = "product", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return te::reduce_sum(
        cast_to(i32, x({i[0], k->var})) * cast_to(i32, w({cast_to(i64, group({i[0]})), i[1], k->var})), {k});
  });
  return te::create_prim_func({x, codes, group, y});
}

/// The parameters' memory: halves, whose products and sums are exact in any order; the groups as given.
struct Memory {
  std::vector<std::vector<char>> bytes;
  std::vector<tir::Argument> views;

  Memory(const tir::PrimFunc& f, const std::vector<int32_t>& groups) {
    std::mt19937 random(3);
    bytes.reserve(f.params.size());
    for (const VarRef& p : f.params) {
      const BufferRef b = f.buffer_of(p);
      tir::ArrayView v{.dtype = b->dtype};
      int64_t elements = 1;
      for (const Expr& e : b->shape) {
        v.shape.push_back(as_int(e).value_or(std::ssize(groups)));
        elements *= v.shape.back();
      }
      std::vector<char>& own = bytes.emplace_back(static_cast<size_t>(elements * b->dtype.element_bytes()));
      for (char& c : own) c = static_cast<char>(random());
      for (int64_t i = 0; b->dtype == f32 && i < elements; ++i)
        reinterpret_cast<float*>(own.data())[i] = static_cast<float>(static_cast<int>(random() % 17) - 8) / 2;
      if (b->name == "group") std::memcpy(own.data(), groups.data(), own.size());
      v.data = own.data();
      views.emplace_back(v);
    }
  }
};

tir::PrimFuncRef scheduled(const tir::PrimFuncRef& f, const char* level) {
  ModuleRef module = schedule_for_cpu(schedule::Schedule(f, "main").module(), target::cpu_level(level));
  return cast<tir::PrimFunc>(module->functions.at("main"));
}

void expect_same(const tir::PrimFuncRef& f, const std::vector<int32_t>& groups, bool lower = true) {
  for (const char* level : {"amx", "avx512", "avx2"}) {
    Memory a(*f, groups), b(*f, groups);
    tir::Interpreter(f).run(a.views);
    const tir::PrimFuncRef fast = scheduled(f, level);
    tir::Interpreter(lower ? passes::lower(fast) : fast).run(b.views);
    EXPECT_EQ(a.bytes, b.bytes) << level << ", " << groups.size() << " rows";
  }
}

/// Sorted rows of 4 groups: so many of each.
std::vector<int32_t> rows_of_each(const std::vector<int>& counts) {
  std::vector<int32_t> out;
  for (size_t g = 0; g < counts.size(); ++g) out.insert(out.end(), static_cast<size_t>(counts[g]), static_cast<int>(g));
  return out;
}

TEST(GroupedProducts, OneGroupIsADenseProduct) {
  const auto grouped = grouped_function(biased_product(rows_of(0), 4, 64, 20));
  ASSERT_TRUE(grouped);
  using enum GroupedParam;
  EXPECT_EQ(grouped->params, (std::vector{rows, stack, stack, groups, rows}));
  EXPECT_TRUE(equal(grouped->one, biased_product(rows_of(0), 0, 64, 20), true)) << tir::to_script(*grouped->one);
}

TEST(GroupedProducts, OthersAreNone) {
  EXPECT_FALSE(grouped_function(biased_product(rows_of(0), 0, 64, 20)));
  EXPECT_FALSE(grouped_function(code_product(0, 64, 32, 8)));
  // Rows of a table are picked, and no product.
  te::Tensor table = te::placeholder({size(9), size(20)}, f32, "table"), ids = te::placeholder({size(5)}, i32, "ids");
  te::Tensor y = te::compute({.name = "take", .axis = "i"}, {size(5), size(20)}, [&](const te::Indices& i) {
    return table({cast_to(i64, ids({i[0]})), i[1]});
  });
  EXPECT_FALSE(grouped_function(te::create_prim_func({table, ids, y})));
}

// Groups without rows, of one row, of a few, of many, and all heights of a tile.
TEST(GroupedProducts, OfFloats) {
  const tir::PrimFuncRef f = biased_product(rows_of(0), 4, 64, 20);
  for (const std::vector<int>& counts :
       {std::vector{1, 0, 0, 0}, {0, 0, 0, 1}, {1, 1, 1, 1}, {0, 5, 0, 13}, {14, 1, 0, 49}, {0, 101, 0, 0}})
    expect_same(f, rows_of_each(counts));
  expect_same(biased_product(rows_of(0), 4, 40, 20), rows_of_each({3, 0, 15, 1}), false);
}
// In any order a run of one group is as long as it is.
TEST(GroupedProducts, OfRowsThatAreNotSorted) {
  expect_same(biased_product(rows_of(0), 4, 64, 20), {3, 3, 0, 3, 1, 1, 1, 0});
}
// As many rows as one token has experts: each is a group.
TEST(GroupedProducts, OfFewRows) {
  const tir::PrimFuncRef f = biased_product(size(3), 4, 64, 20);
  ASSERT_TRUE(grouped_function(f));
  EXPECT_FALSE(grouped_function(f)->rows);
  expect_same(f, {2, 0, 3});
  expect_same(f, {1, 1, 1});
}
TEST(GroupedProducts, OfCodes) {
  for (const std::vector<int>& counts : {std::vector{1, 0, 2, 0}, {0, 5, 0, 13}, {14, 1, 0, 20}})
    expect_same(code_products(4, 64, 32), rows_of_each(counts));
}

}  // namespace
}  // namespace sator::rules
