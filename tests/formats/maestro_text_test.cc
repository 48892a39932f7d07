// What a MAESTRO mapping and its hardware may say, and what each mistake is answered with.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "formats/maestro/answer.h"
#include "formats/maestro/cost.h"
#include "formats/maestro/relation.h"
#include "formats/refusals.h"

namespace sator::formats {
namespace {

using namespace dataflow;

using maestro::Dim;

const std::string kMapping =
    "Constant TileK 4;\n"
    "Network small {\n"
    "  Layer conv {\n"
    "    Type: CONV\n"
    "    Stride { X: 2, Y: 2 }\n"
    "    Dimensions { K: 8, C: 6, R: 3, S: 3, Y: 11, X: 11 }\n"
    "    Dataflow {\n"
    "      SpatialMap(1,1) K; // output channels\n"
    "      TemporalMap(3,3) C;\n"
    "      TemporalMap(Sz(R),Sz(R)) R;\n"
    "      TemporalMap(Sz(S),Sz(S)) S;\n"
    "      TemporalMap(1,1) Y';\n"
    "      TemporalMap(1,1) X';\n"
    "      Cluster(3, P);\n"
    "      SpatialMap(1,1) C;\n"
    "    }\n"
    "  }\n"
    "  Layer product {\n"
    "    Type: GEMM\n"
    "    Dimensions { M 12, N 10, K 8 }\n"
    "    Dataflow {\n"
    "      SpatialMap(1,1) M;\n"
    "      TemporalMap(1,1) N;\n"
    "      TemporalMap(TileK,TileK) K;\n"
    "    }\n"
    "  }\n"
    "}\n";
const std::string kHardware =
    "num_pes: 12\nl1_size_cstr: 100\nl2_size_cstr: 3000\nnoc_bw_cstr: 16\noffchip_bw_cstr: 50\nNoC_NumHops: 2\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

TEST(MaestroText, ReadsWhatMaestroReads) {
  const maestro::Network network = maestro::parse_network(kMapping);
  EXPECT_EQ(network.name, "small");
  ASSERT_EQ(network.layers.size(), 2u);
  const maestro::Layer& conv = network.layers[0];
  EXPECT_EQ(conv.type, maestro::LayerType::conv);
  EXPECT_EQ(conv.size[Dim::y], 11);
  EXPECT_EQ(conv.stride[Dim::x], 2);
  EXPECT_EQ(conv.stride[Dim::k], 1);
  ASSERT_EQ(conv.dataflow.size(), 8u);
  EXPECT_EQ(conv.dataflow[2].size, 3);  // Sz(R)
  EXPECT_EQ(conv.dataflow[4].dim, Dim::out_y);
  EXPECT_EQ(conv.dataflow[6].kind, maestro::Directive::Kind::cluster);
  EXPECT_EQ(conv.dataflow[6].size, 3);
  EXPECT_EQ(network.layers[1].dataflow[2].offset, 4);  // TileK
  const maestro::Hardware hardware = maestro::parse_hardware(kHardware);
  EXPECT_EQ(hardware.pes, 12);
  EXPECT_EQ(hardware.noc_words_per_cycle, 16);
  EXPECT_EQ(hardware.offchip_words_per_cycle, 50);
  EXPECT_EQ(hardware.noc_latency_cycles, 2);
  EXPECT_EQ(maestro::cost_of(network, hardware).size(), 2u);
}

TEST(MaestroText, RoundTripsAreStable) {
  const std::string once = maestro::network_text(maestro::parse_network(kMapping));
  EXPECT_EQ(maestro::network_text(maestro::parse_network(once)), once);
  const maestro::Hardware hardware = maestro::parse_hardware(kHardware);
  EXPECT_EQ(maestro::hardware_text(maestro::parse_hardware(maestro::hardware_text(hardware))),
            maestro::hardware_text(hardware));
  const auto first = maestro::cost_of(maestro::parse_network(kMapping), hardware);
  const auto second = maestro::cost_of(maestro::parse_network(once), hardware);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].cycles, second[i].cycles);
}

