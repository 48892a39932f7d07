// The latency of a kernel from what its resources take: worked by hand, and held between its bounds on random kernels.
#include "dataflow/cost/latency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/text.h"
#include "dataflow/counts/gemm.h"

namespace sator::dataflow {
namespace {

struct Described {
  double dram = 4, lanes = 16;  // bytes per cycle, operations per cycle
  bool double_buffered = true, overlaps = true;
  int64_t launch = 0;
  const char* dataflow = "os";
};

/// 4 x 4 PEs without skew, one MAC per cycle; a memory that holds everything and never binds.
Chip chip_of(const Described& d) {
  return parse_chip(text(R"(
name = "toy"
description = "a toy"
source = "by hand"
node_nm = 7
clock_hz = 1_000_000_000
launch_cycles = )",
                         d.launch,
                         "\n[array]\nrows = 4\ncolumns = 4\ninterconnect = \"multicast\"\ndataflow = \"",
                         d.dataflow,
                         R"("
[[precision]]
weight_bits = 8
activation_bits = 8
accumulator_bits = 32
macs_per_pe_per_cycle = 1
energy_pj_per_mac = 0.1
energy_source = "by hand"
[[memory]]
name = "dram"
bytes_per_cycle = )",
                         d.dram,
                         R"(
energy_pj_per_bit = 1
energy_source = "by hand"
[[memory]]
name = "sram"
capacity_bytes = 1_000_000
bytes_per_cycle = 100_000
double_buffered = )",
                         d.double_buffered ? "true" : "false",
                         R"(
energy_pj_per_bit = 1
energy_source = "by hand"
[pe]
capacity_bytes = 8
energy_pj_per_bit = 0.1
energy_source = "by hand"
[vector]
lanes = )",
                         static_cast<int64_t>(d.lanes),
                         R"(
ops_per_lane_per_cycle = 1
does = ["elementwise", "reduce", "dequantize", "rescale", "quantize"]
overlaps_array = )",
                         d.overlaps ? "true" : "false",
                         R"(
energy_pj_per_op = 0.1
energy_source = "by hand"
)"),
                    "toy.toml");
}

/// C[i,j] = sum over k of A[i,k] B[k,j] in 8 bits, then D[i,j] in 8 bits from each sum with two operations.
Kernel product_and_rescale(int64_t i, int64_t j, int64_t k) {
  Work product{.statement = gemm(i, j, k),
               .operands = {{.bits = 8}, {.bits = 8, .kind = OperandKind::weight}, {.bits = 32, .internal = true}},
               .multiply_accumulate = true};
  Work rescale{.statement = {}, .operands = {}, .vector_ops = 2, .vector_work = VectorWork::rescale};
  rescale.statement.name = "rescale";
  rescale.statement.domain = Domain::box({"m", "n"}, {i, j});
  rescale.statement.accesses = {{"C", Role::read, {{variable(0), variable(1)}}},
                                {"D", Role::write, {{variable(0), variable(1)}}}};
  rescale.operands = {{.bits = 32, .internal = true}, {.bits = 8}};
  return {"product_and_rescale", {product, rescale}};
}

int64_t cycles_of(const KernelCost& c, const std::string& name) {
  for (const ResourceCost& r : c.resources)
    if (r.name == name) return r.cycles;
  ADD_FAILURE() << "no resource " << name;
  return 0;
}

/// Tiles of 4 x 4 outputs, one after the other; each is summed up before the next.
std::vector<std::optional<Placement>> tile_by_tile() {
  Placement p;
  const QuasiAffine i = variable(0), j = variable(1), k = variable(2);
  p.mapping = {{mod(i, 4), mod(j, 4)}, {floor_div(i, 4), floor_div(j, 4), k}};
  p.held_since = {0, 0};
  return {p};
}

/// 4 x 16 outputs over 8: four tiles of 4 x 4 outputs, each in 8 stamps, so the array takes 32 cycles. A has 32 bytes, B
/// 128, D 64: 224 bytes outside. The vector unit does 128 operations.
const Kernel kFourTiles = product_and_rescale(4, 16, 8);

TEST(Latency, WhereMemoryBindsTheLastTileFollows) {
  KernelCost c = CostEngine(chip_of({})).cost(kFourTiles, tile_by_tile());
  EXPECT_EQ(cycles_of(c, "array"), 32);
  EXPECT_EQ(cycles_of(c, "vector"), 8);
  EXPECT_EQ(cycles_of(c, "dram"), 56);
  EXPECT_EQ(c.bound, "dram");
  // When the last of 224 bytes has come, the array does its last tile, and the vector unit a quarter of its work.
  EXPECT_EQ(c.latency_cycles, 56 + 8 + 2);
}

