// The default mapping: no tile that a user can name is better, and its estimate is what the engine then counts.
#include "dataflow/mapping/mapper.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "dataflow/cost/cost.h"
#include "dataflow/counts/gemm.h"
#include "dataflow/programs/matmul.h"
#include "shipped_chips.h"

namespace sator::dataflow {
namespace {

Chip with_tile(Chip chip, const std::array<int64_t, 3>& tile) {
  chip.tile = tile;
  return chip;
}

// A tile that pipelines the quantization of inputs, which whole rows hold up.
TEST(Mapper, TilesAreCutForWhatComesBeforeTheProduct) {
  CostEngine engine(shipped("gemmini16"));
  const Matmul m{.i = 128, .j = 768, .k = 3072, .scale = ScalePer::channel, .weight_bits = 8, .activation_bits = 8};
  const KernelCost found = engine.cost(matmul_kernel(m));
  const KernelCost tiled = CostEngine(with_tile(engine.chip(), {64, 64, 128})).cost(matmul_kernel(m));
  EXPECT_LE(found.latency_cycles, tiled.latency_cycles);
  // 128 x 768 x 3072 MACs on 256 PEs, and little beside it.
  EXPECT_LE(found.latency_cycles, 1'179'648 * 105 / 100);
}

// One step of the array takes a row of 16 inputs and a tile of 16 x 16 weights, and leaves 16 x 16 sums; fewer PEs take less.
TEST(Mapper, RefusesMemoriesThatHoldLessThanAStep) {
  const Matmul m{.i = 64, .j = 64, .k = 64, .scale = ScalePer::tensor, .weight_bits = 8, .activation_bits = 8};
  for (size_t memory : {1u, 2u}) {
    Chip chip = shipped("gemmini16");
    SCOPED_TRACE(chip.memories[memory].name);
    chip.memories[memory].capacity_bytes = 2048;
    const KernelCost small = CostEngine(chip).cost(matmul_kernel(m));
    chip.memories[memory].capacity_bytes = 15;
    EXPECT_GT(CostEngine(chip).cost(matmul_kernel(m)).latency_cycles, small.latency_cycles);
    for (int64_t bytes : {1}) {
      chip.memories[memory].capacity_bytes = bytes;
      try {
        CostEngine(chip).cost(matmul_kernel(m));
        ADD_FAILURE() << bytes << " bytes are enough";
      } catch (const Error& e) {
        EXPECT_NE(e.reason.what.find(text(chip.memories[memory].name, " of ", bytes, " bytes")), std::string::npos)
            << e.what();
      }
    }
  }
}

// What tiles cost at the ends is nothing beside so many rows, so that ten times as many take ten times as long; a search through all
// sizes of tiles would not end.
TEST(Mapper, SizesOfTilesAreFoundOfVeryManyRows) {
  auto latency = [](int64_t rows) {
    const Matmul m{.i = rows, .j = 128, .k = 128, .scale = ScalePer::tensor, .weight_bits = 8, .activation_bits = 8};
    return static_cast<double>(CostEngine(shipped("edge_npu32")).cost(matmul_kernel(m)).latency_cycles);
  };
  const double of_some = latency(30'000'000);
  for (int64_t times : {1'000, 10'000, 100'000})
    EXPECT_NEAR(latency(30'000'000 * times) / (of_some * static_cast<double>(times)), 1, 0.001) << times;
}

// 64 KB hold no 4096 x 4096 weights: as many PEs work as have something to work on.
TEST(Mapper, AnArrayLargerThanItsMemoriesWorksInPart) {
  const Matmul m{.i = 64, .j = 4096, .k = 4096, .scale = ScalePer::tensor, .weight_bits = 8, .activation_bits = 8};
  Chip chip = shipped("edge_npu32");
  for (Memory& memory : chip.memories)
    if (memory.capacity_bytes) memory.capacity_bytes = 65536;
  const KernelCost fits = CostEngine(chip).cost(matmul_kernel(m));
  chip.rows = chip.columns = 1 << 20;
  const KernelCost part = CostEngine(chip).cost(matmul_kernel(m));
  EXPECT_EQ(part.macs, fits.macs);
  EXPECT_LT(part.latency_cycles, fits.latency_cycles);
}

// PEs may be left idle. 33 columns lie on 17 PEs in two turns, on 11 in three: both arrays have either.
TEST(Mapper, ALargerArrayIsNoSlower) {
  const Chip chip = shipped("edge_npu32");
  Chip larger = chip;
  larger.rows *= 2, larger.columns *= 2;
  const Matmul m{.i = 33, .j = 33, .k = 1, .scale = ScalePer::channel, .weight_bits = 8, .activation_bits = 8};
  const KernelCost there = CostEngine(larger).cost(matmul_kernel(m)), here = CostEngine(chip).cost(matmul_kernel(m));
  EXPECT_LE(there.latency_cycles, here.latency_cycles);
}

constexpr const char* kSixCores = R"(
name = "six"
description = "six cores"
source = "none"
node_nm = 7
clock_hz = 1e9
launch_cycles = 0
array = { rows = 16, columns = 16, cores = 6, dataflow = "is", interconnect = "multicast", tiles_overlap = true }
energy = { node_nm = 7, source = "none" }
static_power = { watts = 0.1, source = "none" }
pe = { capacity_bytes = 256, energy_pj_per_bit = 0.01 }
vector = { lanes = 1, ops_per_lane_per_cycle = 1, overlaps_array = true, energy_pj_per_op = 0.5 }
[[precision]]
weight_bits = 4
activation_bits = 4
accumulator_bits = 32
number = "int"
macs_per_pe_per_cycle = 1
energy_pj_per_mac = 0.5
[[memory]]
name = "dram"
capacity_bytes = 8_000_000_000
bytes_per_cycle = 64
energy_pj_per_bit = 5
[[memory]]
name = "sram"
capacity_bytes = 262_144
bytes_per_cycle = 64
energy_pj_per_bit = 0.25
[[memory]]
name = "near"
capacity_bytes = 2_048
bytes_per_cycle = 512
double_buffered = true
energy_pj_per_bit = 0.17
)";

// 263 columns are 17 tiles of 16: six cores have three each. In tiles of 32 there are nine, and five cores would have two.
TEST(Mapper, CoresShareTilesOfTheShorterSideToo) {
  const Chip chip = parse_chip(kSixCores, "six.toml");
  Chip larger = chip;
  larger.rows = 32;
  const Kernel kernel = matmul_kernel({.i = 149, .j = 263, .k = 265, .float_bits = 32});
  const KernelCost there = CostEngine(larger).cost(kernel), here = CostEngine(chip).cost(kernel);
  EXPECT_LE(there.latency_cycles, here.latency_cycles);
}

class MapperOn : public testing::TestWithParam<const char*> {};

TEST_P(MapperOn, NoTileIsBetterThanTheDefault) {
  const Chip chip = shipped(GetParam());
  std::mt19937 random(17);
  auto pick = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  static constexpr int64_t kSizes[] = {1, 5, 16, 33, 64, 100, 128, 200, 512, 768, 1000};
  int compared = 0;
  for (int round = 0; round < 10; ++round) {
    Matmul m;
    for (int64_t* size : {&m.i, &m.j, &m.k}) *size = kSizes[pick(std::size(kSizes))];
    if (pick(4) > 0) {
      m.scale = pick(3) == 0 ? ScalePer::group : ScalePer::channel;
      m.group = 32;
      m.weight_bits = pick(2) == 0 ? 8 : 4;
      if (m.scale == ScalePer::channel && pick(2) == 0) m.activation_bits = 8;
    }
    CostEngine engine(chip);
    const Kernel kernel = matmul_kernel(m);
    const KernelCost found = engine.cost(kernel);
    for (int t = 0; t < 12; ++t) {
      const std::array<int64_t, 3> extent = {m.i, m.j, m.k};
      std::array<int64_t, 3> tile{};
      for (size_t x = 0; x < 3; ++x) {
        const int64_t step = pick(2) == 0 ? 16 : pick(2) == 0 ? chip.rows : chip.columns;
        tile[x] = pick(4) == 0 ? 0 : std::min(extent[x], step << pick(6));
        if (pick(6) == 0) tile[x] = 1 + pick(extent[x]);  // any size
      }
      KernelCost tiled;
      try {
        tiled = CostEngine(with_tile(chip, tile)).cost(kernel);
      } catch (const Error&) {
        continue;  // does not fit, or has too many ragged edges to be counted
      }
      ++compared;
      // A thousandth: of mappings that are as quick the one of less traffic and with more PEs at work is taken. Tiles that
      // end within a turn of the array are not searched: five cycles, and with several cores five thousandths.
      EXPECT_LE(found.unrounded_cycles, tiled.unrounded_cycles * (chip.cores > 1 ? 1.005 : 1.001) + 5)
          << m.i << " x " << m.j << " x " << m.k << " scale " << static_cast<int>(m.scale) << " " << m.weight_bits
          << " bits, activations " << m.activation_bits << ", tile " << tile[0] << "," << tile[1] << "," << tile[2];
    }
  }
  EXPECT_GT(compared, 30);
}

INSTANTIATE_TEST_SUITE_P(Chips, MapperOn,
                         testing::Values("gemmini16", "tpuv1", "edge_npu32", "scalesim_default", "shidiannao_like",
                                         "nvdla_large", "bitfusion", "eyeriss_v1", "tpuv4_like", "h100"));

/// Chips whose descriptions use each part of the latency formula: by name, as shipped or changed.
Chip chip_of(std::string_view name) {
  if (name == "no wires") {  // each PE fetches what it needs, and sums of a column's PEs meet in memory
    Chip chip = shipped("edge_npu32");
    chip.wires = Wires::none;
    return chip;
  }
  if (name == "calibrated") {
    Chip chip = shipped("edge_npu32");
    chip.calibration = ChipCalibration{.array_time = 1.3,
                                       .memory_time = 1.4,
                                       .vector_time = 1.2,
                                       .cache_time = 2.5,
                                       .array_time_of = {2.1, 0.7, 1},
                                       .vector_time_of = {3.1, 0.6, 1, 1}};
    return chip;
  }
  if (name == "four cores, single buffers") {
    Chip chip = shipped("edge_npu32");
    chip.cores = 4;
    for (size_t m = 1; m < chip.memories.size(); ++m)
      chip.memories[m].per_core = true, chip.memories[m].double_buffered = false;
    return chip;
  }
  return shipped(std::string(name));
}

// Where tiles divide, the closed forms are the engine's counts: latencies agree.
TEST(Mapper, TheEstimateIsWhatTheEngineCounts) {
  for (const char* name : {"gemmini16",
                           "tpuv1",
                           "scalesim_default",
                           "shidiannao_like",
                           "edge_npu32",
                           "no wires",
                           "calibrated",
                           "four cores, single buffers"}) {
    const Chip chip = chip_of(name);
    for (auto [i, j, k] : {std::array<int64_t, 3>{256, 512, 1024}, {512, 256, 256}, {8, 1024, 512}})
      for (int bits : {0, 8}) {
        const Matmul m{.i = i,
                       .j = j,
                       .k = k,
                       .scale = bits ? ScalePer::channel : ScalePer::none,
                       .weight_bits = bits ? 8 : 16,
                       .activation_bits = bits};
        const KernelCost cost = CostEngine(chip).cost(matmul_kernel(m));
        for (const StatementCost& s : cost.statements)
          if (s.on_array()) {
            const double real = cost.unrounded_cycles - static_cast<double>(chip.launch_cycles);
            EXPECT_NEAR(s.placement->estimate.cycles / real, 1, 0.005) << name << " " << i << " " << j << " " << k;
          }
      }
  }
}

}  // namespace
}  // namespace sator::dataflow