constexpr Mistake kMappingMistakes[] = {
    // Marks and words
    {"Constant TileK 4;", "Constant TileK;", 1},
    {"Constant TileK 4;", "Constant TileK four;", 1},
    {"Constant TileK 4;", "Constant TileK 0;", 1},
    {"Constant TileK 4;", "Constant TileK -4;", 1},
    {"Constant TileK 4;", "Constant 4;", 1},
    {"Constant TileK 4;", "Const TileK 4;", 1},
    {"Network small {", "Net small {", 2},
    {"Network small {", "network small {", 2},
    {"Network small {", "Network small", 4},
    {"Network small {", "Network small (", 2},
    {"  Layer conv {", "  Layer conv", 4},
    {"  Layer conv {", "  layer conv {", 3},
    {"  Layer conv {", "  Layer conv {{", 3},
    {"  Layer conv {", "  }", 3},
    {"Type: CONV", "Type: conv", 4},
    {"Type: CONV", "Type: FC", 4},
    {"Type: CONV", "Type: POOL", 4},
    {"Type: CONV", "Type: LSTM", 4},
    {"Type: CONV", "Type: RESIDUAL_IDENTITY", 4},
    {"Type: CONV", "Type:", 5},
    {"Type: CONV", "Type: CONV Type: CONV", 4},
    {"Type: CONV", "Kind: CONV", 4},
    {"    Type: CONV\n", "", 5},
    {"Type: CONV", "Type: GEMM", 5},
    // Strides
    {"Stride { X: 2, Y: 2 }", "Stride X: 2", 5},
    {"Stride { X: 2, Y: 2 }", "Stride { X: 0 }", 5},
    {"Stride { X: 2, Y: 2 }", "Stride { X: two }", 5},
    {"Stride { X: 2, Y: 2 }", "Stride { Z: 2 }", 5},
    {"Stride { X: 2, Y: 2 }", "Stride { X: 2 } Stride { Y: 2 }", 5},
    {"Stride { X: 2, Y: 2 }", "Stride { X: 2147483648 }", 5},
    {"Stride { X: 2, Y: 2 }", "Stride { X: }", 5},
    // Dimensions
    {"Dimensions { K: 8,", "Dimension { K: 8,", 6},
    {"Dimensions { K: 8,", "Dimensions K: 8,", 6},
    {"Dimensions { K: 8,", "Dimensions { K: 0,", 6},
    {"Dimensions { K: 8,", "Dimensions { K: -8,", 6},
    {"Dimensions { K: 8,", "Dimensions { K: 8.5,", 6},
    {"Dimensions { K: 8,", "Dimensions { K: 0x8,", 6},
    {"Dimensions { K: 8,", "Dimensions { K: eight,", 6},
    {"Dimensions { K: 8,", "Dimensions { K: 2147483648,", 6},
    {"Dimensions { K: 8,", "Dimensions { K: 99999999999999999999,", 6},
    {"Dimensions { K: 8,", "Dimensions { K: 8, K: 9,", 6},
    {"Dimensions { K: 8,", "Dimensions { k: 8,", 6},
    {"Dimensions { K: 8,", "Dimensions { M: 8,", 6},
    {"Dimensions { K: 8,", "Dimensions { K: Unknown,", 6},
    {"Dimensions { K: 8,", "Dimensions { K: Sz(C),", 6},
    {"Dimensions { K: 8,", "Dimensions { ", 3},
    {"R: 3, S: 3, Y: 11", "S: 3, Y: 11", 10},
    {"R: 3, S: 3, Y: 11", "R: 3, S: 3, Y: 2", 3},
    {"R: 3, S: 3, Y: 11", "R: 3, S: 3, Y: 11, Y': 9", 3},
    {"R: 3, S: 3, Y: 11", "R: 3, S: 3", 3},
    {"    Dimensions { K: 8, C: 6, R: 3, S: 3, Y: 11, X: 11 }\n", "", 6},
    {"    Stride { X: 2, Y: 2 }\n    Dimensions { K: 8, C: 6, R: 3, S: 3, Y: 11, X: 11 }\n",
     "    Dimensions { K: 8, C: 6, R: 3, S: 3, Y: 11, X: 11 }\n    Stride { X: 2, Y: 2 }\n",
     6},
    // Directives
    {"    Dataflow {\n", "    Dataflow\n", 8},
    {"    Dataflow {\n", "    DataFlow {\n", 7},
    {"SpatialMap(1,1) K;", "SpatialMap(1) K;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(1,1);", 8},
    {"SpatialMap(1,1) K;", "SpatialMap 1,1 K;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(1,1 K;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(1,1,1) K;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(0,1) K;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(1,0) K;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(-1,1) K;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(1,x) K;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(1.5,1) K;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(99999999999,1) K;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(1,1) M;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(1,1) Q;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(Sz(N),1) K;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(Sz(K,1) K;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(Sz,1) K;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(Sz(),1) K;", 8},
    {"SpatialMap(1,1) K;", "spatialmap(1,1) K;", 8},
    {"SpatialMap(1,1) K;", "Map(1,1) K;", 8},
    {"SpatialMap(1,1) K;", "TemporalMap(1,1) K;", 14},
    {"SpatialMap(1,1) K;", "SpatialMap(1,1) K; SpatialMap(1,1) K;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(1,1) K; TemporalMap(1,1) K;", 8},
    {"SpatialMap(1,1) K;", "SpatialMap(1,1) K; SpatialMap(1,1) N;", 14},
    {"SpatialMap(1,1) K;", "SpatialMap(1,1) K; TemporalMap(1,1) G;", 14},
    {"TemporalMap(3,3) C;", "TemporalMap(3,3) C; TemporalMap(3,1) Y;", 12},
    {"TemporalMap(Sz(R),Sz(R)) R;", "TemporalMap(1,1) R;", 10},
    {"TemporalMap(Sz(R),Sz(R)) R;", "TemporalMap(Sz(R),1) R;", 10},
    {"      TemporalMap(Sz(R),Sz(R)) R;\n", "", 11},
    {"      TemporalMap(Sz(S),Sz(S)) S;\n", "", 12},
    {"TemporalMap(1,1) Y';", "TemporalMap(1,1) Y'';", 12},
    {"TemporalMap(1,1) Y';", "TemporalMap(1,1) Y'; TemporalMap(3,1) Y;", 12},
    {"Cluster(3, P);", "Cluster(3);", 14},
    {"Cluster(3, P);", "Cluster(3, Q);", 14},
    {"Cluster(3, P);", "Cluster(3, );", 14},
    {"Cluster(3, P);", "Cluster(0, P);", 14},
    {"Cluster(3, P);", "Cluster(13, P);", 14},
    {"Cluster(3, P);", "Cluster(3, P;", 14},
    {"Cluster(3, P);", "Cluster(2147483647, P);", 14},
    {"Cluster(3, P);", "Cluster(3, P); Cluster(1, P);", 14},
    {"      SpatialMap(1,1) C;\n", "", 14},
    {"      SpatialMap(1,1) C;\n",
     "SpatialMap(1,1) C; Cluster(2,P); SpatialMap(1,1) K; Cluster(1,P); SpatialMap(1,1) K; Cluster(1,P);\n",
     15},
    {"      SpatialMap(1,1) C;\n", "      SpatialMap(1,1) C; SpatialMap(1,1) K; SpatialMap(1,1) X;\n", 15},
    // Ends
    {"  Layer product {\n", "}\n", 19},
    {"      TemporalMap(TileK,TileK) K;\n    }\n  }\n}\n", "", 24},
    {"      TemporalMap(TileK,TileK) K;\n    }\n  }\n}\n", "    }\n  }\n", 26},
    {"      TemporalMap(TileK,TileK) K;\n    }\n  }\n}\n", "    }\n  }\n}\nAccelerator { PE { NumPEs 4 } }\n", 27},
    {"TemporalMap(TileK,TileK) K;", "TemporalMap(TileN,TileK) K;", 24},
    {"      SpatialMap(1,1) M;\n      TemporalMap(1,1) N;\n      TemporalMap(TileK,TileK) K;\n", "", 23},
    {"Dimensions { M 12, N 10, K 8 }", "Dimensions { M 12, N 10 }", 18},
    {"Dimensions { M 12, N 10, K 8 }", "Dimensions { M 12, N 10, K 8, C 3 }", 20},
};

