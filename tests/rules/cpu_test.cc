// What the rules make of a function computes the same: the scheduled and the lowered program against the function itself,
// all in the interpreter, over heights that end anywhere in a tile.
#include "rules/cpu.h"

#include <gtest/gtest.h>

#include <list>
#include <numeric>
#include <random>
#include <set>

#include "base/float16.h"
#include "passes/lower/lower.h"
#include "rules/functions.h"
#include "rules/low_batch.h"
#include "schedule/primitives.h"
#include "schedule/schedule.h"
#include "tir/interp.h"
#include "tir/parse.h"
#include "tir/print.h"

namespace sator::rules {
namespace {

struct Scheduled {
  tir::PrimFuncRef func;
  std::string rule, trace;
};

Scheduled scheduled(const tir::PrimFuncRef& func, const target::CpuLevel& level) {
  Scheduled out;
  ModuleRef module =
      schedule_for_cpu(schedule::Schedule(func, "main").module(), level, [&](const AppliedSchedule& applied) {
        out.rule = applied.rule, out.trace = applied.trace;
      });
  out.func = cast<tir::PrimFunc>(module->functions.at("main"));
  return out;
}

/// Memory for the function's parameters, filled with small random numbers. `n` stands for each symbolic extent.
class Memory {
 public:
  Memory(const tir::PrimFunc& f, int64_t n) {
    std::mt19937 random(3);
    for (const VarRef& p : f.params) {
      BufferRef b = f.buffer_of(p);
      tir::ArrayView v{.dtype = b->dtype};
      int64_t elements = 1;
      for (const Expr& e : b->shape) v.shape.push_back(as_int(e).value_or(n)), elements *= v.shape.back();
      bytes_.emplace_back(static_cast<size_t>(elements * b->dtype.element_bytes()));
      std::vector<char>& bytes = bytes_.back();
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(random());
      // Halves: sums of products of them are exact in f32, in any order.
      const auto half = [&] { return static_cast<float>(static_cast<int>(random() % 17) - 8) / 2; };
      if (b->dtype == f32)
        for (int64_t i = 0; i < elements; ++i) reinterpret_cast<float*>(bytes.data())[i] = half();
      if (b->dtype == bf16)
        for (int64_t i = 0; i < elements; ++i) reinterpret_cast<uint16_t*>(bytes.data())[i] = f32_to_bf16(half());
      v.data = bytes.data();
      views.emplace_back(v);
    }
  }
  const std::list<std::vector<char>>& bytes() const { return bytes_; }
  std::vector<tir::Argument> views;

