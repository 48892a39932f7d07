// A mapping is a schedule: the program with its loops on the array, read again, has the counts of the mapping's closed form.
#include "dataflow/cost/scheduled.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "dataflow/cost/array_cost.h"
#include "dataflow/counts/enumerate.h"
#include "dataflow/programs/from_tir.h"
#include "schedule/script.h"
#include "temp_folder.h"
#include "tir/interp.h"
#include "tir/parse.h"
#include "tir/print.h"

namespace sator::dataflow {
namespace {

struct Program {
  const char* name;
  const char* text;
  FunctionFacts facts;
};

const FunctionFacts kWeightSecond = {.name = "f", .sizes = {{"n", 20}}, .params = {{}, {OperandKind::weight}, {}}};

const Program kPrograms[] = {
    {"gemm",
     R"(
@T.prim_func
def f(var_A: T.handle, W: T.Buffer((50, 36), "int8"), var_C: T.handle):
    n = T.int64()
    A = T.match_buffer(var_A, (n, T.int64(36)), "int8")
    C = T.match_buffer(var_C, (n, T.int64(50)), "int32")
    for i, j, k in T.grid(n, T.int64(50), T.int64(36)):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.int32(0)
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", W[vj, vk])
)",
     kWeightSecond},
    {"renamed copy, loops in another order",
     R"(
@T.prim_func
def f(var_X: T.handle, Y: T.Buffer((50, 36), "int8"), var_Z: T.handle):
    n = T.int64()
    X = T.match_buffer(var_X, (n, T.int64(36)), "int8")
    Z = T.match_buffer(var_Z, (n, T.int64(50)), "int32")
    for p, q, r in T.grid(T.int64(36), T.int64(50), n):
        with T.block("something"):
            a, b, c = T.axis.remap("RSS", [p, q, r])
            with T.init():
                Z[c, b] = T.int32(0)
            Z[c, b] = Z[c, b] + T.Cast("int32", X[c, a]) * T.Cast("int32", Y[b, a])
)",
     kWeightSecond},
    {"scores of attention, three queries per key head",
     R"(
@T.prim_func
def f(Q: T.Buffer((6, 10, 24), "int8"), K: T.Buffer((2, 30, 24), "int8"), S: T.Buffer((6, 10, 30), "int32")):
    for h, i, j, d in T.grid(6, 10, 30, 24):
        with T.block("scores"):
            vh, vi, vj, vd = T.axis.remap("SSSR", [h, i, j, d])
            with T.init():
                S[vh, vi, vj] = 0
            S[vh, vi, vj] = S[vh, vi, vj] + T.Cast("int32", Q[vh, vi, vd]) * T.Cast("int32", K[vh // 3, vj, vd])
)",
     {.name = "f", .sizes = {}, .params = {{}, {OperandKind::kv}, {}}}},
    {"convolution",
     R"(
@T.prim_func
def f(I: T.Buffer((5, 9, 9), "int8"), W: T.Buffer((10, 5, 3, 3), "int8"), O: T.Buffer((10, 7, 7), "int32")):
    for o, y, x, c, u, v in T.grid(10, 7, 7, 5, 3, 3):
        with T.block("conv"):
            vo, vy, vx, vc, vu, vv = T.axis.remap("SSSRRR", [o, y, x, c, u, v])
            with T.init():
                O[vo, vy, vx] = 0
            O[vo, vy, vx] = O[vo, vy, vx] + T.Cast("int32", I[vc, vy + vu, vx + vv]) * T.Cast("int32", W[vo, vc, vu, vv])
)",
     kWeightSecond},
    {"codes that are made on the way",
     R"(
@T.prim_func
def f(Q: T.Buffer((40, 9), "uint32"), S: T.Buffer((40, 3), "float16"), A: T.Buffer((10, 72), "float16"), C: T.Buffer((10, 40), "float16")):
    W = T.alloc_buffer((40, 72), "float16")
    for i0, i1 in T.grid(40, 72):
        with T.block("dequantize"):
            v0, v1 = T.axis.remap("SS", [i0, i1])
            W[v0, v1] = (T.Cast("float16", T.bitwise_and(T.shift_right(Q[v0, v1 // 8], T.Cast("uint32", v1 % 8 * 4)), T.uint32(15))) - T.float16(7)) * S[v0, v1 // 32]
    for i, j, k in T.grid(10, 40, 72):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float16(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * W[vj, vk]
)",
     {.name = "f", .sizes = {}, .params = {{OperandKind::weight, 4}, {OperandKind::scale}, {}, {}}}},
};

/// The edge NPU, whose PEs take two or four narrow MACs at once, with another thing kept in its PEs; and a smaller array.
Chip chip_with(Stationary dataflow, int64_t rows, int64_t columns) {
  Chip chip = find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/edge_npu32.toml");
  chip.dataflow = dataflow;
  chip.rows = rows, chip.columns = columns;
  return chip;
}

class EveryDataflow : public testing::TestWithParam<Stationary> {};

TEST_P(EveryDataflow, TheScheduledProgramCountsAsItsMapping) {
  for (const Program& p : kPrograms)
    for (auto [rows, columns] : {std::pair<int64_t, int64_t>{32, 32}, {8, 4}}) {
      SCOPED_TRACE(testing::Message() << p.name << " on " << rows << " x " << columns);
      const Chip chip = chip_with(GetParam(), rows, columns);
      CostEngine engine(chip);
      const tir::PrimFuncRef plain = tir::parse_function(p.text);
      const TirWork work = work_of(*plain, p.facts, &chip);
      const KernelCost cost = engine.cost(work.kernel);
      const ScheduledFunction scheduled = schedule_as_costed(plain, "f", cost);
      EXPECT_NE(scheduled.trace.find("sch.bind("), std::string::npos) << scheduled.trace;
      const TirWork again = work_of(*scheduled.func, p.facts, &chip);
      ASSERT_EQ(again.placements.size(), 1U);
      ASSERT_TRUE(again.placements[0]);
      EXPECT_EQ(difference(cost, CostEngine(chip).cost(again.kernel, again.placements)), "") << scheduled.trace;
    }
}

// The mapping as the schedule states it, listed instance by instance.
TEST_P(EveryDataflow, TheScheduledProgramCountsAsItsInstances) {
  for (const Program& p : kPrograms) {
    SCOPED_TRACE(p.name);
    const Chip chip = chip_with(GetParam(), 8, 4);
    const tir::PrimFuncRef plain = tir::parse_function(p.text);
    const KernelCost cost = CostEngine(chip).cost(work_of(*plain, p.facts, &chip).kernel);
    const TirWork again = work_of(*schedule_as_costed(plain, "f", cost).func, p.facts, &chip);
    const KernelCost read = CostEngine(chip).cost(again.kernel, again.placements);
    for (const StatementCost& s : read.statements) {
      if (!s.on_array()) continue;
      auto listed = enumerate(problem_at_pes(s.work.statement, s.placement->mapping, chip), 1 << 22);
      const Counts& counts = std::get<Counts>(listed);
      EXPECT_EQ(counts.time, s.counts->time);
      EXPECT_EQ(counts.spacetime, s.counts->spacetime);
      for (size_t t = 0; t < counts.tensors.size(); ++t) {
        EXPECT_EQ(counts.tensors[t].unique, s.counts->tensors[t].unique) << counts.tensors[t].tensor;
        EXPECT_EQ(counts.tensors[t].temporal_hits, s.counts->tensors[t].temporal_hits) << counts.tensors[t].tensor;
      }
    }
  }
}

// Several cores take blocks of loops, bound to core: the count of each is that of the mapping.
TEST_P(EveryDataflow, ShareOfCoresIsALoop) {
  for (const Program& p : kPrograms)
    for (int64_t cores : {2, 3, 7}) {
      SCOPED_TRACE(testing::Message() << p.name << " on " << cores << " cores");
      Chip chip = chip_with(GetParam(), 8, 4);
      chip.cores = cores;
      chip.memories.back().per_core = true;
      const tir::PrimFuncRef plain = tir::parse_function(p.text);
      const KernelCost cost = CostEngine(chip).cost(work_of(*plain, p.facts, &chip).kernel);
      const ScheduledFunction scheduled = schedule_as_costed(plain, "f", cost);
      const TirWork again = work_of(*scheduled.func, p.facts, &chip);
      ASSERT_TRUE(again.placements.at(0));
      for (const StatementCost& s : cost.statements)
        if (s.on_array()) {
          EXPECT_EQ(again.placements[0]->cores_used, s.placement->cores_used) << scheduled.trace;
          EXPECT_EQ(scheduled.trace.find("thread_axis=\"core.x\"") != std::string::npos, s.placement->cores_used > 1);
        }
      EXPECT_EQ(difference(cost, CostEngine(chip).cost(again.kernel, again.placements)), "") << scheduled.trace;
    }
}

// Tiles that a user asks for, which end where the array's do not, are loops too.
TEST_P(EveryDataflow, TilesThatWereAskedForAreLoops) {
  for (const std::array<int64_t, 3>& tile : {std::array<int64_t, 3>{10, 7, 9}, {16, 0, 5}, {3, 50, 36}})
    for (int64_t cores : {1, 3}) {
      SCOPED_TRACE(testing::Message() << tile[0] << " x " << tile[1] << " x " << tile[2] << ", " << cores << " cores");
      Chip chip = chip_with(GetParam(), 8, 4);
      chip.tile = tile;
      chip.cores = cores;
      const tir::PrimFuncRef plain = tir::parse_function(kPrograms[0].text);
      const KernelCost cost = CostEngine(chip).cost(work_of(*plain, kWeightSecond, &chip).kernel);
      ASSERT_TRUE(cost.statements.at(0).placement->tiled);
      const ScheduledFunction scheduled = schedule_as_costed(plain, "f", cost);
      const TirWork again = work_of(*scheduled.func, kWeightSecond, &chip);
      EXPECT_EQ(difference(cost, CostEngine(chip).cost(again.kernel, again.placements)), "") << scheduled.trace;
    }
}

INSTANTIATE_TEST_SUITE_P(Stationarities, EveryDataflow,
                         testing::Values(Stationary::output, Stationary::weight, Stationary::input, Stationary::row));

// A filter's row lies along a column of PEs: rows of outputs lie along the columns and, in strips, below each other.
TEST(Scheduled, RowsOfFiltersAreLoopsOnBothAxes) {
  const tir::PrimFuncRef plain = tir::parse_function(kPrograms[3].text);
  const std::pair<int64_t, int64_t> sizes[] = {{12, 14}, {12, 4}, {7, 3}, {3, 2}};
  for (auto [rows, columns] : sizes)
    for (int64_t cores : {1, 2}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", " << cores << " cores");
      Chip chip = find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/eyeriss_v1.toml");
      chip.rows = rows, chip.columns = columns, chip.cores = cores;
      const KernelCost cost = CostEngine(chip).cost(work_of(*plain, kWeightSecond, &chip).kernel);
      const rules::ArrayNest& nest = *cost.statements.at(0).placement->nest;
      const auto is_window = [](const rules::ArrayNest::Side& side) { return side.loop == 4 || side.loop == 5; };
      ASSERT_TRUE(std::any_of(nest.rows.begin(), nest.rows.end(), is_window));
      const ScheduledFunction scheduled = schedule_as_costed(plain, "f", cost);
      const TirWork again = work_of(*scheduled.func, kWeightSecond, &chip);
      ASSERT_TRUE(again.placements.at(0));
      EXPECT_EQ(difference(cost, CostEngine(chip).cost(again.kernel, again.placements)), "") << scheduled.trace;
      if (rows == 12 && columns == 4) EXPECT_EQ(nest.rows.at(1).loop, nest.columns.at(0).loop);  // strips
    }
}

// Cores that share a reduction are a loop over its blocks, bound to a core's axis; read again, it shares the reduction too.
TEST(Scheduled, CoresThatShareAReductionAreLoops) {
  const Chip chip = find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/h200.toml");
  const tir::PrimFuncRef plain = tir::parse_function(R"(
@T.prim_func
def f(A: T.Buffer((8, 65536), "float16"), W: T.Buffer((64, 65536), "float16"), C: T.Buffer((8, 64), "float16")):
    for i, j, k in T.grid(8, 64, 65536):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float16(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * W[vj, vk]
)");
  const KernelCost cost = CostEngine(chip).cost(work_of(*plain, kWeightSecond, &chip).kernel);
  ASSERT_TRUE(cost.statements.at(0).placement->shares_reduction);
  const ScheduledFunction scheduled = schedule_as_costed(plain, "f", cost);
  const TirWork again = work_of(*scheduled.func, kWeightSecond, &chip);
  ASSERT_TRUE(again.placements.at(0));
  const KernelCost read = CostEngine(chip).cost(again.kernel, again.placements);
  EXPECT_EQ(difference(cost, read), "") << scheduled.trace;
  EXPECT_EQ(cost.latency_cycles, read.latency_cycles);
}

// Four MACs of 4 bits in one PE at one stamp: their loop is unrolled, and the stamps are a quarter.
TEST(Scheduled, WhatOnePeTakesAtOnceIsOneStamp) {
  const Chip chip = chip_with(Stationary::output, 8, 4);
  const tir::PrimFuncRef plain = tir::parse_function(kPrograms[0].text);
  auto narrow = [&](const tir::PrimFuncRef& f) {
    TirWork work = work_of(*f, kWeightSecond, &chip);
    for (size_t a : {size_t{0}, size_t{1}}) work.kernel.work.at(0).operands[a].bits = 4;
    return work;
  };
  const KernelCost cost = CostEngine(chip).cost(narrow(plain).kernel);
  const ScheduledFunction scheduled = schedule_as_costed(plain, "f", cost);
  EXPECT_NE(scheduled.trace.find("sch.unroll("), std::string::npos) << scheduled.trace;
  const TirWork again = narrow(scheduled.func);
  const KernelCost read = CostEngine(chip).cost(again.kernel, again.placements);
  EXPECT_EQ(difference(cost, read), "");
  // 20 rows on 8, 50 columns on 4, or the other way round: 3 x 13 or 7 x 5 tiles of 36 / 4 stamps.
  EXPECT_TRUE(read.statements[0].stream_cycles == 3 * 13 * 9 || read.statements[0].stream_cycles == 5 * 7 * 9)
      << read.statements[0].stream_cycles;
}

// On this machine the scheduled program computes what the plain one does, bit for bit, and its trace replays.
TEST(Scheduled, TheProgramStaysWhatItIs) {
  for (const Program& p : {kPrograms[2], kPrograms[3]}) {
    SCOPED_TRACE(p.name);
    const Chip chip = chip_with(Stationary::weight, 8, 4);
    const tir::PrimFuncRef plain = tir::parse_function(p.text);
    const KernelCost cost = CostEngine(chip).cost(work_of(*plain, p.facts, &chip).kernel);
    const ScheduledFunction scheduled = schedule_as_costed(plain, "f", cost);
    schedule::Schedule replayed(plain, "f");
    replayed.work_on("f");
    schedule::Script(replayed).run(scheduled.trace);
    EXPECT_EQ(tir::to_script(*replayed.func()), tir::to_script(*scheduled.func));
    auto run = [&](const tir::PrimFuncRef& ref) {
      const tir::PrimFunc& f = *ref;
      std::vector<std::vector<int32_t>> memory;
      std::vector<tir::Argument> args;
      for (const VarRef& param : f.params) {
        const BufferRef buffer = f.buffer_of(param);
        std::vector<int64_t> shape;
        size_t elements = 1;
        for (const Expr& e : buffer->shape) shape.push_back(*as_int(e)), elements *= static_cast<size_t>(shape.back());
        std::vector<int32_t>& data = memory.emplace_back(elements);
        const bool bytes = buffer->dtype.bits == 8;
        for (size_t n = 0; n < elements; ++n)
          if (bytes) reinterpret_cast<int8_t*>(data.data())[n] = static_cast<int8_t>(n * 37 % 251);
        args.push_back(tir::ArrayView{data.data(), buffer->dtype, shape, {}});
      }
      tir::Interpreter(ref).run(args);
      return memory.back();
    };
    EXPECT_EQ(run(plain), run(scheduled.func));
  }
}

// The nest counts loops outside of the block around the product too, which no step moves inside.
TEST(Scheduled, AProductInsideOfABlockIsNotWritten) {
  const Chip chip = chip_with(Stationary::weight, 8, 4);
  const tir::PrimFuncRef plain = tir::parse_function(R"(
@T.prim_func
def f(A: T.Buffer((16, 8), "int8"), W: T.Buffer((16, 8), "int8"), C: T.Buffer((16, 16), "int32")):
    for io in range(4):
        with T.block("rows"):
            vio = T.axis.spatial(4, io)
            for i, j, k in T.grid(4, 16, 8):
                with T.block("matmul"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        C[vio * 4 + vi, vj] = 0
                    C[vio * 4 + vi, vj] = C[vio * 4 + vi, vj] + T.int32(A[vio * 4 + vi, vk]) * T.int32(W[vj, vk])
)");
  const KernelCost cost = CostEngine(chip).cost(work_of(*plain, kWeightSecond, &chip).kernel);
  ASSERT_TRUE(cost.statements.at(0).on_array());
  EXPECT_NE(error_of([&] { schedule_as_costed(plain, "f", cost); }).find(R"(block "matmul" lies in block "rows")"),
            std::string::npos);
}

TEST(Scheduled, MoreBlocksThanCoresAreRefused) {
  Chip chip = chip_with(Stationary::weight, 8, 4);
  chip.cores = 4;
  const tir::PrimFuncRef plain = tir::parse_function(kPrograms[0].text);
  const KernelCost cost = CostEngine(chip).cost(work_of(*plain, kWeightSecond, &chip).kernel);
  const ScheduledFunction scheduled = schedule_as_costed(plain, "f", cost);
  chip.cores = 1;
  EXPECT_NE(error_of([&] { work_of(*scheduled.func, kWeightSecond, &chip); }).find("are bound to core.x"),
            std::string::npos);
}

TEST(Scheduled, AMappingForAnotherChipIsRefused) {
  const Chip chip = chip_with(Stationary::weight, 32, 32);
  const tir::PrimFuncRef plain = tir::parse_function(kPrograms[0].text);
  const KernelCost cost = CostEngine(chip).cost(work_of(*plain, kWeightSecond, &chip).kernel);
  const ScheduledFunction scheduled = schedule_as_costed(plain, "f", cost);
  const Chip other = find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/gemmini16.toml");  // with one memory less
  EXPECT_THROW(work_of(*scheduled.func, kWeightSecond, &other), Error);
}

}  // namespace
}  // namespace sator::dataflow