constexpr Mistake kHardwareMistakes[] = {
    {"num_pes: 12\n", "", 6},
    {"num_pes: 12", "num_pes: 0", 1},
    {"num_pes: 12", "num_pes: -1", 1},
    {"num_pes: 12", "num_pes: many", 1},
    {"num_pes: 12", "num_pes:", 2},
    {"num_pes: 12", "num_pes: 12 num_pes: 12", 1},
    {"num_pes: 12", "num_pes: 4294967296", 1},
    {"num_pes: 12", "num_pe: 12", 1},
    {"num_pes: 12", "{ num_pes: 12 }", 1},
    {"noc_bw_cstr: 16", "noc_bw_cstr: 0", 4},
    {"noc_bw_cstr: 16", "noc_bw: 16", 4},
    {"offchip_bw_cstr: 50", "offchip_bw_cstr: fifty", 5},
    {"NoC_NumHops: 2", "NoC_NumHops: two", 6},
};

TEST(MaestroTextMistakes, EachNamesItsLine) {
  for (const Mistake& m : kMappingMistakes)
    expect_refusal("maestro",
                   {{"mapping", replaced(kMapping, m.what, m.by)}, {"hardware", kHardware}},
                   "mapping",
                   m.line,
                   text(m.what, " -> ", m.by));
  for (const Mistake& m : kHardwareMistakes)
    expect_refusal("maestro",
                   {{"mapping", kMapping}, {"hardware", replaced(kHardware, m.what, m.by)}},
                   "hardware",
                   m.line,
                   text(m.what, " -> ", m.by));
  expect_refusal("maestro", {{"mapping", ""}, {"hardware", kHardware}}, "mapping", 1, "empty mapping");
  expect_refusal("maestro", {{"mapping", kMapping}, {"hardware", ""}}, "hardware", 1, "empty hardware");
  static_assert(std::size(kMappingMistakes) + std::size(kHardwareMistakes) >= 100);
}

