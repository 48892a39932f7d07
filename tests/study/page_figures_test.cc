#include "study/page_figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "study/by_hand.h"
#include "study/sample.h"

namespace sator::study {
namespace {

TEST(Figures, PlacesInBlocks) {
  EXPECT_EQ(place_in_block("transformer.h.3.attn.c_attn"), "attn.c_attn");
  EXPECT_EQ(place_in_block("model.layers.12.mlp"), "mlp");
  EXPECT_EQ(place_in_block("lm_head"), "lm_head");
  EXPECT_EQ(place_in_block(""), "other");
}

// No kernel does more than the array can, nor more than the memory brings it.
TEST(Figures, NoPointLiesAboveItsRoof) {
  const Study study = sample_study(default_samples(), {"tpuv1", "gemmini16", "edge_npu32"});
  for (size_t chip = 0; chip < study.chips.size(); ++chip)
    for (const SchemeResult& scheme : study.schemes) {
      const Roofline r = roofline_of(study, scheme, chip);
      ASSERT_FALSE(r.points.empty());
      ASSERT_FALSE(r.ceilings.empty());
      for (const RooflinePoint& p : r.points) {
        EXPECT_LE(p.macs_per_s, r.ceilings[0].macs_per_s * (1 + 1e-9)) << p.title;
        EXPECT_LE(p.macs_per_s, r.slopes[p.on].bytes_per_s * p.macs_per_byte * (1 + 1e-9)) << p.title;
      }
    }
}

// 8192 columns of 256 16-bit weights for one row: 1 MAC per 2 bytes, less what rows and columns of f32 add.
TEST(Figures, RooflineIntensityIsMacsPerByte) {
  const Study study = sample_study({default_samples()[1]}, {"edge_npu32"});
  const Roofline r = roofline_of(study, study.schemes[0], 0);
  const double expected = 8192.0 * 256 / (8192.0 * 256 * 2 + 256 * 4 + 8192 * 4);
  EXPECT_TRUE(std::any_of(r.points.begin(), r.points.end(), [&](const RooflinePoint& p) {
    return std::abs(p.macs_per_byte / expected - 1) < 1e-9;
  }));
}

TEST(Figures, GainsAreElasticities) {
  Cost cost;
  cost.levels = {{.name = "dram"}};
  cost.elasticities = {{"array", 0.25}, {"vector", 0}, {"dram", 0.75}, {"launch", 0}};
  cost.clock_elasticity = 0.25;
  const std::vector<Gain> gains = gains_of(cost, {.rows = 8, .columns = 8, .clock_hz = 1e9});
  ASSERT_EQ(gains.size(), 5U);
  EXPECT_EQ(gains[0].name, "clock of 1.00 GHz");
  EXPECT_NEAR(gains[0].share, 0.25 / 11, 1e-12);
  EXPECT_EQ(gains[1].name, "dram bandwidth");
  EXPECT_NEAR(gains[1].share, 0.75 / 11, 1e-12);  // a tenth faster: 1 - 1/1.1 = 1/11 shorter
  EXPECT_EQ(gains[2].name, "array of 8x8");
}

// The engine on a chip whose outermost memory is a tenth faster gains no more than the elasticity says, and just that where
// the memory goes on binding.
TEST(Figures, GainsAreWhatTheEngineFinds) {
  const Chip chip = shipped("gemmini16");
  Chip faster = chip;
  faster.memories[0].read_bytes_per_cycle *= kFaster;
  faster.memories[0].write_bytes_per_cycle *= kFaster;
  for (const auto& kernel : {linear("bytes", 1, 1024, 1024, 8, false, 8),
                             linear("both", 24, 512, 512, 8, false, 8),
                             linear("macs", 512, 512, 512, 8, false, 8)}) {
    const dataflow::KernelCost before = dataflow::CostEngine(chip).cost(kernel),
                               after = dataflow::CostEngine(faster).cost(kernel);
    const KernelRow row = kernel_row({kernel.name, "", 1, {}}, kernel, before, chip);
    double gain = 0;
    for (const Gain& g : gains_of(row.cost, facts_of(chip)))
      if (g.name == "dram bandwidth") gain = g.share;
    const double found = 1 - after.unrounded_cycles / before.unrounded_cycles;
    EXPECT_LE(found, gain + 1e-9) << kernel.name;
    if (before.bound == "dram" && after.bound == "dram") EXPECT_NEAR(found, gain, 1e-9) << kernel.name;
  }
}

TEST(NonDominated, EqualsTheDefinition) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<double>> points(random() % 12, std::vector<double>(1 + random() % 3));
    const size_t figures = points.empty() ? 0 : points[0].size();
    for (auto& p : points) {
      p.resize(figures);
      for (double& v : p) v = static_cast<double>(random() % 4);
    }
    const std::vector<size_t> front = non_dominated(points);
    for (size_t i = 0; i < points.size(); ++i) {
      bool beaten = false;
      for (const auto& other : points) {
        bool all = true, one = false;
        for (size_t k = 0; k < figures; ++k) all &= other[k] <= points[i][k], one |= other[k] < points[i][k];
        beaten |= all && one;
      }
      EXPECT_EQ(std::count(front.begin(), front.end(), i), beaten ? 0 : 1);
    }
  }
}

// Chip "one" is as fast with both schemes; without a perplexity only the cheaper one remains, with one both do.
TEST(Candidates, PerplexityIsAThirdFigure) {
  auto best = [](std::optional<double> good, std::optional<double> bad) {
    Study study = study_by_hand({{"f16", good, 100, 10}, {"int4", bad, 90, 9}}, {"one"});
    std::vector<std::string> names;
    for (const Candidate& c : candidates(study))
      if (c.best) names.push_back(study.schemes[c.scheme].name);
    return names;
  };
  EXPECT_EQ(best({}, {}), (std::vector<std::string>{"int4"}));
  EXPECT_EQ(best(20.0, 21.0), (std::vector<std::string>{"f16", "int4"}));
  EXPECT_EQ(best(20.0, 20.0), (std::vector<std::string>{"int4"}));
  EXPECT_EQ(best(20.0, {}), (std::vector<std::string>{"f16", "int4"}));
}

}  // namespace
}  // namespace sator::study
