// The array as a tensor intrinsic: the program that calls it counts and computes as the one whose loops are bound.
#include "dataflow/cost/tensorized.h"

#include <gtest/gtest.h>

#include "dataflow/programs/matmul_program.h"
#include "schedule/schedule.h"
#include "schedule/tensor_intrin.h"
#include "shipped_chips.h"
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

const Program kPrograms[] = {
    {"gemm of a symbolic size",
     R"(
@T.prim_func
def f(var_A: T.handle, W: T.Buffer((48, 32), "int8"), var_C: T.handle):
    n = T.int64()
    A = T.match_buffer(var_A, (n, T.int64(32)), "int8")
    C = T.match_buffer(var_C, (n, T.int64(48)), "int32")
    for i, j, k in T.grid(n, T.int64(48), T.int64(32)):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.int32(0)
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", W[vj, vk])
)",
     {.name = "f", .sizes = {{"n", 24}}, .params = {{}, {OperandKind::weight}, {}}}},
    {"scores of attention: a batch, heads between rows and elements",
     R"(
@T.prim_func
def f(Q: T.Buffer((16, 3, 24), "float32"), K: T.Buffer((3, 32, 24), "float32"), S: T.Buffer((16, 3, 32), "float32")):
    for h, i, j, d in T.grid(3, 16, 32, 24):
        with T.block("scores"):
            vh, vi, vj, vd = T.axis.remap("SSSR", [h, i, j, d])
            with T.init():
                S[vi, vh, vj] = T.float32(0)
            S[vi, vh, vj] = S[vi, vh, vj] + Q[vi, vh, vd] * K[vh, vj, vd]
)",
     {.name = "f", .sizes = {}, .params = {{}, {OperandKind::kv}, {}}}},
};

Chip array_of(Stationary dataflow, int64_t rows, int64_t columns) {
  Chip chip = find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/edge_npu32.toml");
  chip.dataflow = dataflow;
  for (auto& of_class : chip.dataflow_of) of_class = dataflow;
  chip.rows = rows, chip.columns = columns;
  return chip;
}

std::string why_not(const std::variant<ScheduledFunction, Reason>& result) {
  const Reason* reason = std::get_if<Reason>(&result);
  return reason ? reason->what : "";
}

/// What the function leaves in its last parameter, from the same numbers each time.
std::vector<int32_t> result_of(const tir::PrimFuncRef& func, const std::map<std::string, int64_t>& sizes) {
  std::vector<std::vector<int32_t>> memory;
  std::vector<tir::Argument> args;
  for (const VarRef& param : func->params) {
    const BufferRef buffer = func->buffer_of(param);
    std::vector<int64_t> shape;
    size_t elements = 1;
    for (const Expr& e : buffer->shape) {
      const Var* var = e.as<Var>();
      shape.push_back(var ? sizes.at(var->name) : *as_int(e));
      elements *= static_cast<size_t>(shape.back());
    }
    std::vector<int32_t>& data = memory.emplace_back(elements);
    for (size_t n = 0; n < elements; ++n) {
      if (buffer->dtype.bits == 8)
        reinterpret_cast<int8_t*>(data.data())[n] = static_cast<int8_t>(n * 37 % 251);
      else if (buffer->dtype.is_float())
        reinterpret_cast<float*>(data.data())[n] = static_cast<float>(n * 37 % 251) / 16 - 7;
    }
    args.push_back(tir::ArrayView{data.data(), buffer->dtype, shape, {}});
  }
  tir::Interpreter(func).run(args);
  return memory.back();
}

class EveryArray : public testing::TestWithParam<Stationary> {};

