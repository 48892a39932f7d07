// SCALE-Sim's own runs against the reader, the closed forms and the model of its SRAMs.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "dataflow/reference_rows.h"
#include "formats/scalesim/answer.h"
#include "formats/scalesim/compute.h"

namespace sator::formats {
namespace {

using namespace dataflow;

using nlohmann::json;

std::string config_text(const json& row, const std::string& mode, int64_t words, int64_t sram_kb) {
  return text("[general]\nrun_name = r\n\n[architecture_presets]\nArrayHeight: ",
              row["array_h"].get<int64_t>(),
              "\nArrayWidth: ",
              row["array_w"].get<int64_t>(),
              "\nIfmapSramSzkB: ",
              sram_kb,
              "\nFilterSramSzkB: ",
              sram_kb,
              "\nOfmapSramSzkB: ",
              sram_kb,
              "\nIfmapOffset: 0\nFilterOffset: 10000000\nOfmapOffset: 20000000\nBandwidth : ",
              words,
              "\nDataflow : ",
              row["dataflow"].get<std::string>(),
              "\nMemoryBanks: 1\nReadRequestBuffer: 32\nWriteRequestBuffer: 32\n\n[layout]\nIfmapCustomLayout: False\n"
              "IfmapSRAMBankBandwidth: ",
              words,
              "\nIfmapSRAMBankNum: 10\nIfmapSRAMBankPort: 2\nFilterCustomLayout: False\nFilterSRAMBankBandwidth: ",
              words,
              "\nFilterSRAMBankNum: 10\nFilterSRAMBankPort: 2\n\n[sparsity]\nSparsitySupport : false\n\n"
              "[run_presets]\nInterfaceBandwidth: ",
              mode,
              "\nUseRamulatorTrace: False\n");
}

std::string topology_of(const json& layer) {
  const auto n = [&](const char* key) { return layer[key].get<int64_t>(); };
  const std::string name = layer["name"].get<std::string>();
  if (layer.contains("M")) return text("Layer, M, N, K,\n", name, ", ", n("M"), ", ", n("N"), ", ", n("K"), ",\n");
  return text("Layer, H, W, R, S, C, K, Strides,\n",
              name,
              ", ",
              n("H"),
              ", ",
              n("W"),
              ", ",
              n("R"),
              ", ",
              n("S"),
              ", ",
              n("C"),
              ", ",
              n("K"),
              ", ",
              n("stride"),
              ",\n");
}

/// Compares every key of the row but those named; says how many rows are equal in each.
void compare(const std::vector<json>& rows, const std::vector<json>& answers, const std::vector<std::string>& but) {
  std::map<std::string, size_t> equal;
  for (size_t i = 0; i < rows.size(); ++i)
    for (const auto& [key, want] : rows[i].items()) {
      if (std::find(but.begin(), but.end(), key) != but.end()) continue;
      const json& got = answers[i].contains(key) ? answers[i][key] : json();
      // Mean shares are sums of another order there: one unit of the sixth decimal.
      const bool same = want.is_number_float() && got.is_number()
                            ? std::abs(want.get<double>() - got.get<double>()) <= 1.01e-6
                            : want == got;
      equal[key] += same;
      EXPECT_TRUE(same) << key << ": " << got << " for " << rows[i].dump();
    }
  for (const auto& [key, count] : equal) EXPECT_EQ(count, rows.size()) << key;
}

TEST(ScalesimCases, ArrayCountsAreEqual) {
  const std::vector<json> rows = reference_rows("cost/scalesim_v3_compute.jsonl");
  std::vector<json> answers;
  for (const json& row : rows) {
    const json answer = answer_scalesim({{"config", config_text(row, "CALC", 10, 1 << 20)},
                                         {"topology", topology_of(row["layer"])},
                                         {"gemm", row["layer"].contains("M")}});
    ASSERT_EQ(answer["layers"].size(), 1u);
    answers.push_back(answer["layers"][0]);
  }
  compare(rows, answers, {"sim_seconds"});
}

// SCALE-Sim v2's look-up tables of output-stationary products, as LLMCompass ships them.
TEST(ScalesimCases, Version2CyclesAreEqual) {
  const std::vector<json> rows = reference_rows("cost/scalesim_v2_lut_from_llmcompass.jsonl");
  for (const json& row : rows) {
    ASSERT_EQ(row["dataflow"], "os");
    const ScalesimConfig config{.rows = row["array_h"], .cols = row["array_w"], .dataflow = Stationary::output};
    const ScalesimCompute compute = scalesim_compute(
        config,
        parse_scalesim_topology(topology_of({{"name", "l"}, {"M", row["M"]}, {"N", row["N"]}, {"K", row["K"]}}), true)
            .at(0));
    EXPECT_EQ(compute.cycles, row["cycles"]) << row.dump();
  }
}

TEST(ScalesimCases, MemoryIsEqual) {
  const std::vector<json> rows = reference_rows("cost/scalesim_v3_full.jsonl");
  std::vector<json> answers;
  for (const json& row : rows) {
    const json answer =
        answer_scalesim({{"config", config_text(row, row["mode"], row["dram_words_per_cycle"], row["sram_KB_each"])},
                         {"topology", topology_of(row)},
                         {"gemm", true},
                         {"compat", "scalesim"}});
    ASSERT_EQ(answer["layers"].size(), 1u);
    answers.push_back(answer["layers"][0]);
  }
  compare(rows, answers, {"sim_seconds"});
}

// Runs of SCALE-Sim v3 itself on random layers (products by M, N, K; convolutions by H, W, R, S, C, K, stride), arrays and SRAMs
// of all kinds, recorded in scalesim_runs.jsonl.
TEST(ScalesimCases, RandomRunsAreEqual) {
  const std::vector<json> runs = json_lines(fs::path(SATOR_SOURCE_DIR) / "tests/formats/scalesim_runs.jsonl");
  for (const json& run : runs) {
    SCOPED_TRACE(run.dump());
    const std::vector<int64_t> array = run["array"], kb = run["sram_kb"], words = run["words"];
    const std::string config =
        text("[general]\nrun_name = r\n[architecture_presets]\nArrayHeight: ",
             array[0],
             "\nArrayWidth: ",
             array[1],
             "\nIfmapSramSzkB: ",
             kb[0],
             "\nFilterSramSzkB: ",
             kb[1],
             "\nOfmapSramSzkB: ",
             kb[2],
             "\nIfmapOffset: 0\nFilterOffset: 10000000\nOfmapOffset: 20000000\nBandwidth : ",
             words[2],
             "\nDataflow : ",
             run["dataflow"].get<std::string>(),
             "\n[layout]\nIfmapCustomLayout: False\nIfmapSRAMBankBandwidth: ",
             words[0],
             "\nIfmapSRAMBankNum: 1\nIfmapSRAMBankPort: 2\nFilterCustomLayout: False\nFilterSRAMBankBandwidth: ",
             words[1],
             "\nFilterSRAMBankNum: 1\nFilterSRAMBankPort: 2\n[sparsity]\nSparsitySupport : false\n[run_presets]\n"
             "InterfaceBandwidth: ",
             run["mode"].get<std::string>(),
             "\nUseRamulatorTrace: False\n");
    std::string topology = "heading\nl";
    for (int64_t size : run["layer"]) topology += text(", ", size);
    const json answer = answer_scalesim({{"config", config},
                                         {"topology", topology + ",\n"},
                                         {"gemm", run["layer"].size() == 3},
                                         {"compat", "scalesim"}});
    const json& layer = answer["layers"].at(0);
    for (const auto& [key, want] : run["want"].items()) {
      ASSERT_TRUE(layer.contains(key)) << key;
      if (want.is_number_float())
        EXPECT_NEAR(layer[key].get<double>(), want.get<double>(), 1.01e-6) << key;
      else
        EXPECT_EQ(layer[key], want) << key;
    }
  }
  EXPECT_GE(runs.size(), 50u);
}

}  // namespace
}  // namespace sator::formats
