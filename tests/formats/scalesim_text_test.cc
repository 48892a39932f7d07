// What a SCALE-Sim configuration and topology may say, and what each mistake is answered with.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "formats/refusals.h"
#include "formats/scalesim/answer.h"
#include "formats/scalesim/memory.h"

namespace sator::formats {
namespace {

const std::string kConfig =
    "[general]\n"
    "run_name = example\n"
    "\n"
    "[architecture_presets]\n"
    "ArrayHeight:    8\n"
    "ArrayWidth:     4\n"
    "IfmapSramSzkB:   64\n"
    "FilterSramSzkB:  32\n"
    "OfmapSramSzkB:   16\n"
    "IfmapOffset:    0\n"
    "FilterOffset:   10000000\n"
    "OfmapOffset:    20000000\n"
    "Bandwidth : 20,10\n"
    "Dataflow : ws\n"
    "MemoryBanks:   1\n"
    "ReadRequestBuffer: 32\n"
    "WriteRequestBuffer: 32\n"
    "\n"
    "[layout]\n"
    "IfmapCustomLayout: False\n"
    "IfmapSRAMBankBandwidth: 10\n"
    "IfmapSRAMBankNum: 10\n"
    "IfmapSRAMBankPort: 2\n"
    "FilterCustomLayout: False\n"
    "FilterSRAMBankBandwidth: 30\n"
    "FilterSRAMBankNum: 10\n"
    "FilterSRAMBankPort: 2\n"
    "\n"
    "[sparsity]\n"
    "SparsitySupport : false\n"
    "\n"
    "[run_presets]\n"
    "InterfaceBandwidth: USER\n"
    "UseRamulatorTrace: False\n";
const std::string kGemm = "Layer, M, N, K,\nfirst, 20, 12, 9,\nsecond, 5, 6, 7, 2:4,\n";
const std::string kConv =
    "Layer, H, W, R, S, C, K, Strides,\nc1, 9, 8, 3, 2, 4, 6, 2,\nc2, 5, 5, 1, 1, 3, 2, 1, 1:1,\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

TEST(ScalesimConfigText, ReadsWhatScaleSimReads) {
  const ScalesimConfig config = parse_scalesim_config(kConfig);
  EXPECT_EQ(config.run_name, "example");
  EXPECT_EQ(config.rows, 8);
  EXPECT_EQ(config.cols, 4);
  EXPECT_EQ(config.dataflow, Stationary::weight);
  EXPECT_TRUE(config.memory.user_bandwidth);
  EXPECT_EQ(config.memory.ifmap_kb, 64);
  EXPECT_EQ(config.memory.filter_kb, 32);
  EXPECT_EQ(config.memory.ofmap_kb, 16);
  EXPECT_EQ(config.memory.ifmap_words_per_cycle, 10);
  EXPECT_EQ(config.memory.filter_words_per_cycle, 30);
  EXPECT_EQ(config.memory.ofmap_words_per_cycle, 20);
}

// Rules of Python's configparser, from its documentation.
TEST(ScalesimConfigText, FollowsThePythonReader) {
  const auto rows = [](const std::string& line) {
    return parse_scalesim_config(replaced(kConfig, "ArrayHeight:    8\n", line)).rows;
  };
  EXPECT_EQ(rows("arrayheight = 12\n"), 12);
  EXPECT_EQ(rows("ARRAYHEIGHT=1_6\n"), 16);
  EXPECT_EQ(rows("ArrayHeight : +07 \n"), 7);
  EXPECT_EQ(rows("# comment\n; another\nArrayHeight: 9\r\n"), 9);
  EXPECT_EQ(rows("size = 5\nArrayHeight: %(size)s\n"), 5);
  EXPECT_EQ(rows("ArrayHeight:\n   6\n"), 6);
  EXPECT_EQ(parse_scalesim_config("[DEFAULT]\nArrayHeight: 3\n" + replaced(kConfig, "ArrayHeight:    8\n", "")).rows,
            3);
  EXPECT_EQ(parse_scalesim_config(replaced(kConfig, "example", "100%%")).run_name, "100%");
}

// Version 2 has no [layout], no [sparsity] and no Ramulator: Bandwidth is that of all three interfaces.
TEST(ScalesimConfigText, ReadsVersion2) {
  const size_t from = kConfig.find("[layout]"), to = kConfig.find("[run_presets]");
  const ScalesimConfig config =
      parse_scalesim_config(replaced(kConfig.substr(0, from) + kConfig.substr(to), "UseRamulatorTrace: False\n", ""));
  EXPECT_EQ(config.memory.ifmap_words_per_cycle, 20);
  EXPECT_EQ(config.memory.filter_words_per_cycle, 20);
  EXPECT_EQ(config.memory.ofmap_words_per_cycle, 20);
}

TEST(ScalesimTopologyText, ReadsProductsAndConvolutions) {
  const std::vector<ScalesimLayer> gemm = parse_scalesim_topology(kGemm, true);
  ASSERT_EQ(gemm.size(), 2u);
  EXPECT_EQ(gemm[0].name, "first");
  EXPECT_EQ((std::vector{gemm[0].m, gemm[0].n, gemm[0].k}), (std::vector<int64_t>{20, 12, 9}));
  const std::vector<ScalesimLayer> conv = parse_scalesim_topology(kConv, false);
  ASSERT_EQ(conv.size(), 2u);
  // (9 - 3) / 2 + 1 = 4 rows, (8 - 2) / 2 + 1 = 4 columns.
  EXPECT_EQ((std::vector{conv[0].m, conv[0].n, conv[0].k}), (std::vector<int64_t>{16, 6, 24}));
  // The last comma may be missing; a window that starts inside counts: (10 - 3) / 2 rounds up to 4, so 5 rows.
  EXPECT_EQ(parse_scalesim_topology("h\nl, 10, 9, 3, 3, 1, 1, 2", false).at(0).ofmap_h, 5);
  const std::vector<ScalesimLayer> depthwise = parse_scalesim_topology("h\nxDP, 9, 9, 3, 3, 3, 5, 1,\n", false);
  ASSERT_EQ(depthwise.size(), 3u);
  EXPECT_EQ(depthwise[2].name, "xDPChannel_2");
  EXPECT_EQ(depthwise[2].k, 9);
}

TEST(ScalesimTopologyText, RoundTripsAreStable) {
  for (bool gemm : {true, false}) {
    const std::string once = scalesim_topology_text(parse_scalesim_topology(gemm ? kGemm : kConv, gemm), gemm);
    EXPECT_EQ(scalesim_topology_text(parse_scalesim_topology(once, gemm), gemm), once);
  }
}

/// Every refusal shows the line too.
void expect_shown(const nlohmann::json& input, const std::string& file, int64_t line, const std::string& note) {
  EXPECT_FALSE(expect_refusal("scalesim", input, file, line, note).program.empty()) << note;
}

constexpr Mistake kConfigMistakes[] = {
    {"[general]", "general", 1},
    {"[general]", "[general", 1},
    {"[general]", "[]", 1},
    {"[general]", "run_name = early\n[general]", 1},
    {"[general]", "[General]", 1},
    {"run_name = example", "run_name", 2},
    {"run_name = example", "= example", 2},
    {"run_name = example", ": example", 2},
    {"run_name = example", "name = example", 1},
    {"run_name = example", "run_name = 5%", 2},
    {"run_name = example", "run_name = %(nothing)s", 2},
    {"run_name = example", "run_name = %(run_name)s", 2},
    {"run_name = example", "run_name = %(run_name", 2},
    {"run_name = example", "run_name = a\nRUN_NAME = b", 3},
    {"[architecture_presets]", "[architecture]", 4},
    {"[architecture_presets]", "[architecture_presets]\n[architecture_presets]", 5},
    {"ArrayHeight:    8\n", "", 4},
    {"ArrayHeight:    8", "ArrayHeight:", 5},
    {"ArrayHeight:    8", "ArrayHeight 8", 5},
    {"ArrayHeight:    8", "ArrayHeight: 0", 5},
    {"ArrayHeight:    8", "ArrayHeight: -8", 5},
    {"ArrayHeight:    8", "ArrayHeight: 8.0", 5},
    {"ArrayHeight:    8", "ArrayHeight: eight", 5},
    {"ArrayHeight:    8", "ArrayHeight: 8 8", 5},
    {"ArrayHeight:    8", "ArrayHeight: 0x8", 5},
    {"ArrayHeight:    8", "ArrayHeight: 8e1", 5},
    {"ArrayHeight:    8", "ArrayHeight: 1__6", 5},
    {"ArrayHeight:    8", "ArrayHeight: _16", 5},
    {"ArrayHeight:    8", "ArrayHeight: 16_", 5},
    {"ArrayHeight:    8", "ArrayHeight: 9223372036854775808", 5},
    {"ArrayHeight:    8", "ArrayHeight: 99999999999999999999999999999", 5},
    {"ArrayHeight:    8", "ArrayHeight: 8 # rows", 5},
    {"ArrayWidth:     4", "  ArrayWidth: 4", 5},
    {"ArrayHeight:    8", "ArrayHeight: 8\n  8", 5},
    {"ArrayHeight:    8", "ArrayHeight: 8\nArrayHeight: 8", 6},
    {"ArrayHeight:    8", "ArrayHeight: 8\narrayheight = 9", 6},
    {"ArrayWidth:     4\n", "", 4},
    {"ArrayWidth:     4", "ArrayWidth: 0", 6},
    {"ArrayWidth:     4", "ArrayWidth: ,4", 6},
    {"ArrayWidth:     4", "ArrayWidth: 4;", 6},
    {"IfmapSramSzkB:   64\n", "", 4},
    {"IfmapSramSzkB:   64", "IfmapSramSzkB: 0", 7},
    {"IfmapSramSzkB:   64", "IfmapSramSzkB: 64kB", 7},
    {"FilterSramSzkB:  32\n", "", 4},
    {"FilterSramSzkB:  32", "FilterSramSzkB: -1", 8},
    {"OfmapSramSzkB:   16\n", "", 4},
    {"OfmapSramSzkB:   16", "OfmapSramSzkB: 0", 9},
    {"IfmapOffset:    0\n", "", 4},
    {"IfmapOffset:    0", "IfmapOffset: -1", 10},
    {"FilterOffset:   10000000", "FilterOffset: 0x100", 11},
    {"OfmapOffset:    20000000", "OfmapOffset: twenty", 12},
    {"Bandwidth : 20,10\n", "", 4},
    {"Bandwidth : 20,10", "Bandwidth : 20,", 13},
    {"Bandwidth : 20,10", "Bandwidth : 20;10", 13},
    {"Bandwidth : 20,10", "Bandwidth : 0", 13},
    {"Bandwidth : 20,10", "Bandwidth :", 13},
    {"Dataflow : ws\n", "", 4},
    {"Dataflow : ws", "Dataflow : WS", 14},
    {"Dataflow : ws", "Dataflow : rs", 14},
    {"Dataflow : ws", "Dataflow : ", 14},
    {"Dataflow : ws", "Dataflow : ws os", 14},
    {"IfmapCustomLayout: False", "IfmapCustomLayout: True", 20},
    {"IfmapCustomLayout: False", "IfmapCustomLayout: maybe", 20},
    {"IfmapCustomLayout: False\n", "", 19},
    {"IfmapSRAMBankBandwidth: 10\n", "", 19},
    {"IfmapSRAMBankBandwidth: 10", "IfmapSRAMBankBandwidth: 0", 21},
    {"IfmapSRAMBankNum: 10", "IfmapSRAMBankNum: 3", 22},
    {"IfmapSRAMBankNum: 10", "IfmapSRAMBankNum: none", 22},
    {"IfmapSRAMBankPort: 2", "IfmapSRAMBankPort: 0", 23},
    {"FilterCustomLayout: False", "FilterCustomLayout: yes", 24},
    {"FilterSRAMBankBandwidth: 30", "FilterSRAMBankBandwidth: 31", 26},
    {"FilterSRAMBankNum: 10\n", "", 19},
    {"FilterSRAMBankPort: 2", "FilterSRAMBankPort: two", 27},
    {"SparsitySupport : false", "SparsitySupport : true", 30},
    {"SparsitySupport : false\n", "", 29},
    {"[run_presets]", "[presets]", 32},
    {"[layout]", "[layot]", 19},
    {"[sparsity]", "[sparsty]", 29},
    {"InterfaceBandwidth: USER\n", "", 32},
    {"InterfaceBandwidth: USER", "InterfaceBandwidth: user", 33},
    {"InterfaceBandwidth: USER", "InterfaceBandwidth:", 33},
    {"UseRamulatorTrace: False", "UseRamulatorTrace: True", 34},
    {"UseRamulatorTrace: False", "UseRamulatorTrace False", 34},
    {"UseRamulatorTrace: False", "UseRamulatorTrace: Fals", 34},
    {"SparsitySupport : false", "SparsitySupport : perhaps", 30},
    {"UseRamulatorTrace: False", "\xff\xfe\x01", 34},
};

constexpr Mistake kGemmMistakes[] = {
    {"first, 20, 12, 9,", "first, 20, 12,", 2},
    {"first, 20, 12, 9,", "first", 2},
    {"first, 20, 12, 9,", ", , , ,9", 2},
    {"first, 20, 12, 9,", "first; 20; 12; 9;", 2},
    {"first, 20, 12, 9,", "first, 20, 12, 9, 1:1, 5,", 2},
    {"first, 20, 12, 9,", "first, 20, 12, 9, 7,", 2},
    {"first, 20, 12, 9,", "first, 20, 12, 9, 1:,", 2},
    {"first, 20, 12, 9,", "first, 20, 12, 9, 0:4,", 2},
    {"first, 20, 12, 9,", "first, 20, 12, 9, 1:2:3,", 2},
    {"first, 20, 12, 9,", "first, 0, 12, 9,", 2},
    {"first, 20, 12, 9,", "first, 20, -12, 9,", 2},
    {"first, 20, 12, 9,", "first, 20, 12, K,", 2},
    {"first, 20, 12, 9,", "first, 20, , 9,", 2},
    {"first, 20, 12, 9,", "first, 2 0, 12, 9,", 2},
    {"first, 20, 12, 9,", "first, 20.5, 12, 9,", 2},
    {"first, 20, 12, 9,", "first, 1e3, 12, 9,", 2},
    {"first, 20, 12, 9,", "first, \"20\", 12, 9,", 2},
    {"first, 20, 12, 9,", "first, 9223372036854775808, 12, 9,", 2},
    {"first, 20, 12, 9,", "first, 4294967296, 4294967296, 9,", 2},
    {"first, 20, 12, 9,", "first, 9223372036854775807, 1, 9223372036854775807,", 2},
    {"second, 5, 6, 7, 2:4,", "second", 3},
    {"second, 5, 6, 7, 2:4,", "second, 5, 6, 7, a:b,", 3},
    {"first, 20, 12, 9,\nsecond, 5, 6, 7, 2:4,", "", 3},
};

constexpr Mistake kConvMistakes[] = {
    {"c1, 9, 8, 3, 2, 4, 6, 2,", "c1, 9, 8, 3, 2, 4, 6,", 2},
    {"c1, 9, 8, 3, 2, 4, 6, 2,", "c1, 9, 8, 3, 2, 4, 6, 2, 2,", 2},
    {"c1, 9, 8, 3, 2, 4, 6, 2,", "c1, 9, 8, 3, 2, 4, 6, 0,", 2},
    {"c1, 9, 8, 3, 2, 4, 6, 2,", "c1, 9, 8, 10, 2, 4, 6, 2,", 2},
    {"c1, 9, 8, 3, 2, 4, 6, 2,", "c1, 9, 8, 3, 9, 4, 6, 2,", 2},
    {"c1, 9, 8, 3, 2, 4, 6, 2,", "c1, 9, 8, 3, 2, 4, six, 2,", 2},
    {"c1, 9, 8, 3, 2, 4, 6, 2,", "c1, 9, 8, 3, 2, 0, 6, 2,", 2},
    {"c1, 9, 8, 3, 2, 4, 6, 2,", "c1, 3037000500, 3037000500, 1, 1, 1, 1, 1,", 2},
    {"c1, 9, 8, 3, 2, 4, 6, 2,", "c1, 3, 3, 3, 3, 9223372036854775807, 1, 1,", 2},
    {"c1, 9, 8, 3, 2, 4, 6, 2,", "DP, 3, 3, 3, 3, 9000000, 1, 1,", 2},
    {"c2, 5, 5, 1, 1, 3, 2, 1, 1:1,", "c2, 5, 5, 1, 1, 3, 2, 1, 1-1,", 3},
};

TEST(ScalesimTextMistakes, EachNamesItsLine) {
  for (const Mistake& m : kConfigMistakes)
    expect_refusal("scalesim",
                   {{"config", replaced(kConfig, m.what, m.by)}, {"topology", kGemm}, {"gemm", true}},
                   "config",
                   m.line,
                   text(m.what, " -> ", m.by));
  for (const Mistake& m : kGemmMistakes)
    expect_refusal("scalesim",
                   {{"config", kConfig}, {"topology", replaced(kGemm, m.what, m.by)}, {"gemm", true}},
                   "topology",
                   m.line,
                   m.by);
  for (const Mistake& m : kConvMistakes)
    expect_refusal(
        "scalesim", {{"config", kConfig}, {"topology", replaced(kConv, m.what, m.by)}}, "topology", m.line, m.by);
  expect_shown({{"config", ""}, {"topology", kConv}}, "config", 1, "empty config");
  expect_shown({{"config", kConfig}, {"topology", ""}}, "topology", 1, "empty topology");
  expect_refusal(
      "scalesim", {{"config", kConfig}, {"topology", kGemm}}, "topology", 2, "a product read as a convolution");
  static_assert(std::size(kConfigMistakes) + std::size(kGemmMistakes) + std::size(kConvMistakes) >= 100);
}

TEST(ScalesimTextMistakes, InputsThatAreNoFiles) {
  using nlohmann::json;
  for (const json& input : {json(),
                            json("text"),
                            json::array(),
                            json::object(),
                            json{{"config", kConfig}},
                            json{{"config", 5}, {"topology", kGemm}},
                            json{{"config", kConfig}, {"topology", nullptr}},
                            json{{"config", kConfig}, {"topology", kGemm}, {"gemm", "yes"}},
                            json{{"config", kConfig}, {"topology", kGemm}, {"gemm", true}, {"compat", "v1"}}})
    EXPECT_THROW(answer_scalesim(input), Error) << input.dump();
}

// A replacement that is empty and asked for over and over must not take for ever.
TEST(ScalesimTextMistakes, ReplacementsEnd) {
  std::string bomb = "[general]\n";
  for (char c = 'a'; c < 'j'; ++c) {
    bomb += text(c, " = ");
    for (int i = 0; i < 50; ++i) bomb += text("%(", static_cast<char>(c + 1), ")s");
    bomb += '\n';
  }
  bomb += "j =\nrun_name = %(a)s\n";
  EXPECT_THROW(parse_scalesim_config(bomb), Error);
}

// Random edits: an answer or an Error, nothing else. Layers are followed through the memory where they stay small.
TEST(ScalesimTextMistakes, RandomEditsNeverCrash) {
  std::mt19937 random(11);
  const auto draw = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  constexpr std::string_view kBytes = "0123456789abXY,:=[]%()#;\n\t \\\"-+_.\0\xff";
  const auto mutate = [&](std::string s) {
    for (size_t edits = 1 + draw(4); edits > 0 && !s.empty(); --edits) {
      const size_t at = draw(s.size());
      switch (draw(5)) {
        case 0: s.erase(at, 1 + draw(8)); break;
        case 1: s.insert(at, 1, kBytes[draw(kBytes.size())]); break;
        case 2: s[at] = kBytes[draw(kBytes.size())]; break;
        case 3: s.resize(at); break;
        case 4: s.insert(draw(s.size()), s.substr(at, 1 + draw(40))); break;
      }
    }
    return s;
  };
  size_t answered = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    const bool gemm = round % 2 == 0;
    try {
      const ScalesimConfig config = parse_scalesim_config(round % 3 ? mutate(kConfig) : kConfig);
      for (const ScalesimLayer& layer :
           parse_scalesim_topology(round % 3 == 1 ? kConv : mutate(gemm ? kGemm : kConv), gemm && round % 3 != 1)) {
        const ScalesimCompute compute = scalesim_compute(config, layer);
        EXPECT_GE(compute.cycles, 0);
        if (compute.cycles + compute.macs < 1'000'000 && config.rows + config.cols < 1000)
          scalesim_memory(config, layer);
      }
      ++answered;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(answered, 200u);
  EXPECT_GT(refused, 200u);
}

}  // namespace
}  // namespace sator::formats
