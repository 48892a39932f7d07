#include "study/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "study/by_hand.h"
#include "study/words.h"

namespace sator::study {
namespace {

const double kInf = std::numeric_limits<double>::infinity();

TEST(Baseline, IsF16OrTheFirst) {
  EXPECT_EQ(baseline_of(study_by_hand({{"f32"}, {"f16"}, {"int8-tensor"}}, {})), 1U);
  EXPECT_EQ(baseline_of(study_by_hand({{"int8-tensor"}, {"f32"}}, {})), 0U);
}

// f16 multiplies 32-bit floats, which a chip made for 16 bits does slowly; f16+a16 is what is deployed there.
TEST(Baseline, OnAChipOf16BitsIsF16A16) {
  Study study = study_by_hand(
      {{"f16", 30.0, 8000, 800}, {"f16+a16", 30.0, 1000, 400}, {"int4", 30.1, 4000, 100}, {"int4+a16", 30.1, 500, 100}},
      {"npu", "gpu"});
  study.chips[1].is_16_bit = true;
  EXPECT_EQ(baseline_of(study, 0), 0U);
  EXPECT_EQ(baseline_of(study, 1), 1U);
  EXPECT_EQ(baseline_of(study), 0U);  // of perplexity and bytes, on no chip
  // 16 and 5 us against 1.5 us.
  const std::vector<Verdict> all = verdicts(study);
  EXPECT_NE(all[0].sentence.find("1.50 µs for 16 + 10 tokens, 10.7x f16's speed"), std::string::npos)
      << all[0].sentence;
  EXPECT_NE(all[1].sentence.find("1.50 µs for 16 + 10 tokens, 3.33x f16+a16's speed"), std::string::npos)
      << all[1].sentence;
  study.schemes.erase(study.schemes.begin() + 1);
  EXPECT_EQ(baseline_of(study, 1), 0U);
}

TEST(Ratio, IsAbsentWhereThereIsNothingToDivide) {
  EXPECT_EQ(ratio(6, 3), 2.0);
  EXPECT_EQ(ratio(6, 0), std::nullopt);
  EXPECT_EQ(ratio(0, 3), std::nullopt);
}

// 3000 cycles of prompt and 10 tokens of 500 at 1 GHz.
TEST(Request, IsThePromptAndEachToken) {
  Study study = study_by_hand({{"f16", 30.0, 3000, 500}}, {"chip"});
  EXPECT_DOUBLE_EQ(request_s(study.schemes[0].chips[0], study.protocol), 8e-6);
}

TEST(Pareto, KeepsWhatNothingBeats) {
  const std::vector<double> cost{4, 1, 2, 3, 2, kInf}, loss{1, 5, 3, 3, 4, 0};
  EXPECT_EQ(pareto_front(cost, loss), (std::vector<size_t>{1, 2, 0}));
  EXPECT_TRUE(pareto_front({}, {}).empty());
}

TEST(Pareto, KeepsEqualPoints) {
  const std::vector<double> cost{2, 2}, loss{3, 3};
  EXPECT_EQ(pareto_front(cost, loss).size(), 2U);
}

// A point is on the front if and only if no other is at least as good in both and better in one.
TEST(Pareto, AgreesWithTheDefinition) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> cost, loss;
    for (int i = 0; i < 9; ++i) cost.push_back(random() % 5), loss.push_back(random() % 5);
    std::vector<bool> on_front(cost.size());
    for (size_t i : pareto_front(cost, loss)) on_front[i] = true;
    for (size_t i = 0; i < cost.size(); ++i) {
      bool beaten = false;
      for (size_t o = 0; o < cost.size(); ++o)
        beaten |= cost[o] <= cost[i] && loss[o] <= loss[i] && (cost[o] < cost[i] || loss[o] < loss[i]);
      EXPECT_EQ(on_front[i], !beaten);
    }
  }
}

TEST(Verdict, NamesTheWinnerItsRatioAndTheReason) {
  // f16: 3000 + 10 * 500 = 8 us; int4: 1000 + 10 * 100 = 2 us: four times the speed.
  Study study = study_by_hand({{"f16", 30.0, 3000, 500}, {"int4", 30.1, 1000, 100}}, {"chip"});
  const std::vector<Verdict> all = verdicts(study);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].winner, 1U);
  EXPECT_FALSE(all[0].close_to_best);
  EXPECT_EQ(all[0].sentence,
            "int4 is fastest on chip: 2.00 µs for 16 + 10 tokens, 4.00x f16's speed (weight bytes 1.00 µs instead of "
            "5.00 µs, MAC array 1.00 µs instead of 3.00 µs).");
}

