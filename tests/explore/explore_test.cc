// Chips of other sizes: what the search says of them is what the engine says of each.
#include "explore/explore.h"

#include <gtest/gtest.h>

#include "dataflow/cost/described_chip.h"
#include "dataflow/programs/matmul.h"
#include "explore/area.h"
#include "temp_folder.h"

namespace sator::explore {
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

// Mappings of the longer search are points of their own, each costed as itself.
TEST(Explore, MappingsArePointsOfTheirOwn) {
  const KernelSpace space(ChipSpace(shipped("gemmini16"), {}), {{dataflow::matmul_kernel(kMatmul)}}, 6, {});
  const SearchResult r = search(space.choices(), [&](const Point& p, int) { return space.evaluate(p); }, {.budget = 6});
  ASSERT_EQ(r.evaluated.size(), 6u);
  std::set<std::string> words;
  for (const Evaluated& e : r.evaluated)
    if (e.allowed()) words.insert(space.design(e.point).mapping);
  EXPECT_GE(words.size(), 3u);
}

// The longer search has the engine's mappings and more, so it is no slower but by what estimates leave out.
TEST(Explore, TilesOfEachMemoryAreNotSlower) {
  for (const char* name : {"gemmini16", "nvdla_small", "eyeriss_v1", "edge_npu32"})
    for (const dataflow::Matmul& m : {dataflow::Matmul{.i = 100, .j = 700, .k = 900},
                                      dataflow::Matmul{.i = 512, .j = 512, .k = 2048},
                                      dataflow::Matmul{.i = 1000, .j = 130, .k = 333}}) {
      SCOPED_TRACE(testing::Message() << name << " " << m.i << " x " << m.j << " x " << m.k);
      const KernelSpace space(ChipSpace(shipped(name), {}), {{dataflow::matmul_kernel(m)}}, 2, {});
      const Evaluated longer = space.evaluate({0, 0, 0, 0, 1});
      ASSERT_EQ(longer.refused, "");
      EXPECT_LE(longer.objectives[0], space.evaluate({0, 0, 0, 0, 0}).objectives.at(0) * 1.02);
    }
}

// Three buffers, each slower and larger than the next: the middle one binds, and what the inner one holds need not be a part of
// the loops that the middle one was tiled by.
TEST(Explore, TilesOfEachMemoryPay) {
  Chip chip = shipped("cpu_avx512_vnni");
  chip.cores = 1;
  for (Memory& m : chip.memories) m.per_core = false;
  auto set = [&](size_t m, int64_t bytes, double bytes_per_cycle) {
    if (m > 0) chip.memories[m].capacity_bytes = bytes;
    chip.memories[m].read_bytes_per_cycle = chip.memories[m].write_bytes_per_cycle = bytes_per_cycle;
  };
  set(0, 0, 0.8), set(1, 1 << 18, 6), set(2, 1 << 15, 12), set(3, 1 << 13, 128);
  const KernelSpace space(ChipSpace(chip, {}), {{dataflow::matmul_kernel({.i = 512, .j = 512, .k = 2048})}}, 2, {});
  const double engines = space.evaluate({0, 0, 0, 0, 0}).objectives.at(0),
               longer = space.evaluate({0, 0, 0, 0, 1}).objectives.at(0);
  EXPECT_LT(longer, 0.97 * engines);
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

// Arrays that are timed by TENET's formula vary by their PEs and dataflow alone, as `estimate --pe` has them.
TEST(Explore, TenetsArrayVaries) {
  const Chip base = dataflow::described_chip(std::string(SATOR_SOURCE_DIR) + "/chips/tenet-8x8.toml");
  const dataflow::Kernel kernel = dataflow::matmul_kernel({.i = 64, .j = 64, .k = 64});
  const KernelSpace space(
      ChipSpace(base, {.arrays = {{8, 8}, {4, 4}}, .dataflows = {Stationary::output, Stationary::weight}}),
      {{kernel}},
      1,
      {});
  for (size_t a : {0, 1})
    for (size_t d : {0, 1}) {
      dataflow::ChipChanges changes{.pe = {{a == 0 ? 8 : 4, a == 0 ? 8 : 4}},
                                    .dataflow = d == 0 ? Stationary::output : Stationary::weight};
      const Chip chip = dataflow::described_chip(std::string(SATOR_SOURCE_DIR) + "/chips/tenet-8x8.toml", changes);
      EXPECT_DOUBLE_EQ(space.evaluate({a, d, 0, 0}).objectives.at(0),
                       dataflow::CostEngine(chip).cost(kernel).latency_s);
    }
  EXPECT_NE(error_of([&] { ChipSpace(base, {.cores = {2}}); }).find("timed by TENET's formula"), std::string::npos);
  TempFolder temp;
  temp.write("mine/a.p", "{PE[i,j]:0<=i<4 and 0<=j<4}\n{PE[i,j]->PE[i,j-1]}\n64 512 64 1\n");
  temp.write("mine/a.m", "{S[i,j,k]->PE[i%4,j%4]}\n{S[i,j,k]->T[floor(i/4),floor(j/4),k]}\n");
  const Chip mine = dataflow::described_chip((temp.path() / "mine").string());
  EXPECT_GT(KernelSpace(ChipSpace(mine, {}), {{kernel}}, 1, {}).evaluate({0, 0, 0, 0}).objectives.at(0), 0);
  EXPECT_NE(error_of([&] { ChipSpace(mine, {.arrays = {{8, 8}}}); }).find("the mapping of mine is that of"),
            std::string::npos);
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
}  // namespace sator::explore