TEST(Latency, WhereTheArrayBindsFirstOperandsAndLastOutputsStandBeside) {
  KernelCost c = CostEngine(chip_of({.dram = 16})).cost(kFourTiles, tile_by_tile());
  EXPECT_EQ(c.bound, "array");
  // The first tile needs A and a quarter of B, 64 bytes: 4 cycles; the last makes a quarter of D, 16 bytes: 1 cycle; and 2
  // of the vector unit's 8.
  EXPECT_EQ(c.latency_cycles, 32 + 4 + 1 + 2);
}

TEST(Latency, WhereTheVectorUnitBindsTheFirstTileStandsBefore) {
  KernelCost c = CostEngine(chip_of({.dram = 16, .lanes = 1})).cost(kFourTiles, tile_by_tile());
  EXPECT_EQ(c.bound, "vector");
  EXPECT_EQ(c.latency_cycles, 128 + 8 + 4 + 1);
}

TEST(Latency, OneTileTakesTheSum) {
  // 4 x 4 outputs over 8: one tile of 8 stamps. 32 + 32 + 16 bytes at 4: 20 cycles. 32 operations on 16 lanes: 2.
  KernelCost c = CostEngine(chip_of({.launch = 100})).cost(product_and_rescale(4, 4, 8), tile_by_tile());
  EXPECT_EQ(cycles_of(c, "array"), 8);
  EXPECT_EQ(c.latency_cycles, 8 + 20 + 2 + 100);
}

TEST(Latency, WhereTheLaunchTakesLongestItBinds) {
  EXPECT_EQ(CostEngine(chip_of({.launch = 57})).cost(kFourTiles, tile_by_tile()).bound, "launch");
  EXPECT_EQ(CostEngine(chip_of({.launch = 56})).cost(kFourTiles, tile_by_tile()).bound, "dram");  // 56 cycles
}

TEST(Latency, ManyTilesTakeTheLongest) {
  // 1024 tiles: 8192 cycles of the array; of the others a thousandth remains.
  KernelCost c = CostEngine(chip_of({.dram = 64})).cost(product_and_rescale(4, 4096, 8), tile_by_tile());
  EXPECT_EQ(c.bound, "array");
  EXPECT_GE(c.latency_cycles, 8192);
  EXPECT_LE(c.latency_cycles, 8192 + 8);
}

TEST(Latency, WithoutDoubleBufferingTransfersStandBesideWork) {
  KernelCost c = CostEngine(chip_of({.double_buffered = false})).cost(kFourTiles, tile_by_tile());
  // All 224 bytes move while neither array nor vector unit works on what the memory holds.
  EXPECT_EQ(c.latency_cycles, 56 + 32 + 2);
}

TEST(Latency, AVectorUnitThatDoesNotOverlapStandsBeside) {
  KernelCost c = CostEngine(chip_of({.dram = 16, .overlaps = false})).cost(kFourTiles, tile_by_tile());
  EXPECT_EQ(c.latency_cycles, 32 + 4 + 1 + 8);
}

/// Sums of half of k for all four tiles, then the other half: the first output is complete after five of eight folds.
TEST(Latency, OutputsThatAreFinishedLateLeaveTheVectorUnitTheRest) {
  Placement twice;
  const QuasiAffine i = variable(0), j = variable(1), k = variable(2);
  twice.mapping = {{mod(i, 4), mod(j, 4)}, {floor_div(k, 4), floor_div(j, 4), mod(k, 4)}};
  twice.held_since = {0, 0};
  for (auto [lanes, rest] : {std::pair<double, int64_t>{16, 2},  // a quarter of 8 cycles
                             {8, 4},                             // of 16: a quarter, and also 16 - 3/8 * 32
                             {4, 20}}) {                         // of 32: 20 remain when the array is done
    KernelCost c = CostEngine(chip_of({.dram = 1000, .lanes = lanes})).cost(kFourTiles, {twice});
    EXPECT_EQ(c.statements[0].folds, 8);
    EXPECT_EQ(c.statements[0].folds_until_output, 5);
    EXPECT_EQ(cycles_of(c, "array"), 32);
    // One cycle for the first operands and the last outputs.
    EXPECT_EQ(c.latency_cycles, 32 + rest + 1) << lanes;
  }
}