// What has no cost takes no time: a scheme that is quick by that does not win.
TEST(Verdict, DoesNotCompareSchemesWhoseKernelsHaveNoCost) {
  Study study = study_by_hand({{"f16", 30.0, 3000, 500}, {"int3", 30.1, 10, 1}, {"int4", 30.1, 1000, 100}}, {"chip"});
  ++study.schemes[1].chips[0].decode.kernels;  // one more than have a cost
  const Verdict v = verdicts(study)[0];
  EXPECT_EQ(v.winner, 2U);
  EXPECT_NE(v.sentence.find("int4 is fastest on chip"), std::string::npos) << v.sentence;
  EXPECT_NE(v.sentence.find("Not compared, as kernels without a cost are left out of its latency: int3."),
            std::string::npos)
      << v.sentence;
  const std::vector<std::string> lines = footer_lines(study);
  EXPECT_EQ(std::count(lines.begin(),
                       lines.end(),
                       "kernels without a cost on chip, left out of its figures (kernels.csv says why): int3 1"),
            1);
}

TEST(Verdict, SaysWhatAWinnerLoses) {
  Study study = study_by_hand({{"f16", 30.0, 3000, 500}, {"int4", 30.1, 1000, 100}}, {"chip"});
  Cost& decode = study.schemes[1].chips[0].decode.cost;
  at(decode.components, Component::dequantize).latency_cycles = 100;
  decode.latency_cycles += 100;
  decode.latency_s += 100e-9;
  EXPECT_NE(verdicts(study)[0].sentence.find(", though dequantize 1.00 µs instead of 0 s)"), std::string::npos)
      << verdicts(study)[0].sentence;
}

// The array of both has 700 cycles of work per token; under f16 they hide behind 900 cycles of weights.
TEST(Verdict, AnArrayThatComesToLightIsNoLoss) {
  Study study = study_by_hand({{"f16", 30.0, 0, 900}, {"int4", 30.1, 0, 700}}, {"chip"});
  study.schemes[1].chips[0].decode = phase_by_hand(Component::array, 700);
  for (SchemeResult& s : study.schemes) s.chips[0].decode.cost.resources = {{"array", 700}, {"dram", 400}};
  EXPECT_NE(
      verdicts(study)[0].sentence.find("(weight bytes 0 s instead of 9.00 µs; then the MAC array binds, 7.00 µs)"),
      std::string::npos)
      << verdicts(study)[0].sentence;
  study.schemes[0].chips[0].decode.cost.resources[0].cycles = 300;
  EXPECT_NE(verdicts(study)[0].sentence.find(", though MAC array 7.00 µs instead of 0 s)"), std::string::npos)
      << verdicts(study)[0].sentence;
}

TEST(Verdict, NamesASchemeOfGoodQualityToo) {
  Study study =
      study_by_hand({{"f16", 30.0, 3000, 500}, {"int2", 90.0, 1000, 100}, {"int8", 30.2, 2000, 200}}, {"chip"});
  const Verdict v = verdicts(study)[0];
  EXPECT_EQ(v.winner, 1U);
  EXPECT_EQ(v.close_to_best, 2U);
  EXPECT_NE(v.sentence.find("; within 1 % of the best perplexity int8, 2.00x f16's speed."), std::string::npos)
      << v.sentence;
}

/// Figures of windows whose mean is a scheme's perplexity: `spread` moves all schemes alike, `noise` this one alone.
void add_windows(SchemeResult& scheme, double nats, double noise) {
  constexpr int kWindows = 8;
  for (int w = 0; w < kWindows; ++w)
    scheme.window_nats.push_back(nats + 0.5 * std::cos(3.0 * w) + (w % 2 ? noise : -noise));
  double mean = 0;
  for (double v : scheme.window_nats) mean += v / kWindows;
  scheme.perplexity = std::exp(mean);
}

// int8 is 0.5 % worse with windows that agree, int4 0.5 % worse with windows that do not: the second may be 2 % worse.
TEST(Verdict, WithinOnePercentIsSaidOfWhatIsSure) {
  Study study = study_by_hand(
      {{"f16", 30.0, 3000, 500}, {"int2", 90.0, 1000, 100}, {"int4", 30, 1500, 150}, {"int8", 30, 2000, 200}},
      {"chip"});
  add_windows(study.schemes[0], 3.4, 0);
  add_windows(study.schemes[1], 4.4, 0);
  add_windows(study.schemes[2], 3.405, 0.03);
  add_windows(study.schemes[3], 3.405, 0.001);
  const auto surely = [&](size_t s) { return is_surely_within(study.schemes[s], study.schemes[0], 1.01); };
  EXPECT_TRUE(surely(0) && surely(3));
  EXPECT_FALSE(surely(1) || surely(2));
  const Verdict v = verdicts(study)[0];
  EXPECT_EQ(v.winner, 1U);
  EXPECT_EQ(v.close_to_best, 3U);
  // 0.001 * sqrt(8 / 7) / sqrt(8): the windows' differences are 0.005 +- 0.001.
  EXPECT_NE(v.sentence.find("within 1 % of the best perplexity int8 (0.50 % +- 0.04 %), "), std::string::npos)
      << v.sentence;
}

