// Chips of other sizes: what the search says of them is what the engine says of each.
#include "tune/explore.h"

#include <gtest/gtest.h>

#include "dataflow/matmul.h"
#include "temp_folder.h"
#include "tune/area.h"

namespace sator::tune {
namespace {

Chip shipped(const std::string& name) { return find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/" + name + ".toml"); }

const dataflow::Matmul kMatmul{
    .i = 64, .j = 256, .k = 128, .scale = dataflow::ScalePer::channel, .weight_bits = 8, .activation_bits = 8};

ChipAxes small_axes() {
  return {.arrays = {{8, 8}, {16, 16}, {32, 32}},
          .dataflows = {Stationary::output, Stationary::weight},
          .buffers = {{"scratchpad", {64 << 10, 256 << 10}}},
          .bandwidths = {8e9, 16e9}};
}

// Every point by loops of its own: the engine on a chip that was changed by hand.
TEST(Explore, AllPointsAreWhatTheEngineSays) {
  const KernelSpace space(ChipSpace(shipped("gemmini16"), small_axes()), {{dataflow::matmul_kernel(kMatmul)}}, 1, {});
  const SearchResult r =
      search(space.choices(), [&](const Point& p, int) { return space.evaluate(p); }, {.budget = 24, .threads = 2});
  EXPECT_TRUE(r.exhaustive);
  ASSERT_EQ(r.evaluated.size(), 24u);
  std::vector<std::vector<double>> by_hand;
  for (int64_t side : {8, 16, 32})
    for (Stationary s : {Stationary::output, Stationary::weight})
      for (int64_t kib : {64, 256})
        for (double bytes_per_cycle : {8.0, 16.0}) {
          Chip chip = shipped("gemmini16");
          chip.rows = chip.columns = side;
          chip.dataflow = s;
          for (auto& of_class : chip.dataflow_of) of_class.reset();
          Memory& pad = chip.memories[1];
          const double longer = std::sqrt(static_cast<double>(kib) / 256);
          pad.capacity_bytes = kib << 10;
          pad.read_energy_per_bit.picojoules *= longer, pad.write_energy_per_bit.picojoules *= longer;
          chip.memories[0].read_bytes_per_cycle = chip.memories[0].write_bytes_per_cycle = bytes_per_cycle;
          const dataflow::KernelCost c = dataflow::CostEngine(chip).cost(dataflow::matmul_kernel(kMatmul));
          by_hand.push_back({c.latency_s, c.energy_j});
        }
  for (size_t i = 0; i < by_hand.size(); ++i) {
    EXPECT_DOUBLE_EQ(r.evaluated[i].objectives[0], by_hand[i][0]) << i;
    EXPECT_NEAR(r.evaluated[i].objectives[1] / by_hand[i][1], 1, 1e-9) << i;
  }
  // The quickest is on the front, and so is the smallest.
  std::set<double> latencies;
  for (const auto& o : by_hand) latencies.insert(o[0]);
  EXPECT_DOUBLE_EQ(r.evaluated[r.front[0]].objectives[0], *latencies.begin());
}

TEST(Explore, LimitsHold) {
  const Chip base = shipped("gemmini16");
  const double most = area_mm2(ChipSpace(base, small_axes()).at({1, 0, 0, 0, 0}), base);
  const KernelSpace space(ChipSpace(base, small_axes()), {{dataflow::matmul_kernel(kMatmul)}}, 1, {.area_mm2 = most});
  const SearchResult r =
      search(space.choices(), [&](const Point& p, int) { return space.evaluate(p); }, {.budget = 24});
  ASSERT_FALSE(r.front.empty());
  for (size_t i : r.front) {
    EXPECT_LE(r.evaluated[i].objectives[2], most);
    EXPECT_LT(r.evaluated[i].point[0], 2u);  // no 32 x 32
  }
}

// Another of the mapper's mappings is no quicker than the first, and it is costed as itself.
TEST(Explore, MappingsArePointsOfTheirOwn) {
  const KernelSpace space(ChipSpace(shipped("gemmini16"), {}), {{dataflow::matmul_kernel(kMatmul)}}, 6, {});
  const SearchResult r = search(space.choices(), [&](const Point& p, int) { return space.evaluate(p); }, {.budget = 6});
  ASSERT_EQ(r.evaluated.size(), 6u);
  std::set<std::string> words;
  for (const Evaluated& e : r.evaluated) {
    if (!e.allowed()) continue;
    EXPECT_GE(e.objectives[0], r.evaluated[0].objectives[0] * 0.9995);
    words.insert(space.design(e.point).mapping);
  }
  EXPECT_GE(words.size(), 3u);
}

// Parts of a 16 x 16 array of 8-bit units at 16 nm: 256 x 687.6 um^2 as synthesised at 45 nm, scaled by the node's square.
TEST(Explore, AreasAreThoseOfTheirSources) {
  const Chip chip = shipped("gemmini16");
  const double scale = 16.0 * 16.0 / (45.0 * 45.0) / 1e6;
  for (const AreaPart& part : area_parts(chip)) {
    if (part.name == "array") EXPECT_NEAR(part.mm2, 256 * 687.6 * scale, 0.01 * part.mm2);
    if (part.name == "scratchpad") EXPECT_NEAR(part.mm2, 8 * 262144 * 0.58 * scale, 1e-6);
  }
  // A chip that states its area keeps it; twice its buffer adds that buffer.
  const Chip tpu = shipped("tpuv1");
  EXPECT_DOUBLE_EQ(area_mm2(tpu, tpu), *tpu.area_mm2);
}

TEST(Explore, WhatNoChipHasIsRefused) {
  const Chip base = shipped("gemmini16");
  auto error = [&](ChipAxes axes) { return error_of([&] { ChipSpace(base, axes); }); };
  EXPECT_NE(error({.arrays = {{0, 8}}}).find("an array of 0x8"), std::string::npos);
  EXPECT_NE(error({.buffers = {{"dram", {1024}}}}).find("no memory dram on the chip"), std::string::npos);
  EXPECT_NE(error({.buffers = {{"scratchpad", {0}}}}).find("a buffer of 0 bytes"), std::string::npos);
  EXPECT_NE(error({.bandwidths = {-1}}).find("a bandwidth of -1"), std::string::npos);
  EXPECT_NE(error({.cores = {0}}).find("0 cores"), std::string::npos);
}

}  // namespace
}  // namespace sator::tune