TEST_P(EveryArray, CountsAndComputesAsTheBoundProgram) {
  for (const Program& p : kPrograms) {
    SCOPED_TRACE(p.name);
    const Chip chip = array_of(GetParam(), 8, 8);
    CostEngine engine(chip);
    const tir::PrimFuncRef plain = tir::parse_function(p.text);
    const KernelCost cost = engine.cost(work_of(*plain, p.facts, &chip).kernel);
    const auto result = tensorize_as_costed(plain, p.facts, cost, chip);
    ASSERT_EQ(why_not(result), "");
    const auto& called = std::get<ScheduledFunction>(result);
    EXPECT_NE(called.trace.find("sch.tensorize("), std::string::npos) << called.trace;
    rules::ArrayNest nest = on_whole_array(*cost.statements[0].placement->nest, chip.rows, chip.columns);
    nest.weight = cost.statements[0].work.statement.accesses[*cost.statements[0].placement->weight].tensor;
    schedule::Schedule bound(plain, "f");
    bound.work_on("f");
    rules::schedule_on_array(bound, cost.statements[0].name, nest);
    auto read = [&](const tir::PrimFuncRef& func) {
      const TirWork work = work_of(*func, p.facts, &chip);
      EXPECT_EQ(work.placements.size(), 1U);
      EXPECT_TRUE(work.placements[0]);
      return engine.cost(work.kernel, work.placements);
    };
    const KernelCost of_called = read(called.func);
    EXPECT_EQ(of_called.statements[0].counts->space, 64) << "all PEs work";
    EXPECT_EQ(difference(read(bound.func()), of_called), "") << tir::to_script(*called.func);
    EXPECT_EQ(result_of(plain, p.facts.sizes), result_of(called.func, p.facts.sizes)) << called.trace;
  }
}

const char* const kRaggedGemm = R"(
@T.prim_func
def f(var_A: T.handle, var_W: T.handle, b: T.Buffer((1,), "int32"), var_C: T.handle):
    n = T.int64()
    m = T.int64()
    l = T.int64()
    A = T.match_buffer(var_A, (n, l), "int8")
    W = T.match_buffer(var_W, (m, l), "int8")
    C = T.match_buffer(var_C, (n, m), "int32")
    S = T.alloc_buffer((n, m), "int32")
    for i, j, k in T.grid(n, m, l):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                S[vi, vj] = T.int32(0)
            S[vi, vj] = S[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", W[vj, vk])
    for i, j in T.grid(n, m):
        with T.block("bias"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = S[vi, vj] + b[0]
)";

const char* const kRaggedAttention = R"(
@T.prim_func
def f(Q: T.Buffer((1, 3, 20), "float32"), K: T.Buffer((3, 27, 20), "float32"), V: T.Buffer((3, 27, 20), "float32"), O: T.Buffer((1, 3, 20), "float32")):
    S = T.alloc_buffer((1, 3, 27))
    E = T.alloc_buffer((1, 3, 27))
    for h, i, j, d in T.grid(3, 1, 27, 20):
        with T.block("scores"):
            vh, vi, vj, vd = T.axis.remap("SSSR", [h, i, j, d])
            with T.init():
                S[vi, vh, vj] = T.float32(0)
            S[vi, vh, vj] = S[vi, vh, vj] + Q[vi, vh, vd] * K[vh, vj, vd]
    for h, i, j in T.grid(3, 1, 27):
        with T.block("exponentials"):
            vh, vi, vj = T.axis.remap("SSS", [h, i, j])
            E[vi, vh, vj] = T.exp(S[vi, vh, vj] * T.float32(0.001))
    for h, i, d, j in T.grid(3, 1, 20, 27):
        with T.block("values"):
            vh, vi, vd, vj = T.axis.remap("SSSR", [h, i, d, j])
            with T.init():
                O[vi, vh, vd] = T.float32(0)
            O[vi, vh, vd] = O[vi, vh, vd] + E[vi, vh, vj] * V[vh, vj, vd]
)";

int64_t whole_tiles(int64_t n, int64_t tile) { return (n + tile - 1) / tile * tile; }