// A row of softmax needs all of its scores, whatever tiles the array makes them in.
TEST(Latency, WhatIsComparedIsNeededTogether) {
  Kernel kernel = product_and_rescale(8, 16, 8);
  Work& largest = kernel.work[1];
  largest.vector_work = VectorWork::reduce;
  largest.statement.accesses[1] = {"D", Role::write, {{variable(0)}}};  // D[m] = max over n
  KernelCost c = CostEngine(chip_of({})).cost(kernel, tile_by_tile());
  const StatementCost& product = c.statements[0];
  ASSERT_TRUE(product.on_array());
  EXPECT_EQ(product.folds, 8);                           // 2 x 4 tiles
  EXPECT_EQ(product.parts[product.product->output], 2);  // of which four make a row of tiles
  EXPECT_EQ(c.statements[1].vector_parts, 2);
}

// Rows of a norm are independent, its columns are not: 8 rows of 4 numbers.
TEST(Latency, RowsOfAKernelWithoutProductsFollowEachOther) {
  Work sum{.statement = {}, .operands = {}, .vector_ops = 1, .vector_work = VectorWork::reduce};
  sum.statement.domain = Domain::box({"r", "c"}, {8, 4});
  sum.statement.accesses = {{"X", Role::read, {{variable(0), variable(1)}}}, {"s", Role::write, {{variable(0)}}}};
  sum.operands = {{.bits = 32}, {.bits = 32, .internal = true}};
  Work scale{.statement = {}, .operands = {}, .vector_ops = 1};
  scale.statement.domain = sum.statement.domain;
  scale.statement.accesses = {{"X", Role::read, {{variable(0), variable(1)}}},
                              {"s", Role::read, {{variable(0)}}},
                              {"Y", Role::write, {{variable(0), variable(1)}}}};
  scale.operands = {{.bits = 32}, {.bits = 32, .internal = true}, {.bits = 32}};
  KernelCost c = CostEngine(chip_of({.lanes = 4})).cost({"norm", {sum, scale}});
  EXPECT_EQ(cycles_of(c, "vector"), 16);
  EXPECT_EQ(cycles_of(c, "dram"), 64);  // 128 bytes in, 128 out
  EXPECT_EQ(c.latency_cycles, 64 + 2);  // the last of eight rows
}

// Whatever the kernel and the order of its loops: as long as each resource, and no longer than one after the other.
TEST(Latency, LiesBetweenTheLongestAndTheSum) {
  std::mt19937 random(20);
  auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int round = 0; round < 400; ++round) {
    const int64_t i = draw(1, 40), j = draw(1, 40), k = draw(1, 40);
    Kernel kernel = product_and_rescale(i, j, k);
    if (draw(0, 1)) kernel.work.pop_back();
    const char* const dataflows[] = {"os", "ws", "is"};
    const Chip chip = chip_of({.dram = static_cast<double>(draw(1, 64)),
                               .lanes = static_cast<double>(draw(1, 64)),
                               .double_buffered = draw(0, 3) > 0,
                               .overlaps = draw(0, 3) > 0,
                               .launch = draw(0, 5),
                               .dataflow = dataflows[draw(0, 2)]});
    std::vector<std::optional<Placement>> placements;
    if (draw(0, 1)) {
      // Two iterators on the array; the others, and what is left of these, in any order.
      Placement p;
      const int row = static_cast<int>(draw(0, 2)), column = (row + static_cast<int>(draw(1, 2))) % 3;
      p.mapping.space = {mod(variable(row), 4), mod(variable(column), 4)};
      p.mapping.time = {floor_div(variable(row), 4), floor_div(variable(column), 4), variable(3 - row - column)};
      std::shuffle(p.mapping.time.begin(), p.mapping.time.end(), random);
      p.held_since = {0, static_cast<size_t>(draw(0, 3))};
      placements.push_back(p);
    }
    const KernelCost c = CostEngine(chip).cost(kernel, placements);
    int64_t sum = chip.launch_cycles, parts = 0;
    for (const ResourceCost& r : c.resources) {
      EXPECT_GE(c.latency_cycles, r.cycles) << r.name;
      sum += r.cycles;
    }
    for (const CyclePart& p : c.latency_parts) parts += p.cycles;
    // A transfer that is taken out of its memory's time is rounded up by itself.
    EXPECT_LE(c.latency_cycles, sum + (chip.memories[1].double_buffered ? 0 : 2)) << i << " " << j << " " << k;
    EXPECT_EQ(parts, c.latency_cycles);
  }
}

}  // namespace
}  // namespace sator::dataflow
