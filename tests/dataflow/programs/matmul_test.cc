// One matmul as a kernel, and mappings of it by given tiles: traffic by the textbook's formula.
#include "dataflow/programs/matmul.h"
#include "base/error.h"
#include "dataflow/cost/cost.h"
#include "dataflow/cost/cost_table.h"
#include "dataflow/counts/gemm.h"
#include "shipped_chips.h"
#include "temp_folder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sator::dataflow {
namespace {

Chip with_tile(Chip chip, const std::array<int64_t, 3>& tile) {
  chip.tile = tile;
  return chip;
}

int64_t outside_bits(const KernelCost& c, const std::string& tensor) {
  int64_t bits = 0;
  for (const Traffic& t : c.outside)
    if (t.tensor == tensor) bits += t.read_bits + t.write_bits;
  return bits;
}

// Tiles of (i, j, k) around the array, i outermost: the inputs come once per tile of the columns, the weights once per tile of
// the rows, sums stay until they are complete.
TEST(Matmul, TilesMoveWhatTheFormulaSays) {
  for (Stationary dataflow : {Stationary::output, Stationary::weight, Stationary::input})
    for (auto [i, j, k] : {std::array<int64_t, 3>{128, 768, 512}, {100, 90, 70}, {33, 65, 129}}) {
      Chip chip = shipped("gemmini16");
      chip.dataflow = dataflow;
      const Matmul m{.i = i, .j = j, .k = k};
      const std::array<int64_t, 3> tile = {32, 48, 64};
      SCOPED_TRACE(testing::Message() << i << " " << j << " " << k << " dataflow " << static_cast<int>(dataflow));
      const KernelCost c = CostEngine(with_tile(chip, tile)).cost(matmul_kernel(m));
      EXPECT_EQ(c.macs, i * j * k);
      EXPECT_EQ(outside_bits(c, "X"), 16 * i * k * ceil_div(j, tile[1]));
      EXPECT_EQ(outside_bits(c, "W"), 16 * j * k * ceil_div(i, tile[0]));
      EXPECT_EQ(outside_bits(c, "Y"), 16 * i * j);
    }
}

// The loops within a tile: as many stamps as tiles of the array, times the streamed iterator.
TEST(Matmul, StampsAreThoseOfTheTiles) {
  Chip chip = shipped("gemmini16");
  chip.precisions = {{.weight_bits = 16, .activation_bits = 16, .accumulator_bits = 32, .is_float = true}};
  const Matmul m{.i = 96, .j = 80, .k = 64};
  const std::array<int64_t, 3> tile = {48, 40, 32};
  struct Row {
    Stationary dataflow;
    int64_t stamps;
  };
  // 2 x 2 x 2 tiles, each cut to 16 x 16 PEs: (rows / 16) (columns / 16) folds of the third size.
  for (const Row& row : {Row{Stationary::output, 8 * 3 * 3 * 32},    // 48 / 16, 40 / 16 rounded up, k
                         Row{Stationary::weight, 8 * 2 * 3 * 48},    // 32 / 16, 40 / 16, i
                         Row{Stationary::input, 8 * 2 * 3 * 40}}) {  // 32 / 16, 48 / 16, j
    chip.dataflow = row.dataflow;
    const KernelCost c = CostEngine(with_tile(chip, tile)).cost(matmul_kernel(m));
    EXPECT_EQ(c.statements[0].stream_cycles, row.stamps);
  }
}

struct SchemeRow {
  const char* name;
  Matmul matmul;
  int64_t weight_bits, scale_bits;  // from outside, at least once
};

TEST(Matmul, SchemesMoveTheirCodesAndScales) {
  constexpr int64_t I = 8, J = 96, K = 160;
  const SchemeRow rows[] = {
      {"f16", {.i = I, .j = J, .k = K}, 16 * J * K, 0},
      {"int8 per channel", {.i = I, .j = J, .k = K, .scale = ScalePer::channel, .weight_bits = 8}, 8 * J * K, 32 * J},
      {"int4 per group of 32",
       {.i = I, .j = J, .k = K, .scale = ScalePer::group, .weight_bits = 4, .group = 32, .scale_bits = 16},
       4 * J * K,
       16 * J * (K / 32)},
      {"int8 per tensor, integer inputs",
       {.i = I, .j = J, .k = K, .scale = ScalePer::tensor, .weight_bits = 8, .activation_bits = 8},
       8 * J * K,
       32},
      {"int4 per group of 48, integer inputs",
       {.i = I, .j = J, .k = K, .scale = ScalePer::group, .weight_bits = 4, .group = 48, .activation_bits = 8},
       4 * J * K,
       32 * J * 4},
      {"int8 per input, integer inputs",
       {.i = I,
        .j = J,
        .k = K,
        .scale = ScalePer::input,
        .weight_bits = 8,
        .activation_bits = 8,
        .token_scales = false},
       8 * J * K,
       32 * K},
      {"int4 in groups longer than the sum, integer inputs",  // a scale per output
       {.i = I, .j = J, .k = K, .scale = ScalePer::group, .weight_bits = 4, .group = 192, .activation_bits = 8},
       4 * J * K,
       32 * J},
  };
  for (const SchemeRow& row : rows) {
    SCOPED_TRACE(row.name);
    CostEngine engine(shipped("edge_npu32"));
    const KernelCost c = engine.cost(matmul_kernel(row.matmul));
    EXPECT_EQ(c.macs, I * J * K);
    EXPECT_EQ(outside_bits(c, row.matmul.scale == ScalePer::none ? "W" : "codes"), row.weight_bits);
    EXPECT_EQ(outside_bits(c, "scale"), row.scale_bits);
    EXPECT_EQ(outside_bits(c, "Y"), 16 * I * J);
    // Every figure of the table's total is one of its parts.
    const nlohmann::json json = cost_json(c, engine.chip());
    int64_t cycles = 0;
    for (const auto& part : json["latency_parts"]) cycles += part["cycles"].get<int64_t>();
    EXPECT_EQ(cycles, json["latency_cycles"]);
    // Nobody has compared this chip with silicon: an interval would be a claim.
    EXPECT_TRUE(json.at("latency_low_s").is_null() && json.at("latency_high_s").is_null());
    EXPECT_NE(cost_table(c, engine.chip()).find("bound by     " + c.bound), std::string::npos);
  }
}

// y[i,j] = sum over g of scale[g,j] * (sum of x w - zero[g,j] * sum of x): the last sum is a row's, per group.
TEST(Matmul, AsymmetricIntegersTakeTheirZeroPointsOffTheSums) {
  constexpr int64_t I = 6, J = 40, K = 100, G = 32, groups = 4;
  CostEngine engine(shipped("edge_npu32"));
  auto operations = [](const KernelCost& c, const std::string& name) {
    for (const StatementCost& s : c.statements)
      if (s.name == name) return s.vector_ops;
    return int64_t{0};
  };
  Matmul m{.i = I, .j = J, .k = K, .scale = ScalePer::group, .weight_bits = 4, .group = G, .activation_bits = 8};
  const KernelCost symmetric = engine.cost(matmul_kernel(m));
  m.asymmetric = true;
  const KernelCost c = engine.cost(matmul_kernel(m));
  EXPECT_EQ(outside_bits(symmetric, "zero"), 0);
  EXPECT_EQ(outside_bits(c, "zero"), 8 * J * groups);  // uint8, as they are stored
  EXPECT_EQ(operations(symmetric, "sum_codes"), 0);
  EXPECT_EQ(operations(c, "sum_codes"), I * K);
  EXPECT_EQ(operations(c, "rescale") - operations(symmetric, "rescale"), I * J * groups);
  // Zero points per input stay inside the sum: they leave the codes before it.
  m.scale = ScalePer::input;
  const KernelCost unpacked = engine.cost(matmul_kernel(m));
  EXPECT_EQ(outside_bits(unpacked, "zero"), 8 * K);
  EXPECT_EQ(operations(unpacked, "sum_codes"), 0);
  EXPECT_EQ(operations(unpacked, "unpack"), J * K);
  EXPECT_EQ(outside_bits(unpacked, "codes"), 4 * J * K);
}

// Cores do not sum up each other's results: each has all groups of its outputs.
TEST(Matmul, CoresDoNotShareGroups) {
  const Matmul m{
      .i = 128, .j = 768, .k = 3072, .scale = ScalePer::group, .weight_bits = 4, .group = 32, .activation_bits = 8};
  for (const char* name : {"tpuv4_like", "h100", "cpu_avx512_vnni"}) {
    const Chip chip = shipped(name);
    ASSERT_GT(chip.cores, 1);
    const KernelCost c = CostEngine(chip).cost(matmul_kernel(m));
    int placed = 0;
    for (const auto& part : c.statements) {
      if (!part.placement) continue;
      ++placed;
      const std::string& words = part.placement->words;
      const size_t cores = words.find("; cores ");
      ASSERT_NE(cores, std::string::npos) << words;
      EXPECT_EQ(words.find(" g in ", cores), std::string::npos) << words;
    }
    EXPECT_EQ(placed, 1);
  }
}

// Sums of a group are rescaled when they are there: the groups' loop runs within the tiles of outputs, so the vector unit, which
// binds, waits for the first tile alone and not for the last group.
TEST(Matmul, GroupsAreSummedUpTileByTile) {
  constexpr int64_t I = 128, J = 768, K = 3072, G = 32;
  const Matmul m{.i = I, .j = J, .k = K, .scale = ScalePer::group, .weight_bits = 4, .group = G, .activation_bits = 8};
  for (Stationary dataflow : {Stationary::output, Stationary::weight, Stationary::input}) {
    Chip chip = shipped("gemmini16");
    std::fill(std::begin(chip.dataflow_of), std::end(chip.dataflow_of), std::nullopt);
    chip.dataflow = dataflow;
    const KernelCost c = CostEngine(chip).cost(matmul_kernel(m));
    // Per input 2 operations for the largest and 4 for its code; per output and group convert, multiply, add; 16 lanes.
    constexpr int64_t vector = (I * K * (2 + 4) + I * J * (K / G) * 3) / 16;
    EXPECT_EQ(c.bound, "vector");
    EXPECT_GE(c.latency_cycles, vector);
    EXPECT_LT(static_cast<double>(c.latency_cycles), 1.01 * static_cast<double>(vector));
  }
}

// Static scales of the inputs are read: one, one per feature, or one per group of features.
TEST(Matmul, StaticScalesOfInputsAreRead) {
  CostEngine engine(shipped("edge_npu32"));
  for (int64_t scales : {1, 8, 100}) {
    const Matmul m{.i = 6,
                   .j = 40,
                   .k = 100,
                   .scale = ScalePer::channel,
                   .weight_bits = 8,
                   .activation_bits = 8,
                   .token_scales = false,
                   .static_scales = scales};
    EXPECT_EQ(outside_bits(engine.cost(matmul_kernel(m)), "static_scale"), 32 * scales);
  }
}

TEST(Matmul, WrongSizesAreRefused) {
  const Chip chip = shipped("gemmini16");
  EXPECT_NE(error_of([] { matmul_kernel({.i = 0}); }).find("sizes of at least 1"), std::string::npos);
  EXPECT_NE(error_of([] { matmul_kernel({.scale = ScalePer::group, .group = 0}); }).find("groups of at least 1"),
            std::string::npos);
  auto tiled = [&](int64_t size, const std::array<int64_t, 3>& tile) {
    return error_of([&] { CostEngine(with_tile(chip, tile)).cost(matmul_kernel({.i = size, .j = size, .k = size})); });
  };
  EXPECT_NE(tiled(8, {4, -1, 4}).find("a tile of -1"), std::string::npos);
  EXPECT_NE(tiled(4096, {0, 0, 64}).find("bytes of scratchpad"), std::string::npos);
}

}  // namespace
}  // namespace sator::dataflow