// An instruction of the array has one shape: what is no whole tile is filled up with zeros. The array then does what it does
// for the larger product, bound loop by loop; the program computes what it did.
TEST_P(EveryArray, ARaggedProductIsPaddedToWholeTiles) {
  const Chip chip = array_of(GetParam(), 8, 8);
  CostEngine engine(chip);
  const tir::PrimFuncRef plain = tir::parse_function(kRaggedGemm);
  FunctionFacts facts{
      .name = "f", .sizes = {{"n", 21}, {"m", 50}, {"l", 30}}, .params = {{}, {OperandKind::weight}, {}, {}}};
  const KernelCost cost = engine.cost(work_of(*plain, facts, &chip).kernel);
  const auto result = tensorize_as_costed(plain, facts, cost, chip);
  ASSERT_EQ(why_not(result), "");
  const auto& called = std::get<ScheduledFunction>(result);
  ASSERT_EQ(called.padded.size(), 1U);
  EXPECT_NE(called.trace.find("sch.pad_einsum("), std::string::npos) << called.trace;
  EXPECT_EQ(result_of(plain, facts.sizes), result_of(called.func, facts.sizes)) << called.trace;

  // The larger product, under the same nest. Loops 0, 1, 2 are i, j, k.
  rules::ArrayNest nest = on_whole_array(*cost.statements[0].placement->nest, chip.rows, chip.columns);
  nest.weight = cost.statements[0].work.statement.accesses[*cost.statements[0].placement->weight].tensor;
  FunctionFacts larger = facts;
  const char* const sizes[] = {"n", "m", "l"};
  for (const auto* axis : {&nest.rows, &nest.columns})
    for (const auto& side : *axis) {
      int64_t& size = larger.sizes.at(sizes[side.loop]);
      size = whole_tiles(size, side.values * side.at_once);
    }
  EXPECT_NE(larger.sizes, facts.sizes);
  schedule::Schedule bound(plain, "f");
  bound.work_on("f");
  rules::schedule_on_array(bound, cost.statements[0].name, nest);
  auto product = [&](const tir::PrimFuncRef& func, const FunctionFacts& at) {
    const TirWork work = work_of(*func, at, &chip);
    return engine.cost(work.kernel, work.placements).statements.at(0);
  };
  const StatementCost padded = product(called.func, facts), whole = product(bound.func(), larger);
  EXPECT_EQ(padded.macs, larger.sizes.at("n") * larger.sizes.at("m") * larger.sizes.at("l"));
  EXPECT_EQ(padded.macs, whole.macs);
  // Outside of the chip lie the tensors as they are, each of which is moved once.
  const TirWork again = work_of(*called.func, facts, &chip);
  const MemoryCost outside = engine.cost(again.kernel, again.placements).memories.at(0);
  EXPECT_EQ(outside.read_bytes, 21 * 30 + 50 * 30 + 4);
  EXPECT_EQ(outside.write_bytes, 21 * 50 * 4);
  EXPECT_EQ(padded.array_cycles(), whole.array_cycles());
  EXPECT_EQ(padded.counts->space, 64);
  ASSERT_EQ(padded.counts->tensors.size(), whole.counts->tensors.size());
  for (size_t t = 0; t < whole.counts->tensors.size(); ++t) {
    EXPECT_EQ(padded.counts->tensors[t].unique, whole.counts->tensors[t].unique);
    EXPECT_EQ(padded.counts->tensors[t].footprint, whole.counts->tensors[t].footprint);
  }
}