TEST(MaestroTextMistakes, InputsThatAreNoFiles) {
  using nlohmann::json;
  for (const json& input : {json(),
                            json("text"),
                            json::array(),
                            json::object(),
                            json{{"mapping", kMapping}},
                            json{{"mapping", 5}, {"hardware", kHardware}},
                            json{{"mapping", kMapping}, {"hardware", nullptr}}})
    EXPECT_THROW(answer_maestro(input), Error) << input.dump();
}

// Sizes of 2^31 - 1 each: counts pass 64 bits and are refused, and nothing takes long.
TEST(MaestroTextMistakes, CountsBeyond64BitsAreRefused) {
  EXPECT_THROW(maestro::cost_of(
                   maestro::parse_network("Network n { Layer l { Type: GEMM Dimensions { M: 2147483647, N: 2147483647, "
                                          "K: 2147483647 } Dataflow { SpatialMap(1,1) M; TemporalMap(1,1) N; "
                                          "TemporalMap(1,1) K; } } }"),
                   {.pes = 4}),
               Error);
}

// Random edits: an answer or an Error, nothing else.
TEST(MaestroTextMistakes, RandomEditsNeverCrash) {
  std::mt19937 random(13);
  const auto draw = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  constexpr std::string_view kBytes = "0123456789KCRSYXMN'PL,;:(){}/ \n\t-\0\xff";
  const auto mutate = [&](std::string s) {
    for (size_t edits = 1 + draw(4); edits > 0 && !s.empty(); --edits) {
      const size_t at = draw(s.size());
      switch (draw(6)) {
        case 0: s.erase(at, 1 + draw(8)); break;
        case 1: s.insert(at, 1, kBytes[draw(kBytes.size())]); break;
        case 2: s[at] = kBytes[draw(kBytes.size())]; break;
        case 3: s.resize(at); break;
        case 4: s.insert(draw(s.size()), s.substr(at, 1 + draw(40))); break;
        case 5:  // a number or a dimension becomes another
          if (s[at] >= '0' && s[at] <= '9') s[at] = static_cast<char>('1' + draw(9));
          if (s[at] >= 'A' && s[at] <= 'Z') s[at] = "KCRSYXMN"[draw(8)];
          break;
      }
    }
    return s;
  };
  size_t answered = 0, refused = 0;
  for (int round = 0; round < 6000; ++round) {
    try {
      const maestro::Network network = maestro::parse_network(round % 5 ? mutate(kMapping) : kMapping);
      const maestro::Hardware hardware = maestro::parse_hardware(round % 5 ? kHardware : mutate(kHardware));
      for (const maestro::LayerCost& cost : maestro::cost_of(network, hardware)) EXPECT_GT(cost.cycles, 0);
      for (const maestro::Layer& layer : network.layers) {
        const Problem problem = maestro::problem_of(layer, hardware.pes);
        EXPECT_FALSE(problem.mapping.space.empty());
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
