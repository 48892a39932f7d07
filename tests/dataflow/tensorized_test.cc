// The array as a tensor intrinsic: the program that calls it counts and computes as the one whose loops are bound.
#include "dataflow/tensorized.h"

#include <gtest/gtest.h>

#include "schedule/schedule.h"
#include "schedule/tensor_intrin.h"
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

INSTANTIATE_TEST_SUITE_P(Stationarities, EveryArray,
                         testing::Values(Stationary::output, Stationary::weight, Stationary::input));

// An instruction of the array has one shape: whole tiles only, on all of its rows and columns.
TEST(Tensorized, WhatIsNoWholeTileIsRefused) {
  auto refusal = [](const char* name, std::string program, int64_t n, Stationary dataflow) {
    SCOPED_TRACE(name);
    const Chip chip = array_of(dataflow, 8, 8);
    const FunctionFacts facts{.name = "f", .sizes = {{"n", n}}, .params = {{}, {OperandKind::weight}, {}}};
    const tir::PrimFuncRef plain = tir::parse_function(program);
    const KernelCost cost = CostEngine(chip).cost(work_of(*plain, facts, &chip).kernel);
    return why_not(tensorize_as_costed(plain, facts, cost, chip));
  };
  std::string ragged = kPrograms[0].text;
  for (size_t at; (at = ragged.find("48")) != std::string::npos;) ragged.replace(at, 2, "50");
  EXPECT_EQ(refusal("50 outputs", ragged, 24, Stationary::weight),
            "product matmul of f is not tensorized: its 50 outputs along an axis are no whole number of tiles of 8");
  EXPECT_EQ(refusal("3 rows stay, of 8", kPrograms[0].text, 3, Stationary::output),
            "product matmul of f is not tensorized: its 3 outputs along an axis are no whole number of tiles of 8");
  EXPECT_EQ(refusal("one row", kPrograms[0].text, 1, Stationary::weight), "");  // rows stream: any number fits
}

// One core calls the instruction, by a mapping of the engine's own.
TEST(Tensorized, WhatIsNoNestOfOneCoreIsRefused) {
  const FunctionFacts facts{.name = "f", .sizes = {{"n", 24}}, .params = {{}, {OperandKind::weight}, {}}};
  const tir::PrimFuncRef plain = tir::parse_function(kPrograms[0].text);
  auto refusal = [&](const Chip& chip) {
    const KernelCost cost = CostEngine(chip).cost(work_of(*plain, facts, &chip).kernel);
    return why_not(tensorize_as_costed(plain, facts, cost, chip));
  };
  Chip chip = array_of(Stationary::weight, 8, 8);
  chip.cores = 2;
  EXPECT_EQ(refusal(chip), "product matmul of f is not tensorized: its mapping cuts it among 2 cores");
  EXPECT_EQ(refusal(find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/tenet-8x8.toml")),
            "product matmul of f is not tensorized: its mapping is that of TENET's files");
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