TEST_P(EveryArray, AttentionOfAnyContextIsPadded) {
  const Chip chip = array_of(GetParam(), 8, 8);
  CostEngine engine(chip);
  const FunctionFacts facts{.name = "f", .sizes = {}, .params = {{}, {OperandKind::kv}, {OperandKind::kv}, {}}};
  const tir::PrimFuncRef plain = tir::parse_function(kRaggedAttention);
  const KernelCost cost = engine.cost(work_of(*plain, facts, &chip).kernel);
  EXPECT_EQ(cost.macs, 2 * 3 * 27 * 20);
  const auto result = tensorize_as_costed(plain, facts, cost, chip);
  ASSERT_EQ(why_not(result), "");
  const auto& called = std::get<ScheduledFunction>(result);
  EXPECT_EQ(called.padded.size(), 2U);
  const TirWork again = work_of(*called.func, facts, &chip);
  const KernelCost padded = engine.cost(again.kernel, again.placements);
  EXPECT_GT(padded.macs, cost.macs);
  EXPECT_EQ(padded.macs % 64, 0) << "whole stamps of 64 PEs";
  EXPECT_EQ(padded.memories.at(0).read_bytes, 4 * (3 * 20 + 2 * 3 * 27 * 20));
  EXPECT_EQ(padded.memories.at(0).write_bytes, 4 * 3 * 20);
  // Zeros are added to sums of floats: the bits stay.
  EXPECT_EQ(result_of(plain, {}), result_of(called.func, {})) << called.trace;
}

INSTANTIATE_TEST_SUITE_P(Stationarities, EveryArray,
                         testing::Values(Stationary::output, Stationary::weight, Stationary::input));

