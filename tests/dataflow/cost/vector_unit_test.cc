// What the vector unit reads and writes beside the array: elements that one statement hands to the next stay in registers.
#include <gtest/gtest.h>

#include "dataflow/cost/cost.h"
#include "dataflow/programs/pipeline.h"

namespace sator::dataflow {
namespace {

Chip chip() { return find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/edge_npu32.toml"); }  // 32 lanes
constexpr size_t kActivations = 1, kAccumulators = 3;

struct Moved {
  int64_t read = 0, written = 0;  // elements of 32 bits
};
Moved moved(const KernelCost& cost, size_t memory, const std::string& tensor) {
  Moved sum;
  for (const StatementCost& s : cost.statements)
    for (const Traffic& t : s.traffic)
      if (t.memory == memory && t.tensor == tensor) {
        sum.read += (t.read_bits - t.refill_out_bits) / 32;
        sum.written += (t.write_bits - t.refill_in_bits) / 32;
      }
  return sum;
}

struct Use {
  const char* tensor;
  Role role;
  Map at;
  bool internal = false;
};
Work statement(std::vector<int64_t> extents, std::vector<Use> uses, VectorWork what = VectorWork::elementwise) {
  Work work{.statement = {}, .operands = {}, .vector_ops = 1, .vector_work = what};
  std::vector<std::string> names;
  for (size_t x = 0; x < extents.size(); ++x) names.push_back(std::string(1, static_cast<char>('i' + x)));
  work.statement.domain = Domain::box(names, std::move(extents));
  for (Use& u : uses) {
    work.statement.accesses.push_back({u.tensor, u.role, {std::move(u.at)}});
    work.operands.push_back({.bits = 32, .is_float = true, .internal = u.internal});
  }
  return work;
}

const QuasiAffine i = variable(0), j = variable(1);

TEST(VectorUnit, AChainOfElementsStaysInRegisters) {
  const Work first = statement({6, 100}, {{"X", Role::read, {i, j}}, {"T", Role::write, {i, j}, true}});
  // A loop of one turn between is no other order.
  Work second =
      statement({6, 1, 100}, {{"T", Role::read, {i, variable(2)}, true}, {"Y", Role::write, {i, variable(2)}}});
  const KernelCost c = CostEngine(chip()).cost({"chain", {first, second}});
  EXPECT_EQ(moved(c, kActivations, "X").read, 600);
  EXPECT_EQ(moved(c, kActivations, "Y").written, 600);
  EXPECT_EQ(moved(c, kActivations, "T").read + moved(c, kActivations, "T").written, 0);
}

// Exponentials are summed up while they are made, but the division needs them when the sum is known: they are stored.
TEST(VectorUnit, WhatAReductionSeparatesIsStored) {
  const Work make = statement({6, 100}, {{"X", Role::read, {i, j}}, {"E", Role::write, {i, j}, true}}),
             sum = statement(
                 {6, 100}, {{"E", Role::read, {i, j}, true}, {"S", Role::write, {i}, true}}, VectorWork::reduce),
             divide = statement(
                 {6, 100}, {{"E", Role::read, {i, j}, true}, {"S", Role::read, {i}, true}, {"Y", Role::write, {i, j}}});
  const KernelCost c = CostEngine(chip()).cost({"softmax", {make, sum, divide}});
  EXPECT_EQ(moved(c, kActivations, "E").written, 600);
  EXPECT_EQ(moved(c, kActivations, "E").read, 600);    // once, by the division
  EXPECT_EQ(moved(c, kActivations, "S").written, 6);   // complete sums alone
  EXPECT_EQ(moved(c, kActivations, "S").read, 6 * 4);  // for each of the four turns of 32 lanes over 100 columns
}

// Another order of elements means that all of them are there first.
TEST(VectorUnit, ATransposedReaderNeedsTheStoredTensor) {
  const Work first = statement({64, 64}, {{"X", Role::read, {i, j}}, {"T", Role::write, {i, j}, true}}),
             second = statement({64, 64}, {{"T", Role::read, {j, i}, true}, {"Y", Role::write, {i, j}}});
  const KernelCost c = CostEngine(chip()).cost({"transpose", {first, second}});
  EXPECT_EQ(moved(c, kActivations, "T").written, 64 * 64);
  EXPECT_EQ(moved(c, kActivations, "T").read, 64 * 64);
}

// A scale per row is read once for all lanes of a turn; one per column once for all rows, for its lane keeps it.
TEST(VectorUnit, SharedOperandsAreReadOncePerTurnOrOnce) {
  const Work scaled = statement(
      {10, 96},
      {{"X", Role::read, {i, j}}, {"r", Role::read, {i}}, {"c", Role::read, {j}}, {"Y", Role::write, {i, j}}});
  const KernelCost c = CostEngine(chip()).cost({"scaled", {scaled}});
  EXPECT_EQ(moved(c, kActivations, "X").read, 960);
  EXPECT_EQ(moved(c, kActivations, "r").read, 10 * 3);
  EXPECT_EQ(moved(c, kActivations, "c").read, 96);
}

// Each statement takes what the two before it made: there are 2^40 ways from the first to the last, and 42 statements.
TEST(VectorUnit, ManyWaysThroughAKernelTakeNoTime) {
  std::vector<Work> chain;
  auto name = [](size_t n) { return n == 0 ? std::string("X") : "T" + std::to_string(n); };
  for (size_t n = 0; n < 42; ++n) {
    Work w = statement({6, 100}, {});
    for (size_t back : {size_t{0}, size_t{1}})
      if (n >= back && !(n == 0 && back == 1)) {
        w.statement.accesses.push_back({name(n - back), Role::read, {{i, j}}});
        w.operands.push_back({.bits = 32, .is_float = true, .internal = n > back});
      }
    w.statement.accesses.push_back({name(n + 1), Role::write, {{i, j}}});
    w.operands.push_back({.bits = 32, .is_float = true, .internal = n < 41});
    chain.push_back(std::move(w));
  }
  const KernelCost c = CostEngine(chip()).cost({"ways", chain});
  EXPECT_EQ(moved(c, kActivations, "X").read, 600);
  EXPECT_EQ(moved(c, kActivations, "T42").written, 600);
}

TEST(VectorUnit, SumsOfTheArrayAreReadWhereTheyLie) {
  Work product = statement(
      {8, 64, 32},
      {{"A", Role::read, {i, variable(2)}}, {"B", Role::read, {variable(2), j}}, {"C", Role::write, {i, j}, true}});
  product.multiply_accumulate = true;
  const Work after = statement({8, 64}, {{"C", Role::read, {i, j}, true}, {"Y", Role::write, {i, j}}});
  const KernelCost c = CostEngine(chip()).cost({"product", {product, after}});
  EXPECT_EQ(moved(c, kAccumulators, "C").read, 8 * 64);
  EXPECT_EQ(moved(c, kActivations, "C").read, 0);
}

// Weights that the vector unit makes are made as often as the array takes them in. Where that takes longest the mapper lets
// each in once.
TEST(VectorUnit, TheMapperCountsWhatIsMadeForTheArray) {
  Chip tpu = find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/tpuv1.toml");
  tpu.vector.lanes = 16;
  Work make{.statement = {}, .operands = {}, .vector_ops = 2, .vector_work = VectorWork::dequantize};
  make.statement.name = "dequantize";
  make.statement.domain = Domain::box({"n", "c"}, {1024, 256});
  make.statement.accesses = {{"Q", Role::read, {{i, j}}}, {"W", Role::write, {{i, j}}}};
  make.operands = {{.bits = 8, .kind = OperandKind::weight},
                   {.bits = 16, .is_float = true, .kind = OperandKind::weight, .internal = true}};
  Work product{.statement = {}, .operands = {}, .multiply_accumulate = true};
  product.statement.domain = Domain::box({"i", "j", "k"}, {128, 1024, 256});
  product.statement.accesses = {
      {"A", Role::read, {{i, variable(2)}}}, {"W", Role::read, {{j, variable(2)}}}, {"C", Role::write, {{i, j}}}};
  product.operands = {{.bits = 32, .is_float = true},
                      {.bits = 16, .is_float = true, .kind = OperandKind::weight, .internal = true},
                      {.bits = 32, .is_float = true}};
  const KernelCost c = CostEngine(tpu).cost({"dequantized", {make, product}});
  for (const StatementCost& s : c.statements)
    if (s.name == "dequantize") {
      EXPECT_EQ(s.vector_ops, 2 * 1024 * 256);  // each weight once
    }
}

}  // namespace
}  // namespace sator::dataflow