 private:
  std::list<std::vector<char>> bytes_;
};

/// `lower`: also as lowered. The interpreter loads all lanes of a vector, those that a mask switches off too, so columns
/// that do not fill their last vector are compared as scheduled.
void expect_same(const tir::PrimFuncRef& func, const std::string& rule, const std::vector<int64_t>& heights,
                 bool lower = true) {
  for (const char* name : {"amx", "avx512_bf16", "avx512", "avx2"}) {
    Scheduled s = scheduled(func, target::cpu_level(name));
    EXPECT_EQ(s.rule, rule);
    tir::Interpreter plain(func), fast(lower ? passes::lower(s.func) : s.func);
    for (int64_t n : heights) {
      Memory a(*func, n), b(*func, n);
      plain.run(a.views);
      fast.run(b.views);
      EXPECT_EQ(a.bytes(), b.bytes()) << name << ", " << n << " rows";
    }
  }
}

const std::vector<int64_t> kHeights = {1, 2, 5, 6, 7, 12, 13, 14, 49, 101};

TEST(CpuRules, FloatProducts) {
  for (int64_t columns : {64, 96, 40, 7})
    expect_same(float_product(0, columns, 20), "product", kHeights, columns % 32 == 0);
}
// Panels of that depth leave the L2 cache: the sums are made of three parts.
TEST(CpuRules, DeepFloatProducts) {
  const tir::PrimFuncRef deep = float_product(0, 32, 3 * 2048);
  EXPECT_NE(scheduled(deep, target::cpu_level("avx512")).trace.find("sch.rfactor("), std::string::npos);
  expect_same(deep, "product", {1, 7, 14, 97});
}

// Tiles of the outer loops would put thousands of iterations below each lane of a vector.
TEST(CpuRules, ProductsInTilesOfSomebodyAreNotTiledAgain) {
  schedule::Schedule s(float_product(1, 64, 20), "main");
  const schedule::BlockHandle product = schedule::get_block(s, "product");
  const std::vector<schedule::Loop> loops = schedule::get_loops(s, product);
  const auto rows = schedule::split(s, loops[0], schedule::Factors{std::nullopt, int_imm(16, i64)}),
             columns = schedule::split(s, loops[1], schedule::Factors{std::nullopt, int_imm(16, i64)});
  schedule::reorder(s, std::vector<schedule::Loop>{rows[0], columns[0], rows[1], columns[1], loops[2]});
  expect_same(s.func(), "anything", {1}, false);
}

// Column by column a transposed matrix would be gathered, and a narrow one would leave most of a panel empty.
TEST(CpuRules, ProductsWithAMatrixThatNobodyPacked) {
  for (const auto& [columns, depth] : {std::pair{10, 20}, std::pair{40, 300}, std::pair{64, 112}}) {
    for (int64_t rows : {1, 3, 16}) expect_same(plain_product(rows, columns, depth, true), "anything", {rows}, false);
    expect_same(plain_product(0, columns, depth, true), "anything", {1, 7, 13, 14, 49}, false);
  }
  expect_same(plain_product(16, 10, 40, false), "anything", {16}, false);
  expect_same(plain_product(16, 64, 40, false), "product", {16});
}

TEST(CpuRules, FloatProductsOfOneRow) {
  for (int64_t columns : {256, 96, 40}) expect_same(float_product(1, columns, 20), "product", {1}, columns % 32 == 0);
}
TEST(CpuRules, ProductsOfScaledCodes) {
  expect_same(scaled_product(0, 96, 3), "product", kHeights);
  for (int64_t columns : {256, 96}) expect_same(scaled_product(1, columns, 3), "product", {1});
}
// Each panel of codes and each of scales is a stream from memory: a row meets them one after the other, floats several at once.
TEST(CpuRules, OneRowMeetsOnePanelOfScaledCodes) {
  auto tasks = [](const tir::PrimFuncRef& f) {
    int64_t out = 0;
    walk(scheduled(f, target::cpu_level("avx512")).func->body, [&](const tir::For& loop) {
      if (loop.kind == tir::LoopKind::parallel) out = as_int(loop.extent).value_or(0);
    });
    return out;
  };
  EXPECT_EQ(tasks(scaled_product(1, 512, 3)), 16);
  EXPECT_EQ(tasks(float_product(1, 512, 96)), 4);
}
TEST(CpuRules, ProductsOfBfloat16) {
  for (int64_t columns : {64, 96, 40})
    expect_same(bf16_product(0, columns, 20), "bf16_product", kHeights, columns % 32 == 0);
  expect_same(bf16_product(1, 256, 20), "bf16_product", {1});
  for (int64_t columns : {43, 96}) expect_same(bf16_product(0, columns, 96), "bf16_product", kHeights, columns == 96);
  // So deep that on tiles its panels are read in parts.
  expect_same(bf16_product(0, 32, 1024), "bf16_product", {1, 14, 45});
}
TEST(CpuRules, ProductsOfBfloat16AreDots) {
  for (int64_t n : {0, 1}) {
    int dots = 0, products = 0;
    walk(
        passes::lower(scheduled(bf16_product(n, 256, 32), target::cpu_level("avx512_bf16")).func)->body,
        [&](const Call& c) { dots += c.op == "tir.dot2"; },
        [&](const Mul& m) { products += m.dtype.element() == f32; });
    EXPECT_GT(dots, 0) << n;
    EXPECT_EQ(products, 0) << n;
  }
}
/// Calls of an op in the function as it is lowered.
int calls_of(const tir::PrimFuncRef& func, std::string_view level, std::string_view op) {
  int calls = 0;
  walk(passes::lower(scheduled(func, target::cpu_level(level)).func)->body,
       [&](const Call& c) { calls += c.op == op; });
  return calls;
}

// Of bfloat16 all, so that a row has the same bits in any number of rows; of bytes, whose sums are exact, those of many rows.
TEST(CpuRules, ProductsOnMatrixTiles) {
  EXPECT_EQ(calls_of(bf16_product(0, 256, 64), "amx", "tir.dot2"), 0);
  EXPECT_EQ(calls_of(bf16_product(1, 256, 64), "amx", "tir.tile_product"), 1);
  for (int bits : {8, 4}) {
    const tir::PrimFuncRef f = code_product(20, 64, 96, bits);
    EXPECT_EQ(calls_of(f, "amx", "tir.tile_product"), 1) << bits;
    EXPECT_EQ(calls_of(f, "amx", "tir.dot4"), 0) << bits;
  }
  // The last four rows for themselves; the others' groups overlap: those that begin, and those in the loop.
  for (auto [groups, dots] : {std::pair{3, 3}, std::pair{8, 8}, std::pair{7, 0}, std::pair{24, 8}}) {
    const tir::PrimFuncRef f = grouped_product(20, 64, {.count = groups});
    EXPECT_EQ(calls_of(f, "amx", "tir.tile_product"), dots > 0 ? 1 : 2) << groups;
    EXPECT_EQ(calls_of(f, "amx", "tir.tile_dot"), dots) << groups;
    EXPECT_EQ(calls_of(f, "amx", "tir.tile_store"), dots) << groups;
  }
  EXPECT_EQ(calls_of(grouped_product(16, 64, {.count = 4, .length = 128}), "amx", "tir.tile_dot"), 8) << "in two steps";
  EXPECT_EQ(calls_of(grouped_product(16, 64, {.count = 4, .length = 96}), "amx", "tir.tile_dot"), 0) << "of two depths";
  EXPECT_EQ(calls_of(grouped_product(16, 64, {.count = 8, .scales_rows = true}), "amx", "tir.tile_dot"), 0);
  EXPECT_GT(calls_of(code_product(0, 64, 96, 8), "amx", "tir.tile_product"), 0);
  EXPECT_EQ(calls_of(code_product(20, 81, 96, 8), "amx", "tir.tile_product"), 2) << "full panels, and the last one";
  EXPECT_GT(calls_of(code_product(0, 64, 96, 8), "amx", "tir.dot4"), 0);
}

// Numbers whose sums round, in the interpreter, so on machines without tiles too: equal rows have equal sums in any number.
TEST(CpuRules, ARowHasTheSameBitsAloneAndAmongOthersOnTiles) {
  constexpr int64_t kDepth = 96;
  for (int64_t columns : {43, 96}) {
    const tir::PrimFuncRef f = bf16_product(0, columns, kDepth);
    const tir::Interpreter lowered(passes::lower(scheduled(f, target::cpu_level("amx")).func));
    std::vector<uint32_t> alone;
    for (int64_t n : {1, 2, 13, 14, 33, 45}) {
      Memory memory(*f, n);
      for (size_t operand : {0, 1}) {
        const auto& view = std::get<tir::ArrayView>(memory.views[operand]);
        auto* values = static_cast<uint16_t*>(view.data);
        const int64_t count = operand == 0 ? n * kDepth : (columns + 31) / 32 * 32 * kDepth;
        std::mt19937 random(5);
        for (int64_t i = 0; i < count; ++i) {
          if (operand == 0 && i % kDepth == 0) random.seed(7);
          values[i] = f32_to_bf16(static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 300);
        }
      }
      lowered.run(memory.views);
      const auto* sums = static_cast<const uint32_t*>(std::get<tir::ArrayView>(memory.views[2]).data);
      if (alone.empty()) alone.assign(sums, sums + columns);
      for (int64_t i = 0; i < n; ++i)
        EXPECT_TRUE(std::equal(alone.begin(), alone.end(), sums + i * columns))
            << columns << " columns, row " << i << " of " << n;
    }
  }
}

// Whatever is scheduled for tiles becomes a product of them: loops that stayed would sum bfloat16 in another order than other heights do.
TEST(CpuRules, NoLoopsStayOnTiles) {
  auto loops_left = [](const tir::PrimFuncRef& f) {
    int left = 0;
    walk(passes::lower(scheduled(f, target::cpu_level("amx")).func)->body,
         [&](const tir::For& loop) { left += loop.annotations.count(passes::kOnTiles) > 0; });
    return left;
  };
  for (int64_t rows : {0, 1, 2, 14, 20, 33, 300})
    for (int64_t columns : {32, 33, 43, 64, 81, 257})
      for (int64_t depth : {32, 96, 1024, 1056}) {
        EXPECT_EQ(loops_left(bf16_product(rows, columns, depth)), 0) << rows << " " << columns << " " << depth;
        EXPECT_EQ(loops_left(code_product(rows, columns, depth, 8)), 0) << rows << " " << columns << " " << depth;
        EXPECT_EQ(loops_left(code_product(rows, columns, depth, 4)), 0) << rows << " " << columns << " " << depth;
      }
  EXPECT_EQ(loops_left(bf16_product(20, 64, 0)), 0) << "sums of nothing";
  for (int64_t rows : {0, 20, 300})
    for (int64_t groups : {1, 2, 3, 24})
      EXPECT_EQ(loops_left(grouped_product(rows, 96, {.count = groups})), 0) << rows << groups;
}

// Panels come from memory once for each block of rows: what is next is asked for while rows pass over a part.
TEST(CpuRules, ProductsOnTilesAskForTheNextPart) {
  auto lines_of = [](const tir::PrimFuncRef& f) {
    std::set<int64_t> lines;
    walk(passes::lower(scheduled(f, target::cpu_level("amx")).func)->body, [&](const Call& c) {
      if (c.op == "tir.tile_product") lines.insert(*as_int(c.args[15]));
    });
    return lines;
  };
  EXPECT_EQ(lines_of(bf16_product(300, 64, 1024)), std::set<int64_t>{4}) << "eight blocks of rows share 32 lines";
  EXPECT_EQ(lines_of(bf16_product(300, 64, 3072)), std::set<int64_t>{8}) << "four, for more do not fit the L2 cache";
  EXPECT_EQ(lines_of(code_product(300, 64, 1024, 8)), std::set<int64_t>{4});
  EXPECT_EQ(lines_of(code_product(300, 64, 1024, 4)), std::set<int64_t>{0}) << "the panel is made on the way";
}

TEST(CpuRules, ProductsOfBytes) {
  expect_same(code_product(0, 81, 96, 8), "integer_product", kHeights, false);
  for (int bits : {8, 4, 2}) {
    expect_same(code_product(0, 64, 32, bits), "integer_product", kHeights);
    expect_same(code_product(0, 96, 32, bits), "integer_product", {1, 15});
    expect_same(code_product(1, 256, 32, bits), "integer_product", {1});
  }
}
TEST(CpuRules, ProductsOfBytesInGroups) {
  for (int64_t groups : {3, 5, 8}) expect_same(grouped_product(0, 64, {.count = groups}), "integer_product", kHeights);
  for (int64_t length : {16, 64, 96, 128})
    expect_same(grouped_product(0, 64, {.count = 4, .length = length}), "integer_product", {1, 16, 33});
  expect_same(grouped_product(0, 64, {.count = 6, .scales_rows = true}), "integer_product", kHeights);
  expect_same(grouped_product(1, 192, {.count = 2}), "integer_product", {1});
}
// A processor with so small an L2 cache that 16 rows fill half of it, or 64: the last block is not full, nor its last tile.
TEST(CpuRules, ProductsOfBytesInGroupsInBlocksOfRows) {
  for (bool scales_rows : {false, true})
    for (int64_t rows : {16, 64}) {
      const tir::PrimFuncRef f = grouped_product(0, 64, {.count = 4, .scales_rows = scales_rows});
      target::CpuLevel level = target::cpu_level("amx");
      level.l2_bytes = static_cast<int>(2 * rows * 4 * 32);
      const tir::Interpreter plain(f), fast(passes::lower(scheduled(f, level).func));
      for (int64_t n : {15, 16, 63, 64, 65, 100, 129}) {
        Memory a(*f, n), b(*f, n);
        plain.run(a.views);
        fast.run(b.views);
        EXPECT_EQ(a.bytes(), b.bytes()) << n << " rows in blocks of " << rows << ", scaled " << scales_rows;
      }
    }
}
// On tiles a zero is subtracted from the codes, elsewhere from the sums: the same, where the sums that the function is given are right.
TEST(CpuRules, ProductsOfBytesInGroupsWithAZero) {
  constexpr int64_t kGroups = 8, kDepth = kGroups * 32;
  const tir::PrimFuncRef f = grouped_product(0, 64, {.count = kGroups, .zero = 7});
  for (const char* name : {"amx", "avx512", "avx2"}) {
    const Scheduled s = scheduled(f, target::cpu_level(name));
    EXPECT_EQ(s.rule, "integer_product");
    EXPECT_EQ(s.trace.find("sch.unsafe_subtract_early(") != std::string::npos, name == std::string_view("amx"));
    const tir::Interpreter plain(f), fast(passes::lower(s.func));
    for (int64_t n : {1, 13, 14, 49}) {
      Memory a(*f, n), b(*f, n);
      for (Memory* memory : {&a, &b}) {
        auto data = [&](size_t i) { return std::get<tir::ArrayView>(memory->views[i]).data; };
        const auto* x = static_cast<const int8_t*>(data(0));
        for (int64_t g = 0; g < n * kGroups; ++g)
          static_cast<int32_t*>(data(4))[g] =
              std::accumulate(x + g * kDepth / kGroups, x + (g + 1) * kDepth / kGroups, 0);
      }
      plain.run(a.views);
      fast.run(b.views);
      EXPECT_EQ(a.bytes(), b.bytes()) << name << ", " << n << " rows";
    }
  }
  // Codes of a table reach beyond 127, and nobody says that what is subtracted from other sums is theirs.
  EXPECT_EQ(scheduled(grouped_product(0, 64, {.count = kGroups}), target::cpu_level("amx")).trace.find("unsafe_"),
            std::string::npos);
}
// 9 products of 3 codes per word (of 10 bits): no multiple of four.
TEST(CpuRules, BytesWhoseNumberIsNoMultipleOfFour) { expect_same(code_product(0, 64, 9, 10), "product", {1, 15}); }

// All sums here are of small whole numbers, exact in any order.
TEST(CpuRules, RowsInEightBits) {
  for (int64_t columns : {64, 16, 50}) expect_same(quantized_rows(0, columns), "rows", kHeights, columns % 16 == 0);
  expect_same(quantized_rows(1, 64), "rows", {1});
}
TEST(CpuRules, RowsWithAnExpensiveValue) {
  for (int64_t columns : {64, 48, 7}) expect_same(centred_rows(0, columns), "rows", kHeights, columns % 16 == 0);
}
tir::PrimFuncRef sums_of_rows(int64_t n, int64_t length) {
  const Expr rows = rows_of(n);
  te::Tensor x = te::placeholder({rows, size(length)}, f32, "x");
  tir::IterVarRef k = te::reduce_axis(size(length), "k");
  te::Tensor y = te::reduce({.name = "sum", .axis = "i"}, {rows}, [&](const te::Indices& i) {
    return te::reduce_sum(x({i[0], k->var}), {k});
  });
  return te::create_prim_func({x, y});
}

// Partial sums by lanes all the same, of which the last vector has some alone.
TEST(CpuRules, RowsThatAreNotWholeVectors) {
  for (const int64_t length : {37, 1003}) {
    const tir::PrimFuncRef sums = sums_of_rows(0, length);
    EXPECT_NE(scheduled(sums, target::cpu_level("avx2")).trace.find("init_follows=True"), std::string::npos);
    expect_same(sums, "rows", {1, 3, 17}, false);
  }
}

// Of what the last vector has too, a second sum is made.
TEST(CpuRules, RowsThatAreNotWholeVectorsReduceTwice) {
  for (const int64_t length : {37, 301}) {
    const tir::PrimFuncRef rows = centred_rows(0, length);
    EXPECT_NE(scheduled(rows, target::cpu_level("avx512")).trace.find("init_follows=True"), std::string::npos);
    expect_same(rows, "rows", {1, 3, 17}, false);
  }
}

// Several vectors of partial sums, which become one.
TEST(CpuRules, LongRows) {
  for (const int64_t length : {256, 512, 336}) expect_same(sums_of_rows(0, length), "rows", {1, 3, 17});
}

// 64 KiB of a row: it is cut in parts, which run in parallel.
TEST(CpuRules, FewRowsOfManyElementsAreCut) {
  const target::CpuLevel& level = target::cpu_level("avx512");
  EXPECT_EQ(scheduled(sums_of_rows(1, 16384), level).rule, "anything");
  EXPECT_EQ(scheduled(sums_of_rows(15, 16384), level).rule, "anything");
  EXPECT_EQ(scheduled(sums_of_rows(16, 16384), level).rule, "rows");
  EXPECT_EQ(scheduled(sums_of_rows(1, 16383), level).rule, "rows");
  EXPECT_EQ(scheduled(sums_of_rows(0, 16384), level).rule, "rows");
}

// The rows, or what one of them sums, have no loop around the block that somebody made of it.
TEST(CpuRules, RowsInABlockOfSomebody) {
  for (const size_t loop : {0, 1}) {
    schedule::Schedule s(sums_of_rows(4, 32), "main");
    schedule::blockize(s, schedule::Value(schedule::get_loops(s, schedule::get_block(s, "sum"))[loop]), true);
    expect_same(s.func(), "anything", {4}, false);
  }
}

TEST(CpuRules, AnExpensiveValueIsComputedOnce) {
  Scheduled s = scheduled(centred_rows(0, 64), target::cpu_level("avx512"));
  int calls = 0;
  walk(s.func->body, [&](const Call& c) { calls += c.op == "tir.tanh"; });
  EXPECT_EQ(calls, 1);
}

/// The operand of an integer product reaches the machine as dot4, not as single products.
TEST(CpuRules, ProductsOfBytesAreDots) {
  for (int bits : {8, 4}) {
    for (int64_t n : {0, 1}) {
      Scheduled s = scheduled(code_product(n, 256, 32, bits), target::cpu_level("avx512"));
      int dots = 0, products = 0;
      walk(
          passes::lower(s.func)->body,
          [&](const Call& c) { dots += c.op == "tir.dot4"; },
          [&](const Mul& m) { products += m.dtype.element() == i32; });
      EXPECT_GT(dots, 0) << bits << " bits, " << n;
      EXPECT_EQ(products, 0) << bits << " bits, " << n;
    }
  }
}

/// Few rows wait for memory: every stream of weights is asked for ahead, whatever panels a tile spans, where the level's CPUs gain by it.
TEST(CpuRules, ProductsOfFewRowsPrefetchTheirWeights) {
  for (const tir::PrimFuncRef& f : {float_product(1, 256, 64),
                                    code_product(1, 256, 32, 8),
                                    grouped_product(1, 256, {.count = 2}),
                                    float_product(0, 256, 64),
                                    code_product(0, 256, 32, 4)}) {
    for (const char* level : {"avx512", "avx512_bf16"}) {
      std::vector<std::string> notes;
      passes::LowerOptions options;
      options.note = [&](const Reason& reason) { notes.push_back(reason.render()); };
      int requests = 0;
      walk(passes::lower(scheduled(f, target::cpu_level(level)).func, options)->body,
           [&](const Call& c) { requests += c.op == "tir.prefetch"; });
      EXPECT_EQ(requests > 0, target::cpu_level(level).prefetch_iterations > 0) << level << "\n" << tir::to_script(*f);
      EXPECT_TRUE(notes.empty()) << notes.front();
    }
  }
}

/// One row reads as many panels of 32 columns side by side as the level's CPUs read best; beside scales one.
TEST(CpuRules, OneRowReadsAsManyStreamsAsItsCpu) {
  auto parallel = [](const tir::PrimFuncRef& f, const char* level) {
    int64_t extent = 0;
    walk(scheduled(f, target::cpu_level(level)).func->body, [&](const tir::For& loop) {
      if (loop.kind == tir::LoopKind::parallel) extent = as_int(loop.extent).value_or(0);
    });
    return extent;
  };
  const std::pair<const char*, int64_t> panels[] = {
      {"amx", 4}, {"avx512_bf16", 1}, {"avx512", 4}, {"avx2", 2}, {"aarch64", 1}};
  for (const auto& [level, side_by_side] : panels) {
    EXPECT_EQ(parallel(float_product(1, 256, 64), level), 8 / side_by_side) << level;
    EXPECT_EQ(parallel(grouped_product(1, 256, {.count = 2}), level), 8) << level;
  }
}

// LowBatchGemvSpecialize: a body for one row, for a few, for many, and the number of rows that is asked decides.
TEST(CpuRules, ProductsBranchByTheirRows) {
  const tir::PrimFuncRef f = float_product(0, 64, 20);
  std::vector<std::string> calls;
  ModuleRef module = schedule_for_cpu(schedule::Schedule(f, "main").module(),
                                      target::cpu_level("avx512"),
                                      [&](const AppliedSchedule& applied) { calls.push_back(applied.calls); });
  EXPECT_EQ(calls, (std::vector<std::string>{"n == 1", "2 <= n <= 13", "n > 13"}));
  tir::PrimFuncRef done = cast<tir::PrimFunc>(module->functions.at("main"));
  std::vector<std::string> blocks;
  walk(done->body, [&](const tir::Block& b) {
    if (b.iter_vars.empty()) blocks.push_back(b.name->text);
  });
  EXPECT_EQ(blocks, (std::vector<std::string>{"root", "one_row", "few_rows", "many_rows"}));
  EXPECT_EQ(int_attr(done->attrs, kMostRows), std::nullopt);
  EXPECT_TRUE(equal(tir::parse_function(tir::to_script(*done)), done, true)) << tir::to_script(*done);
  EXPECT_EQ(low_batch_branches(float_product(5, 64, 20)).size(), 1u);  // a known number of rows needs no branch
  EXPECT_EQ(low_batch_branches(centred_rows(0, 64)).size(), 1u);
}

}  // namespace
}  // namespace sator::rules