// Each perplexity alone spreads by a third; on the same windows a difference of 0.5 % is one, or is none.
TEST(Quality, IsOrderedByPairedDifferences) {
  Study study = study_by_hand({{"a"}, {"b"}, {"c"}, {"d"}}, {});
  add_windows(study.schemes[0], 3.4, 0);
  add_windows(study.schemes[1], 3.405, 0.001);
  add_windows(study.schemes[2], 3.405, 0.03);
  const auto& s = study.schemes;
  EXPECT_EQ(quality_order(s[0], s[1]), -1);
  EXPECT_EQ(quality_order(s[1], s[0]), 1);
  EXPECT_EQ(quality_order(s[0], s[2]), 0);
  EXPECT_EQ(quality_order(s[2], s[0]), 0);
  EXPECT_EQ(quality_order(s[0], s[3]), -1);  // what was not measured is the worst
  EXPECT_EQ(quality_order(s[3], s[3]), 0);
  EXPECT_NEAR(*quality_gap(s[1], s[0])->error, 0.001 * std::sqrt(8.0 / 7) / std::sqrt(8.0), 1e-9);
}

// A worse mean that this text does not tell from the better one is no reason to leave a faster scheme out.
TEST(Candidates, AreNotBeatenByNoise) {
  Study study = study_by_hand({{"f16", 30.0, 3000, 500}, {"int8", 30.0, 2000, 200}}, {"chip"});
  add_windows(study.schemes[0], 3.4, 0);
  add_windows(study.schemes[1], 3.401, 0.03);
  std::vector<Candidate> all = candidates(study);
  EXPECT_FALSE(all[0].best);  // slower, and not surely better
  EXPECT_TRUE(all[1].best);
  study.schemes[1].window_nats.clear();
  add_windows(study.schemes[1], 3.401, 0);
  all = candidates(study);
  EXPECT_TRUE(all[0].best && all[1].best);
}

TEST(Verdict, SaysSoWhereNothingBeatsTheBaseline) {
  Study study = study_by_hand({{"f16", 30.0, 100, 10}, {"int4", 31.0, 1000, 100}}, {"chip"});
  EXPECT_EQ(verdicts(study)[0].sentence,
            "f16 is fastest on chip: 200 ns for 16 + 10 tokens, and nothing beats the baseline.");
  study.schemes.pop_back();
  EXPECT_EQ(verdicts(study)[0].sentence, "f16 is fastest on chip: 200 ns for 16 + 10 tokens, the only scheme.");
  study.schemes.clear();
  EXPECT_TRUE(verdicts(study).empty());
}

TEST(Verdict, OfEquallyFastSchemesTheBetterWins) {
  Study study = study_by_hand({{"f16", 30.0, 3000, 500}, {"a", 30.2, 1000, 100}, {"b", 30.1, 1000, 100}}, {"chip"});
  EXPECT_EQ(verdicts(study)[0].winner, 2U);
}

TEST(Verdict, OnePerChip) {
  Study study = study_by_hand({{"f16", 30.0, 3000, 500}, {"int4", 30.1, 1000, 100}}, {"a", "b"});
  study.schemes[1].chips[1] = {"b", phase_by_hand(Component::array, 9000), phase_by_hand(Component::weights, 900)};
  EXPECT_EQ(verdicts(study)[0].winner, 1U);
  EXPECT_EQ(verdicts(study)[1].winner, 0U);
}

TEST(Precision, RemarksAreSaidOnce) {
  ChipResult result = study_by_hand({{"f16", 30.0, 1, 1}}, {"chip"}).schemes[0].chips[0];
  result.prefill.cost.precisions = {{"float32 x float32", "int16 x int16", 4, 10},
                                    {"int8 x int8", "int8 x int8", 1, 10}};
  result.decode.cost.precisions = {{"float32 x float32", "int16 x int16", 4, 1}, {"int4 x int8", "int8 x int8", 1, 1}};
  EXPECT_EQ(precision_remarks(result),
            (std::vector<std::string>{"float32 x float32 runs as int16 x int16 in 4 passes",
                                      "int4 x int8 runs as int8 x int8"}));
}

}  // namespace
}  // namespace sator::study
