#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "shipped_chips.h"
#include "target/calibration.h"
#include "target/chip.h"

namespace sator {
namespace {

class Chips : public testing::Test {
 protected:
  void SetUp() override { setenv("SATOR_CHIPS", chips_folder().c_str(), 1); }
};

TEST_F(Chips, ShippedOnesAreFoundByName) {
  EXPECT_EQ(shipped_chips(),
            (std::vector<std::string>{"a100",
                                      "a40",
                                      "b200",
                                      "bitfusion",
                                      "bitserial_bitmod",
                                      "cpu_avx512_vnni",
                                      "edge_npu32",
                                      "eyeriss_v1",
                                      "gemmini16",
                                      "groq_lpu_like",
                                      "h100",
                                      "h200",
                                      "l4",
                                      "l40s",
                                      "mi210",
                                      "nvdla_large",
                                      "nvdla_small",
                                      "scalesim_default",
                                      "shidiannao_like",
                                      "t4",
                                      "tenet-8x8",
                                      "tpuv1",
                                      "tpuv3",
                                      "tpuv4_like",
                                      "v100"}));
  for (const std::string& name : shipped_chips()) {
    Chip chip = find_chip(name);
    EXPECT_EQ(chip.name, name);
    EXPECT_EQ(shipped(name).pes(), chip.pes());
    if (chip.tenet) continue;  // a mapping of its own, and no energies
    const std::string words = read_file(chip.file);
    for (const char* key : {"gemm", "gemv", "batched", "vector"})
      EXPECT_NE(words.find(std::string("\n") + key + " = "), std::string::npos) << name << " " << key;
    EXPECT_GT(chip.energy_node_nm, 0);
    for (const Precision& p : chip.precisions) EXPECT_GT(p.energy_per_mac.picojoules, 0) << name;
    for (const Memory& m : chip.memories) EXPECT_GT(m.read_energy_per_bit.picojoules, 0) << name;
  }
  for (const char* alias : {"tpuv1_like",
                            "gemmini_16",
                            "edge_npu_int4",
                            "scalesim_default_32",
                            "bitfusion_16x32",
                            "tpuv3_llmcompass",
                            "a100_tensor_core",
                            "h100_sxm_tensor_core",
                            "h200_tensor_core",
                            "groq_lpu_v1_like"})
    EXPECT_NO_THROW(find_chip(alias)) << alias;
  EXPECT_EQ(find_chip("a100_tensor_core").name, "a100");
}

// Peaks as the chips' makers print them (operations are two per MAC); where the product of the printed clock and array is
// another, the tolerance says by how much.
struct Peak {
  const char* chip;
  int weight_bits, activation_bits;
  double tera_macs, tolerance;
  double outer_bytes_per_s;
};
const Peak kPeaks[] = {
    {"tpuv1", 8, 8, 46, 0.003, 34e9},                // 92 TOPS
    {"tpuv1", 8, 16, 23, 0.003, 34e9},               // half speed
    {"tpuv1", 16, 16, 11.5, 0.003, 34e9},            // a quarter
    {"eyeriss_v1", 16, 16, 0.0336, 1e-9, 480e6},     // 33.6 GMAC/s; 64 bit at 60 MHz
    {"nvdla_large", 8, 8, 2.048, 1e-9, 20e9},        // 2048 multipliers at 1 GHz
    {"nvdla_small", 8, 8, 0.064, 1e-9, 1e9},         // 64
    {"shidiannao_like", 16, 16, 0.064, 1e-9, 16e9},  // 64 GMAC/s
    {"gemmini16", 8, 8, 0.256, 1e-9, 16e9},          // 0.51 TOPS
    {"scalesim_default", 8, 8, 1.024, 1e-9, 10e9},   // 2 TOPS; 10 words per cycle
    {"edge_npu32", 8, 8, 1, 0.03, 25.6e9},           // 2 TOPS
    {"edge_npu32", 4, 4, 4, 0.03, 25.6e9},           // 8 TOPS
    {"edge_npu32", 4, 8, 2, 0.03, 25.6e9},
    {"bitserial_bitmod", 4, 16, 2.048, 1e-9, 32e9},  // four MACs in ceil(4 / 2) cycles, 1024 PEs
    {"bitserial_bitmod", 8, 16, 1.024, 1e-9, 32e9},
    {"bitfusion", 2, 2, 4.096, 1e-9, 12e9},        // 16 products per unit and cycle, 512 units, 500 MHz
    {"bitfusion", 16, 16, 0.064, 1e-9, 12e9},      // four cycles
    {"tpuv4_like", 16, 16, 137.5, 0.002, 1228e9},  // 275 TFLOPS
    {"tpuv4_like", 8, 8, 137.5, 0.002, 1228e9},    // and TOPS
    {"tpuv3", 16, 16, 61.5, 0.003, 900e9},         // 123 TFLOPS
    {"a100", 16, 16, 156, 0.001, 2039e9},          // 312 TFLOPS
    {"a100", 8, 8, 312, 0.001, 2039e9},            // 624 TOPS
    {"a100", 32, 32, 9.75, 0.001, 2039e9},         // 19.5 TFLOPS
    {"h100", 16, 16, 494.5, 0.001, 3350e9},        // 989 TFLOPS
    {"h100", 8, 8, 989.5, 0.001, 3350e9},          // 1979
    {"h200", 16, 16, 494.5, 0.001, 4800e9},
    {"a40", 16, 16, 74.85, 0.001, 696e9},         // 149.7 TFLOPS
    {"a40", 32, 32, 18.7, 0.001, 696e9},          // 37.4
    {"l4", 16, 16, 60.5, 0.003, 300e9},           // 121 TFLOPS
    {"l4", 32, 32, 15.15, 0.002, 300e9},          // 30.3
    {"l40s", 16, 16, 181, 0.015, 864e9},          // 362: at 2.49 GHz, the boost clock of the data sheet gives 366
    {"l40s", 32, 32, 45.8, 0.001, 864e9},         // 91.6
    {"v100", 16, 16, 56, 0.01, 900e9},            // 112 TFLOPS (PCIe)
    {"v100", 32, 32, 7, 0.01, 900e9},             // 14
    {"t4", 16, 16, 32.5, 0.003, 320e9},           // 65 TFLOPS
    {"t4", 8, 8, 65, 0.003, 320e9},               // 130 TOPS
    {"t4", 32, 32, 4.05, 0.01, 320e9},            // 8.1 TFLOPS
    {"mi210", 16, 16, 90.5, 0.001, 1638e9},       // 181 TFLOPS
    {"mi210", 32, 32, 22.65, 0.002, 1638e9},      // 45.3, by the matrix cores
    {"b200", 16, 16, 1125, 0.005, 8000e9},        // 2.25 PFLOPS
    {"b200", 4, 4, 4500, 0.005, 8000e9},          // 9 PFLOPS of microscaled fp4
    {"groq_lpu_like", 8, 8, 375, 0.02, 80e12},    // 750 TOPS
    {"groq_lpu_like", 16, 16, 94, 0.025, 80e12},  // 188 TFLOPS
    {"cpu_avx512_vnni", 8, 8, 32 * 0.32, 1e-9, 307.2e9},  // 128 per cycle and core at 2.5 GHz
    {"cpu_avx512_vnni", 32, 32, 32 * 0.08, 1e-9, 307.2e9},
};

TEST_F(Chips, PeaksAreThePublishedOnes) {
  for (const Peak& peak : kPeaks) {
    SCOPED_TRACE(peak.chip);
    const Chip chip = find_chip(peak.chip);
    double macs = 0;
    for (const Precision& p : chip.precisions)
      if (p.weight_bits == peak.weight_bits && p.activation_bits == peak.activation_bits)
        macs = p.macs_per_pe_per_cycle * static_cast<double>(chip.pes()) * chip.clock_hz / 1e12;
    EXPECT_NEAR(macs / peak.tera_macs, 1, peak.tolerance);
    const Memory& outer = chip.memories[0];
    EXPECT_NEAR(outer.read_bytes_per_cycle / outer.efficiency * chip.clock_hz / peak.outer_bytes_per_s, 1, 1e-9);
  }
  EXPECT_EQ(find_chip("edge_npu32").inline_work, std::vector<VectorWork>{VectorWork::dequantize});
}

// Capacities on the chips, as printed.
TEST_F(Chips, MemoriesAreThePublishedOnes) {
  auto bytes = [](const char* chip, const char* memory) { return *find_chip(chip).memory(memory)->capacity_bytes; };
  EXPECT_EQ(bytes("tpuv1", "unified_buffer"), 24 << 20);
  EXPECT_EQ(bytes("tpuv1", "accumulators"), 4096 * 256 * 4);
  EXPECT_EQ(bytes("eyeriss_v1", "global_buffer") + bytes("eyeriss_v1", "filter_buffer"), (100 + 8) * 1024);
  EXPECT_EQ(find_chip("eyeriss_v1").pe.capacity_bytes, 2 * (12 + 224 + 24));
  EXPECT_EQ(bytes("nvdla_large", "convolution_buffer"), 512 * 1024);
  EXPECT_EQ(bytes("a100", "l2"), 40 << 20);
  EXPECT_EQ(bytes("a100", "l1"), 192 * 1024);
  EXPECT_EQ(bytes("h100", "l2"), 50 << 20);
  EXPECT_EQ(bytes("groq_lpu_like", "sram"), 230'000'000);
  EXPECT_EQ(find_chip("tpuv4_like").cores, 8);
  EXPECT_EQ(find_chip("a100").cores, 108);
  EXPECT_EQ(*find_chip("h100").area_mm2, 814);
  EXPECT_EQ(find_chip("a100").link->bytes_per_second, 300e9);
}

TEST_F(Chips, PatternsAreChainsOfOps) {
  std::string source = read_file(chips_folder() / "gemmini16.toml");
  source.insert(source.find("[array]"),
                "[[pattern]]\nname = \"gated\"\nops = [\"matmul\", \"silu|nn.gelu?\"]\n"
                "constant_weight = true\ndtypes = [\"int8\"]\nweight_bits = [4, 8]\nmax_m = 1\nmax_k = 4096\n");
  const Chip chip = parse_chip(source, "chip.toml");
  ASSERT_EQ(chip.patterns.size(), 2U);
  const ChipPattern& p = chip.patterns[0];
  EXPECT_EQ(p.name, "gated");
  ASSERT_EQ(p.ops.size(), 2U);
  EXPECT_FALSE(p.ops[0].optional);
  EXPECT_TRUE(p.ops[1].optional);
  EXPECT_EQ(p.ops[1].any_of, (std::vector<std::string>{"silu", "nn.gelu"}));
  EXPECT_TRUE(p.constant_weight);
  EXPECT_EQ(p.dtypes, std::vector<std::string>{"int8"});
  EXPECT_EQ(p.weight_bits, (std::vector<int64_t>{4, 8}));
  EXPECT_EQ(p.max_m, 1);
  EXPECT_EQ(p.max_n, std::nullopt);
  EXPECT_EQ(p.max_k, 4096);
  EXPECT_TRUE(chip.patterns[1].dtypes.empty());
}

TEST_F(Chips, AVectorUnitDoesAllUnlessListed) {
  std::string source = read_file(chips_folder() / "gemmini16.toml");
  const size_t at = source.find("\ndoes = ");
  ASSERT_NE(at, std::string::npos);
  source.erase(at, source.find('\n', at + 1) - at);
  EXPECT_EQ(parse_chip(source, "chip.toml").vector.does,
            std::vector<VectorWork>(std::begin(kVectorWork), std::end(kVectorWork)));
}

// silu(x w1) * (x w3) and its product: x is one value, the lines' names are values, the last line's is the result.
TEST_F(Chips, PatternsAreGraphsWithNames) {
  std::string source = read_file(chips_folder() / "gemmini16.toml");
  source.insert(source.find("[array]"),
                "[[pattern]]\nname = \"gated\"\ngraph = [\n  \"gate = matmul(x, w1)\",\n"
                "  \"up, _ = split(matmul(x, dequantize?(w3)))\",\n  \"y = (nn.silu|gelu(gate) * up + _)\",\n]\n");
  const Chip chip = parse_chip(source, "chip.toml");
  const ChipPattern& p = chip.patterns.at(0);
  auto ops_of = [&](size_t n) { return p.graph.at(n).any_of; };
  ASSERT_EQ(p.results.size(), 1U);
  const ChipPattern::Node& sum = p.graph.at(p.results[0]);
  EXPECT_EQ(sum.any_of, std::vector<std::string>{"add"});
  const ChipPattern::Node& gated = p.graph.at(sum.args.at(0));
  EXPECT_EQ(gated.any_of, std::vector<std::string>{"multiply"});
  const ChipPattern::Node& silu = p.graph.at(gated.args.at(0));
  EXPECT_EQ(silu.any_of, (std::vector<std::string>{"nn.silu", "gelu"}));
  EXPECT_FALSE(silu.optional);
  const ChipPattern::Node &gate = p.graph.at(silu.args.at(0)), &up = p.graph.at(gated.args.at(1));
  EXPECT_EQ(gate.any_of, std::vector<std::string>{"matmul"});
  EXPECT_EQ(up.item, 0U);
  EXPECT_EQ(ops_of(up.args.at(0)), std::vector<std::string>{"split"});
  const ChipPattern::Node& second = p.graph.at(p.graph.at(up.args[0]).args.at(0));
  EXPECT_EQ(second.args.at(0), gate.args.at(0)) << "both read one x";
  EXPECT_TRUE(p.graph.at(second.args.at(1)).optional);
  EXPECT_TRUE(ops_of(sum.args.at(1)).empty());
  const size_t line =
      static_cast<size_t>(std::count(source.begin(), source.begin() + static_cast<long>(source.find("  \"up")), '\n')) +
      1;
  EXPECT_EQ(second.where, text("chip.toml line ", line));
}

struct Mistake {
  const char* chip;  // a good file
  const char* from;  // text of it to replace
  const char* to;
  const char* message;
};

#define GRAPH(lines, message)                                                 \
  {"gemmini16",                                                               \
   "ops = [\"dequantize?\", \"matmul\", \"rescale?\", \"bias?\", \"relu?\"]", \
   "graph = [" lines "]",                                                     \
   message}
const Mistake kMistakes[] = {
#include "target/chip_mistakes.inc"
};
#undef GRAPH

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::invalid_argument(from);
  return text.replace(at, from.size(), to);
}

TEST_F(Chips, ErrorsNameFileLineKeyAndWhatIsAllowed) {
  EXPECT_GE(std::size(kMistakes), 100u);
  for (const Mistake& m : kMistakes) {
    SCOPED_TRACE(std::string(m.chip) + ": " + m.to);
    const std::string good = read_file(chips_folder() / (std::string(m.chip) + ".toml"));
    try {
      parse_chip(replaced(good, m.from, m.to), "chip.toml");
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      std::string message = e.what();
      EXPECT_NE(message.find(m.message), std::string::npos) << message;
      EXPECT_NE(message.find("chip.toml line "), std::string::npos) << message;
      EXPECT_FALSE(e.reason.needs.empty());
      EXPECT_FALSE(e.reason.hint.empty()) << message;
    }
  }
}

// Whatever is done to the bytes of a file: a chip, or an Error that names a line.
TEST_F(Chips, DamagedFilesAreReadOrRefused) {
  constexpr std::string_view kMarks = "0123456789-.eE_\"[]={}#\n";
  std::mt19937 draw(7);
  int refused = 0, read = 0;
  for (const std::string& name : shipped_chips()) {
    const std::string good = read_file(chips_folder() / (std::string(name) + ".toml"));
    for (int round = 0; round < 150; ++round) {
      std::string bad = good;
      for (unsigned edits = 1 + draw() % 3; edits > 0; --edits) {
        const size_t at = draw() % bad.size(), length = draw() % 12;
        switch (draw() % 4) {
          case 0: bad[at] = static_cast<char>(draw() % 256); break;
          case 1: bad.erase(at, length); break;
          case 2: bad.insert(at, good.substr(draw() % good.size(), length)); break;
          default: bad.insert(at, std::string(1, kMarks[draw() % kMarks.size()])); break;
        }
      }
      try {
        const Chip chip = parse_chip(bad, "chip.toml");
        EXPECT_GT(chip.pes(), 0);
        ++read;
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("chip.toml line "), std::string::npos) << e.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(read, 100);
}

TEST_F(Chips, CalibrationsReadBackAsWritten) {
  const Calibration c{.model = "engine",
                      .chip = "tpuv1_like",
                      .source = "by \"hand\"",
                      .rows = 12,
                      .groups = {"a", "b"},
                      .constants = {{"array_time", 1.25, "times"},
                                    {"memory_time", 2, "times"},
                                    {"vector_time", 1, "times"},
                                    {"overhead", 3e-6, "s"}},
                      .level = 0.9,
                      .low = 0.8,
                      .high = 1.5,
                      .mean_error = 0.07};
  const Calibration back = parse_calibration(to_toml(c), "c.toml");
  EXPECT_EQ(to_toml(back), to_toml(c));
  EXPECT_EQ(back.groups, c.groups);
  EXPECT_EQ(back.source, c.source);
  const ChipCalibration on_chip = for_chip(back, find_chip("tpuv1"));
  EXPECT_EQ(on_chip.memory_time, 2);
  EXPECT_EQ(on_chip.overhead_s, 3e-6);
  EXPECT_EQ(on_chip.high, 1.5);
  EXPECT_THROW(for_chip(back, find_chip("a100")), Error);
  EXPECT_THROW(back.constant("speed"), Error);
}

TEST_F(Chips, MistakesInCalibrations) {
  const std::string good =
      to_toml({.model = "engine", .chip = "tpuv1", .source = "x", .rows = 3, .constants = {{"a", 1, "s"}}});
  const std::pair<const char*, const char*> mistakes[] = {{"rows = 3", "rows = 0"},
                                                          {"rows = 3", "rows = \"3\""},
                                                          {"low = 1.0", "low = 2.0"},
                                                          {"level = 0.9", "level = 90"},
                                                          {"level = 0.9", "levels = 0.9"},
                                                          {"value = 1.0", "value = nan"},
                                                          {"unit = \"s\"", ""},
                                                          {"model = ", "modell = "},
                                                          {"[[constant]]", "[constant]"},
                                                          {"groups = []", "groups = [1]"},
                                                          {"groups = []", "groups = 1"},
                                                          {"[interval]", "[interval"},
                                                          {"source = \"x\"", "source = 1"},
                                                          {"high = 1.0", "high = -1.0"}};
  for (const auto& [from, to] : mistakes) {
    SCOPED_TRACE(to);
    try {
      parse_calibration(replaced(good, from, to), "c.toml");
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("c.toml line "), std::string::npos) << e.what();
    }
  }
}

// The line in the message is the line of the key.
TEST_F(Chips, TheLineIsTheKeysLine) {
  try {
    parse_chip("name = \"x\"\nsource = \"y\"\nnode_nm = 7\nclock_hz = true\n", "mine.toml");
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.reason.where, "mine.toml line 4, column 12");
  }
}

TEST_F(Chips, AnUnknownNameListsThoseThereAre) {
  try {
    find_chip("tpuv2");
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("tpuv1"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("shidiannao_like, t4, tenet-8x8, tpuv1, tpuv3"), std::string::npos);
  }
  EXPECT_THROW(find_chip("no/such/chip.toml"), Error);
}

}  // namespace
}  // namespace sator