// The instruction is called by a mapping of the engine's own.
TEST(Tensorized, WhatIsNoNestIsRefused) {
  const FunctionFacts facts{.name = "f", .sizes = {{"n", 24}}, .params = {{}, {OperandKind::weight}, {}}};
  const tir::PrimFuncRef plain = tir::parse_function(kPrograms[0].text);
  auto refusal = [&](const Chip& chip) {
    const KernelCost cost = CostEngine(chip).cost(work_of(*plain, facts, &chip).kernel);
    return why_not(tensorize_as_costed(plain, facts, cost, chip));
  };
  EXPECT_EQ(refusal(find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/tenet-8x8.toml")),
            "product matmul of f is not tensorized: its mapping is that of TENET's files");
}

// Cores have whole tiles each. What all of them do computes and counts as the same nest of bound loops; of ragged products,
// whose last core has less, as that of the larger product.
TEST_P(EveryArray, CoresShareWholeTiles) {
  for (const int64_t cores : {2, 3, 5})
    for (const std::vector<int64_t>& size : {std::vector<int64_t>{24, 48, 32}, {21, 50, 30}, {1, 100, 40}, {9, 9, 9}}) {
      SCOPED_TRACE(testing::Message() << cores << " cores, " << size[0] << " x " << size[1] << " x " << size[2]);
      Chip chip = array_of(GetParam(), 8, 8);
      chip.cores = cores;
      CostEngine engine(chip);
      const tir::PrimFuncRef plain = tir::parse_function(kRaggedGemm);
      const FunctionFacts facts{.name = "f",
                                .sizes = {{"n", size[0]}, {"m", size[1]}, {"l", size[2]}},
                                .params = {{}, {OperandKind::weight}, {}, {}}};
      const KernelCost cost = engine.cost(work_of(*plain, facts, &chip).kernel);
      const auto result = tensorize_as_costed(plain, facts, cost, chip);
      ASSERT_EQ(why_not(result), "");
      const auto& called = std::get<ScheduledFunction>(result);
      EXPECT_EQ(result_of(plain, facts.sizes), result_of(called.func, facts.sizes)) << called.trace;

      rules::ArrayNest nest = share_whole_tiles(
          on_whole_array(
              on_both_axes(*cost.statements[0].placement->nest, cost.statements[0], chip), chip.rows, chip.columns),
          cost.statements[0],
          chip);
      nest.weight = cost.statements[0].work.statement.accesses[*cost.statements[0].placement->weight].tensor;
      FunctionFacts larger = facts;
      const char* const sizes[] = {"n", "m", "l"};
      for (const auto* axis : {&nest.rows, &nest.columns})
        for (const auto& side : *axis) {
          int64_t& extent = larger.sizes.at(sizes[side.loop]);
          extent = whole_tiles(extent, side.values * side.at_once);
        }
      int64_t at_work = 1;
      for (const rules::ArrayNest::Share& share : nest.cores) at_work *= share.parts;
      EXPECT_LE(at_work, cores);
      schedule::Schedule bound(plain, "f");
      bound.work_on("f");
      rules::schedule_on_array(bound, cost.statements[0].name, nest);
      auto product = [&](const tir::PrimFuncRef& func, const FunctionFacts& at) {
        const TirWork work = work_of(*func, at, &chip);
        return engine.cost(work.kernel, work.placements).statements.at(0);
      };
      const StatementCost padded = product(called.func, facts), whole = product(bound.func(), larger);
      EXPECT_EQ(padded.placement->cores_used, at_work);
      EXPECT_EQ(padded.macs, larger.sizes.at("n") * larger.sizes.at("m") * larger.sizes.at("l"));
      EXPECT_EQ(padded.array_cycles(), whole.array_cycles());
      EXPECT_EQ(padded.counts->space, 64 * at_work);
      for (size_t t = 0; t < whole.counts->tensors.size(); ++t)
        EXPECT_EQ(padded.counts->tensors.at(t).unique, whole.counts->tensors[t].unique);
    }
}

// One matmul by the three routes: the chip's own estimate with these tiles, loops bound as it says, and calls of the array.
// Where tiles are whole, all MACs, bytes and cycles are the same.
TEST(Tensorized, EveryPresetWithCoresCountsAsItsEstimate) {
  size_t chips = 0;
  for (const std::string& name : all_chips()) {
    Chip chip = shipped(name);
    if (chip.cores == 1) continue;
    SCOPED_TRACE(name);
    ++chips;
    // Two tiles of outputs for each core, 32 of what streams past the array. Weight buffers of groq_lpu_like hold one tile for each.
    const int64_t turns = name == "groq_lpu_like" ? 1 : 2, side = std::max(chip.rows, chip.columns);
    const int64_t rows = turns == 1 ? 32 : side, columns = turns * chip.cores * side, sums = turns * side;
    chip.tile = {side, side, side};
    if (turns > 1) chip.tile->at(chip.dataflow_for(ProductClass::gemm) == Stationary::output ? 2 : 0) = 32;
    const Matmul matmul{.i = rows, .j = columns, .k = sums};
    CostEngine engine(chip);
    const KernelCost estimate = engine.cost(matmul_kernel(matmul));
    ASSERT_EQ(estimate.statements[0].placement->cores_used, chip.cores);
    const tir::PrimFuncRef plain = tir::parse_function(matmul_program(matmul));
    const FunctionFacts facts = facts_of(matmul);
    const auto read = [&](const tir::PrimFuncRef& func) {
      const TirWork work = work_of(*func, facts, &chip);
      return engine.cost(work.kernel, work.placements);
    };
    const KernelCost bound =
        read(schedule_as_costed(plain, "matmul", engine.cost(work_of(*plain, facts, &chip).kernel)).func);
    const auto result = tensorize_as_costed(plain, facts, engine.cost(work_of(*plain, facts, &chip).kernel), chip);
    ASSERT_EQ(why_not(result), "");
    const auto& called = std::get<ScheduledFunction>(result);
    EXPECT_TRUE(called.padded.empty());
    const KernelCost tensorized = read(called.func);
    EXPECT_EQ(tensorized.macs, rows * columns * sums);
    EXPECT_EQ(difference(estimate, tensorized), "");
    EXPECT_EQ(difference(bound, tensorized), "");
  }
  EXPECT_GE(chips, 7U);
}

// One row and 250 columns, 36 of them for each of 7 cores: tiles have 8 columns and 8 rows, 32 of them, so a core has 5. Where
// outputs stay, a core turns to its next tile outside of the sum.
TEST(Tensorized, TilesAreDealtOutToCoresAnew) {
  const tir::PrimFuncRef plain = tir::parse_function(kRaggedGemm);
  const FunctionFacts facts{
      .name = "f", .sizes = {{"n", 1}, {"m", 250}, {"l", 64}}, .params = {{}, {OperandKind::weight}, {}, {}}};
  Chip chip = array_of(Stationary::output, 8, 8);
  chip.cores = 7;
  const StatementCost product = CostEngine(chip).cost(work_of(*plain, facts, &chip).kernel).statements.at(0);
  const rules::ArrayNest nest = share_whole_tiles({.cores = {{.loop = 1, .block = 36, .parts = 7}},
                                                   .time = {{.loop = 2, .block = 1}},
                                                   .rows = {{.loop = 0, .values = 8}},
                                                   .columns = {{.loop = 1, .values = 8}},
                                                   .held_since = {0, 1, 0, 1}},
                                                  product,
                                                  chip);
  ASSERT_EQ(nest.cores.size(), 1U);
  EXPECT_EQ(nest.cores[0].loop, 1U);
  EXPECT_EQ(nest.cores[0].block, 40);
  EXPECT_EQ(nest.cores[0].parts, 7);
  ASSERT_EQ(nest.time.size(), 2U);
  EXPECT_EQ(nest.time[0].loop, 1U);
  EXPECT_EQ(nest.time[0].block, 8);
  EXPECT_EQ(nest.time[1].loop, 2U);
  EXPECT_EQ(nest.held_since, (std::vector<int64_t>{0, 2, 0, 2}))
      << "what a turn of the sum brought is what it brings now";
}

// Three queries share a key: the head's index stays, the positions and elements are padded.
TEST_P(EveryArray, AttentionWithSharedKeysIsPadded) {
  const Chip chip = array_of(GetParam(), 8, 8);
  std::string shared = kRaggedAttention;
  for (const auto& [from, to] : {std::pair{"K: T.Buffer((3,", "K: T.Buffer((1,"}, std::pair{"K[vh,", "K[vh // 3,"}})
    shared.replace(shared.find(from), std::string(from).size(), to);
  const tir::PrimFuncRef plain = tir::parse_function(shared);
  const FunctionFacts facts{.name = "f", .sizes = {}, .params = {{}, {OperandKind::kv}, {OperandKind::kv}, {}}};
  CostEngine engine(chip);
  const auto result = tensorize_as_costed(plain, facts, engine.cost(work_of(*plain, facts, &chip).kernel), chip);
  ASSERT_EQ(why_not(result), "");
  const auto& called = std::get<ScheduledFunction>(result);
  const TirWork again = work_of(*called.func, facts, &chip);
  EXPECT_EQ(engine.cost(again.kernel, again.placements).macs % 64, 0);
  EXPECT_EQ(result_of(plain, {}), result_of(called.func, {})) << called.trace;
}

// Part of an array becomes all of it: blocks in time grow to whole tiles, one loop per axis stays, the others take turns.
TEST(Tensorized, ANestGrowsToTheWholeArray) {
  const rules::ArrayNest part{.time = {{.loop = 2, .block = 24}, {.loop = 1, .block = 4}, {.loop = 2, .block = 8}},
                              .rows = {{.loop = 2, .values = 8}},
                              .columns = {{.loop = 1, .values = 4}, {.loop = 0, .values = 2}}};
  const rules::ArrayNest whole = on_whole_array(part, 16, 32);
  ASSERT_EQ(whole.rows.size(), 1U);
  ASSERT_EQ(whole.columns.size(), 1U);
  EXPECT_EQ(whole.rows[0].values, 16);
  EXPECT_EQ(whole.columns[0].loop, 1U);
  EXPECT_EQ(whole.columns[0].values, 32);
  std::vector<std::pair<size_t, int64_t>> time;
  for (const auto& turn : whole.time) time.emplace_back(turn.loop, turn.block);
  EXPECT_EQ(time, (std::vector<std::pair<size_t, int64_t>>{{2, 32}, {1, 32}, {2, 16}, {0, 1}}));
}

}  // namespace
}  // namespace sator::dataflow
