#include "study/page_figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "study/by_hand.h"
#include "study/costing.h"
#include "study/sample.h"
#include "study/sweep_figures.h"

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

// One chart per chip, figure and batch; a mark per scheme and context, with the figures of sweep.csv.
TEST(Figures, SweepsAreLinesPerScheme) {
  Study study = study_by_hand({{"a", {}, 100, 10}, {"b<c", {}, 90, 9}}, {"one", "two"});
  EXPECT_EQ(sweep_section(study), "");
  auto count = [](const std::string& in, const std::string& what) {
    size_t n = 0;
    for (size_t at = in.find(what); at != std::string::npos; at = in.find(what, at + 1)) ++n;
    return n;
  };
  auto sweep = [&](const std::vector<int64_t>& batches, const std::vector<int64_t>& contexts) {
    for (SchemeResult& s : study.schemes)
      for (ChipResult& chip : s.chips) {
        chip.sweep.clear();
        for (int64_t batch : batches)
          for (int64_t context : contexts) {
            SweepPoint p{.batch = batch, .context = context, .prefill = {}, .decode = {}};
            p.prefill.latency_s = 1e-3 * static_cast<double>(context);
            p.decode.latency_s = 0.5;
            chip.sweep.push_back(p);
          }
      }
    return sweep_section(study);
  };
  const std::string section = sweep({4, 8}, {10, 20, 30});
  EXPECT_EQ(count(section, "role=\"img\""), 2U * 2 * 3);                        // chips, batches, figures
  EXPECT_EQ(count(section, "class=\"line l"), 2U * 2 * 3 * 2);                  // a line per scheme
  EXPECT_EQ(count(section, "b&lt;c, batch 4, context 20: 8.00 tokens/s"), 2U);  // 4 tokens in half a second
  EXPECT_EQ(count(section, "<details>"), 2U);                                   // the second batch
  EXPECT_NE(sweep({4, 8}, {10}).find("against batch, sequences on two"), std::string::npos);
  EXPECT_EQ(sweep({4}, {10}), "");
}

// A memory that is larger by a tenth: the engine on that chip, for all kernels.
TEST(Figures, ALargerMemoryIsTheEnginesAnswer) {
  Chip chip = shipped("gemmini16");
  chip.memories[1].capacity_bytes = 20 << 10;  // so small that tiles are cut by it
  std::vector<PhaseKernel> kernels;
  for (const auto& kernel : {linear("big", 128, 512, 512, 8, false, 8), linear("row", 1, 512, 256, 8, false, 8)}) {
    PhaseKernel k{.calls = {.function = kernel.name, .layer = "", .count = 3, .duration_us = {}}, .work = {}};
    k.work.kernel = kernel;
    k.work.placements.resize(1);
    kernels.push_back(k);
  }
  ChipCoster coster(chip);
  PhaseResult phase = coster.cost(kernels);
  phase.larger = coster.larger_memories(kernels, phase);
  ASSERT_EQ(phase.larger.size(), chip.memories.size() - 1);
  EXPECT_EQ(phase.larger[0].capacity_bytes, 22 << 10);
  Chip larger = chip;
  larger.memories[1].capacity_bytes = 22 << 10;
  double by_engine = 0;
  for (const PhaseKernel& k : kernels)
    by_engine += 3 * std::min(dataflow::CostEngine(chip).cost(k.work.kernel).latency_s,
                              dataflow::CostEngine(larger).cost(k.work.kernel).latency_s);
  EXPECT_NEAR(phase.larger[0].latency_s, by_engine, 0.02 * by_engine);
  EXPECT_LE(phase.larger[0].latency_s, phase.cost.latency_s);
  const std::vector<Gain> gains = larger_memory_gains(phase);
  EXPECT_EQ(gains[0].name, "scratchpad of 22,528 B");
  EXPECT_NEAR(gains[0].share, 1 - phase.larger[0].latency_s / phase.cost.latency_s, 1e-12);
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

// A candidate is marked if and only if no other is as small in latency, energy and perplexity and smaller in one.
TEST(Candidates, AreThoseThatNoOtherBeats) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<SchemeByHand> schemes(random() % 8);
    for (SchemeByHand& s : schemes)
      s = {"s", 20.0 + static_cast<double>(random() % 3), 1 + static_cast<int64_t>(random() % 4), 0};
    Study study = study_by_hand(schemes, {"chip"});
    std::vector<std::array<double, 3>> points;
    for (SchemeResult& s : study.schemes) {
      double& energy = s.chips[0].prefill.cost.energy_j;
      energy = static_cast<double>(1 + random() % 3);
      s.chips[0].decode.cost.energy_j = 0;
      points.push_back({s.chips[0].prefill.cost.latency_s, energy, *s.perplexity});
    }
    const std::vector<Candidate> all = candidates(study);
    ASSERT_EQ(all.size(), points.size());
    for (size_t i = 0; i < points.size(); ++i) {
      const bool beaten = std::ranges::any_of(points, [&](const auto& other) {
        return other != points[i] && other[0] <= points[i][0] && other[1] <= points[i][1] && other[2] <= points[i][2];
      });
      EXPECT_EQ(all[i].best, !beaten);
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
