#include "study/explain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>

#include "base/error.h"
#include "base/text.h"
#include "study/by_hand.h"
#include "study/sample.h"
#include "temp_folder.h"

namespace sator::study {
namespace {

std::string all(const std::vector<std::string>& lines) { return join(lines, "\n"); }

/// 3.2 of "3.2 k".
double value_of(const std::string& number, const std::string& prefix) {
  static const std::map<std::string, double> kPrefixes = {{"", 1},
                                                          {"f", 1e-15},
                                                          {"p", 1e-12},
                                                          {"n", 1e-9},
                                                          {"µ", 1e-6},
                                                          {"m", 1e-3},
                                                          {"k", 1e3},
                                                          {"M", 1e6},
                                                          {"G", 1e9},
                                                          {"T", 1e12}};
  return std::stod(number) * kPrefixes.at(prefix);
}

// Each "a B / b B/s = c s" and "n x a = b" in the answers is true, to the three digits that it has.
TEST(Explain, FormulasHold) {
  const Study study = sample_study(default_samples(), {"tpuv1", "gemmini16", "edge_npu32"});
  const std::regex quotient(R"(([\d.]+) ([kMGT]?)B / ([\d.]+) ([kMGT]?)B/s = ([\d.]+) ([fpnµm]?|µ)s)");
  const std::regex product(R"((\d+) x ([\d.]+) ([fpnm]|µ)?([sJ]) = ([\d.]+) ([fpnm]|µ)?[sJ])");
  int quotients = 0, products = 0;
  for (size_t s = 0; s < study.schemes.size(); ++s)
    for (size_t c = 0; c < study.chips.size(); ++c)
      for (const PhaseName& phase : kPhases)
        for (const FigureName& figure : figures()) {
          const std::string words = all(explain(study, s, c, phase, figure.figure));
          EXPECT_EQ(words.find("nan"), std::string::npos) << words;
          for (std::sregex_iterator m(words.begin(), words.end(), quotient), end; m != end; ++m, ++quotients)
            EXPECT_NEAR(value_of((*m)[1], (*m)[2]) / value_of((*m)[3], (*m)[4]) / value_of((*m)[5], (*m)[6]), 1, 0.02)
                << (*m)[0];
          for (std::sregex_iterator m(words.begin(), words.end(), product), end; m != end; ++m, ++products)
            EXPECT_NEAR(std::stod((*m)[1]) * value_of((*m)[2], (*m)[3]) / value_of((*m)[5], (*m)[6]), 1, 0.02)
                << (*m)[0];
        }
  EXPECT_GT(quotients, 50);
  EXPECT_GT(products, 50);
}

// 100 cycles at 1 GHz, all of them the array's; 10 tokens per cycle moved.
TEST(Explain, ByHand) {
  const Study study = study_by_hand({{"f16", 20.0, 100, 10}, {"int4", 20.0 * std::exp(0.05), 50, 4}}, {"chip"});
  const std::string latency = all(explain(study, 0, 0, kPhases[0], Figure::latency));
  EXPECT_NE(latency.find("prefill latency of f16 on chip is 100 ns: 100 cycles at 1.00 GHz"), std::string::npos)
      << latency;
  EXPECT_NE(latency.find("MAC array                         100 ns, 100 %:"), std::string::npos) << latency;
  const std::string bytes = all(explain(study, 1, 0, kPhases[1], Figure::bytes));
  EXPECT_NE(bytes.find("decode traffic of int4 on chip is 40.0 B of dram"), std::string::npos) << bytes;
  const std::string quality = all(explain(study, 1, 0, kPhases[0], Figure::perplexity));
  EXPECT_NE(quality.find("= 0.0500 nats per token, 5.1 % of perplexity"), std::string::npos) << quality;
  EXPECT_NE(all(explain(study_by_hand({{"f16", {}, 1, 1}}, {"chip"}), 0, 0, kPhases[0], Figure::perplexity))
                .find("was not measured"),
            std::string::npos);
}

TEST(Explain, EnergyIsPerPieceOfWork) {
  // 1000 products of 2 pJ, 80 bits of 10 pJ, 3 W for 1 ns.
  KernelRow row{.function = "f"};
  row.cost.latency_s = 1e-9;
  row.cost.macs = 1000;
  row.cost.levels = {{.name = "dram", .read_bits = 80, .by_kind = {.weight = 80}}};
  row.cost.energy = {{"mac", 2e-9, "a book"}, {"dram", 0.8e-9, ""}, {"static", 3e-9, ""}};
  row.cost.energy_j = 5.8e-9;
  const std::string words = all(explain_kernel(row, {.name = "chip", .clock_hz = 1e9}, Figure::energy));
  EXPECT_NE(words.find("2.00 nJ = 1.00 k MACs x 2.00 pJ, 34.5 %; a book"), std::string::npos) << words;
  EXPECT_NE(words.find("800 pJ = 80.0 bits x 10.0 pJ"), std::string::npos) << words;
  EXPECT_NE(words.find("3.00 nJ = 3.00 W x 1.00 ns"), std::string::npos) << words;
}

// A gain by elasticity: half of what a part takes goes, where it is twice as fast.
TEST(Explain, TwiceTheSpeedHalvesAPartsShare) {
  KernelRow row{.function = "f"};
  row.cost.latency_cycles = 1000, row.cost.latency_s = 1e-6;
  row.cost.bound = "dram";
  row.cost.levels = {{.name = "dram"}};
  row.cost.latency_parts = {{"dram", 800}, {"array: first or last tile", 200}};
  row.cost.elasticities = {{"array", 0.2}, {"dram", 0.8}};
  const std::string words = all(explain_kernel(row, {.name = "chip", .clock_hz = 1e9}, Figure::latency));
  EXPECT_TRUE(std::regex_search(words, std::regex("dram bandwidth +1.* µs x \\(1 - 0.800 / 2\\) = 600 ns"))) << words;
}

TEST(Explain, WhatDoesNotAddUpIsRefused) {
  Study study = sample_study({default_samples()[1]}, {"edge_npu32"});
  PhaseResult& decode = study.schemes[0].chips[0].decode;
  ++at(decode.cost.components, Component::weights).latency_cycles;
  EXPECT_THROW(explain(study, 0, 0, kPhases[1], Figure::latency), Error);
  ++decode.cost.levels[0].by_kind.weight;
  EXPECT_THROW(explain(study, 0, 0, kPhases[1], Figure::bytes), Error);
  ++decode.rows[3].cost.macs;
  EXPECT_THROW(explain(study, 0, 0, kPhases[1], Figure::macs), Error);
  decode.cost.energy[0].joules *= 2;
  EXPECT_THROW(explain(study, 0, 0, kPhases[1], Figure::energy), Error);
  study.schemes[0].bits_per_weight += 1;
  EXPECT_THROW(explain(study, 0, 0, kPhases[1], Figure::weight_bytes), Error);
}

// 64 x 64 x 64 on the 8 x 8 array, its outputs staying: 64 PEs work; a tile of the output takes in 8 rows and 8 columns of 64
// items, one PE after the other, so 8 x 8 tiles take 2 x 8 x 64 each, and every output leaves once.
TEST(Explain, TenetsFormulaIsTheLongestOfItsDelays) {
  const Chip chip = shipped("tenet-8x8");
  const dataflow::Kernel kernel = linear("matmul", 64, 64, 64, 16, true, 16);
  const dataflow::KernelCost cost = dataflow::CostEngine(chip).cost(kernel);
  KernelRow row = kernel_row({kernel.name, "", 1, {}}, kernel, cost, chip);
  ASSERT_EQ(row.tenet_terms.size(), 1U);
  const TenetTerms& t = row.tenet_terms[0];
  EXPECT_EQ(t.pes, 64);
  EXPECT_EQ(t.delay_compute, 64 * 64 * 64 / 64);
  EXPECT_EQ(t.items_in, 64 * (2 * 8 * 64));
  EXPECT_EQ(t.items_out, 64 * 64);
  EXPECT_EQ(t.delay_in, t.items_in * 16 / 64 + 16 - 1);
  EXPECT_EQ(cost.latency_cycles, t.delay_in);
  const std::string words = all(explain_kernel(row, facts_of(chip), Figure::latency));
  EXPECT_NE(
      words.find("16,399 cycles = 65,536 items new to the PEs x 16 bits / 64 bits per cycle + 16 - 1: the longest"),
      std::string::npos)
      << words;
  EXPECT_NE(words.find("4,096 cycles = 262,144 MACs / 64 PEs that ever work\n"), std::string::npos) << words;
  EXPECT_NE(all(explain_kernel(row, facts_of(chip), Figure::energy)).find("states no energies"), std::string::npos);
  ++row.tenet_terms[0].items_out;  // still so many whole words
  ++row.tenet_terms[0].delay_out;
  EXPECT_NE(error_of([&] { explain_kernel(row, facts_of(chip), Figure::latency); }).find("delay out by its terms"),
            std::string::npos);
}

// Each chunk of a prompt has its own row of a layer's attention: two layers in three chunks are two layers.
TEST(Explain, ChunksAreNoLayers) {
  Study study = study_by_hand({{"f16", {}, 600, 10}}, {"chip"});
  PhaseResult& prefill = study.schemes[0].chips[0].prefill;
  for (const char* layer : {"h.0.attn", "h.1.attn"})
    for (int64_t chunk : {1, 2, 3}) {
      KernelRow row{.function = "attention", .layer = layer};
      row.cost.latency_cycles = 50 * chunk;
      row.cost.latency_s = 50e-9 * static_cast<double>(chunk);
      row.cost.bound = "dram";
      prefill.rows.push_back(row);
    }
  const std::string words = all(explain(study, 0, 0, kPhases[0], Figure::latency));
  EXPECT_NE(words.find("attention (2 layers)"), std::string::npos) << words;
  EXPECT_NE(words.find("6 calls"), std::string::npos) << words;
}

TEST(Explain, KernelsAreFoundByFunctionAndLayer) {
  const Study study = sample_study({default_samples()[1]}, {"edge_npu32"});
  const PhaseResult& decode = study.schemes[0].chips[0].decode;
  EXPECT_EQ(kernels_named(decode, "head").front()->layer, "lm_head");
  EXPECT_EQ(kernels_named(decode, "transformer.h.3.mlp.c_fc").front()->function, "up");
  EXPECT_EQ(kernels_named(decode, "up").size(), 1U);  // eight layers alike
  try {
    kernels_named(decode, "qkw");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.reason.hint.find("qkv"), std::string::npos) << e.reason.hint;
  }
}

}  // namespace
}  // namespace sator::study
