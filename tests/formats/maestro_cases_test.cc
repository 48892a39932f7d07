// MAESTRO's own figures against the reader and the analysis of its mappings, and the mappings as relations.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "dataflow/counts/counts.h"
#include "dataflow/reference_rows.h"
#include "formats/maestro/answer.h"
#include "formats/maestro/cost.h"
#include "formats/maestro/relation.h"

namespace sator::formats {
namespace {

using namespace dataflow;

using nlohmann::json;

std::string hardware_of(int64_t pes) {
  return text("num_pes: ", pes, "\nl1_size_cstr: 100\nl2_size_cstr: 3000\nnoc_bw_cstr: 1000\noffchip_bw_cstr: 50\n");
}

std::string gemm_text(int64_t m, int64_t n, int64_t k, const std::string& dataflow) {
  return text("Network g {\n  Layer L {\n    Type: GEMM\n    Dimensions { K: ",
              k,
              ", M: ",
              m,
              ", N: ",
              n,
              " }\n    Dataflow {\n",
              dataflow,
              "\n    }\n  }\n}\n");
}

// The rows that hold their mapping's text; the others name files of MAESTRO's repository.
TEST(MaestroCases, FiguresAreEqual) {
  const std::vector<json> rows = reference_rows("cost/maestro_outputs.jsonl");
  size_t compared = 0;
  for (const json& row : rows) {
    if (!row.contains("mapping_text")) continue;
    ++compared;
    SCOPED_TRACE(row["mapping_file"].get<std::string>());
    const json answer = answer_maestro({{"mapping", gemm_text(row["M"], row["N"], row["K"], row["mapping_text"])},
                                        {"hardware", hardware_of(row["num_pes"])}});
    for (const auto& [key, want] : row.items()) {
      if (key == "mapping_file" || key == "set" || key == "mapping_text" || key == "dataflow" || key == "cluster" ||
          key == "M" || key == "N" || key == "K")
        continue;  // the question
      ASSERT_TRUE(answer.contains(key)) << key;
      EXPECT_EQ(answer[key], want) << key;
    }
  }
  EXPECT_GT(compared, 50u);
}

// Runs of MAESTRO itself on random layers, mappings and hardware, recorded in maestro_runs.jsonl.
TEST(MaestroCases, RandomRunsAreEqual) {
  const std::vector<json> runs = json_lines(fs::path(SATOR_SOURCE_DIR) / "tests/formats/maestro_runs.jsonl");
  for (const json& run : runs) {
    SCOPED_TRACE(run.dump());
    const json answer = answer_maestro({{"mapping", run["mapping"]}, {"hardware", run["hardware"]}});
    for (const auto& [key, want] : run["want"].items()) EXPECT_EQ(answer.at(key), want) << key;
  }
  EXPECT_GE(runs.size(), 50u);
}

// By hand: 4 PEs, one output column each, K in time. 6 steps; the first brings one word of A for all and one of B for
// each PE, every other step the same: 6 * (1 + 4) words in. All 24 products, each 4 at a time: 6 cycles, and the first
// step waits for its words: 1000 words a cycle at one hop take one cycle more.
TEST(MaestroCases, OutputStationaryByHand) {
  const json answer =
      answer_maestro({{"mapping", gemm_text(1, 4, 6, "TemporalMap(1,1) M; SpatialMap(1,1) N; TemporalMap(1,1) K;")},
                      {"hardware", "num_pes: 4\nnoc_bw_cstr: 1000\n"}});
  EXPECT_EQ(answer["cycles"], 7);
  EXPECT_EQ(answer["macs"], 24);
  EXPECT_EQ(answer["avg_pes"], 4.0);
  EXPECT_EQ(answer["input_l2_read"], 6);
  EXPECT_EQ(answer["filter_l2_read"], 24);
  EXPECT_EQ(answer["output_l2_write"], 24);
  EXPECT_EQ(answer["peak_bw"], 5);
  EXPECT_EQ(answer["input_reuse_factor"], 4.0);
}

// A 3 x 3 window that slides over 8 PEs: each PE has one output column; neighbours share two of three input columns.
TEST(MaestroCases, WindowsShareWords) {
  const json answer =
      answer_maestro({{"mapping",
                       "Network n { Layer c { Type: CONV Dimensions { K: 1, C: 1, R: 3, S: 3, Y: 3, X: 10 } "
                       "Dataflow { TemporalMap(1,1) K; TemporalMap(1,1) C; TemporalMap(3,1) Y; "
                       "SpatialMap(3,1) X; TemporalMap(3,3) R; TemporalMap(3,3) S; } } }"},
                      {"hardware", "num_pes: 8"}});
  EXPECT_EQ(answer["macs"], 8 * 9);
  EXPECT_EQ(answer["avg_pes"], 8.0);
  EXPECT_EQ(answer["filter_l2_read"], 9);
  // All is at its first tile: MAESTRO then counts whole tiles of every PE, 8 * 9 words, though 3 * 10 are distinct.
  EXPECT_EQ(answer["input_l2_read"], 8 * 9);
  EXPECT_EQ(answer["input_l2_write"], 3 * 10);
  EXPECT_EQ(answer["output_l2_read"], 8);
}

struct Gemm {
  int64_t m, n, k;
};

Counts counts_of(const maestro::Layer& layer, int64_t pes) {
  const auto counted = count(maestro::problem_of(layer, pes));
  if (const auto* reason = std::get_if<Reason>(&counted)) {
    ADD_FAILURE() << reason->render();
    return {};
  }
  return std::get<Counts>(counted);
}

// Where tiles divide their dimensions, MAESTRO's products, steps and working PEs are those of the relations. Of an operand
// the words that enter agree too where the loop that does not index it is the innermost one; outside of other loops MAESTRO
// forgets that these begin again.
TEST(MaestroRelations, RandomProductsCountAlike) {
  std::mt19937 random(5);
  const auto draw = [&](int64_t from, int64_t to) { return std::uniform_int_distribution<int64_t>(from, to)(random); };
  for (int round = 0; round < 120; ++round) {
    const int64_t cluster = draw(2, 5), clusters = draw(2, 4);
    const bool rows_in_space = round % 2 == 0;
    Gemm size{.m = draw(1, 3), .n = draw(1, 3), .k = cluster * draw(2, 4)};
    (rows_in_space ? size.m : size.n) *= clusters;
    const std::string dataflow = rows_in_space ? text("SpatialMap(1,1) M; TemporalMap(",
                                                      cluster,
                                                      ",",
                                                      cluster,
                                                      ") K; TemporalMap(1,1) N; Cluster(",
                                                      cluster,
                                                      ", P); SpatialMap(1,1) K;")
                                               : text("SpatialMap(1,1) N; TemporalMap(",
                                                      cluster,
                                                      ",",
                                                      cluster,
                                                      ") K; TemporalMap(1,1) M; Cluster(",
                                                      cluster,
                                                      ", P); SpatialMap(1,1) K;");
    const std::string mapping = gemm_text(size.m, size.n, size.k, dataflow);
    SCOPED_TRACE(mapping);
    const maestro::Network network = maestro::parse_network(mapping);
    const int64_t pes = cluster * clusters;
    const maestro::LayerCost cost = maestro::cost_of(network, {.pes = pes}).at(0);
    const Counts counts = counts_of(network.layers[0], pes);
    EXPECT_EQ(counts.macs, cost.macs);
    EXPECT_EQ(counts.space, pes);
    EXPECT_DOUBLE_EQ(static_cast<double>(counts.spacetime) / static_cast<double>(counts.time), cost.average_pes);
    EXPECT_EQ(counts.time,
              (rows_in_space ? size.m / clusters * size.n : size.n / clusters * size.m) * size.k / cluster);
    // A step of a cluster takes a cycle and one in which its words come in; the first words come a cycle before.
    EXPECT_EQ(2 * counts.time + 1, cost.cycles);
    ASSERT_EQ(counts.tensors.size(), 3u);
    EXPECT_EQ(counts.tensors[0].footprint, cost.input.l2_writes);
    EXPECT_EQ(counts.tensors[1].footprint, cost.filter.l2_writes);
    EXPECT_EQ(counts.tensors[2].footprint, cost.output.l2_reads);
    // The innermost loop indexes only one of the two operands; the other one stays.
    EXPECT_EQ(counts.tensors[rows_in_space ? 0 : 1].unique, rows_in_space ? cost.input.l2_reads : cost.filter.l2_reads);
  }
}

// Every map of one level, in every order: products and steps of the relations are the layer's own.
TEST(MaestroRelations, EveryOrderRunsEveryProductOnce) {
  const char* const orders[] = {"M N K", "M K N", "N M K", "N K M", "K M N", "K N M"};
  for (const char* order : orders)
    for (char spatial : {'M', 'N', 'K'})
      for (int64_t tile : {1, 2, 3}) {
        std::string dataflow;
        for (std::string_view dim : split(order, ' '))
          dataflow += text(dim[0] == spatial ? "SpatialMap(" : "TemporalMap(", tile, ",", tile, ") ", dim, ";\n");
        const maestro::Network network = maestro::parse_network(gemm_text(7, 5, 6, dataflow));
        SCOPED_TRACE(dataflow);
        const Counts counts = counts_of(network.layers[0], 4);
        EXPECT_EQ(counts.macs, 7 * 5 * 6);
        EXPECT_EQ(counts.spacetime, counts.macs);
        EXPECT_FALSE(counts.outside_array);
      }
}

TEST(MaestroRelations, ConvolutionsWithStride) {
  const maestro::Network network = maestro::parse_network(
      "Network n { Layer c { Type: CONV Stride { X: 2, Y: 2 } Dimensions { K: 4, C: 3, R: 3, S: 3, Y: 9, X: 9 } "
      "Dataflow { "
      "SpatialMap(1,1) K; TemporalMap(3,3) C; TemporalMap(3,3) R; TemporalMap(3,3) S; TemporalMap(3,1) Y; "
      "TemporalMap(3,1) X; "
      "Cluster(3, P); SpatialMap(1,1) C; } } }");
  const Counts counts = counts_of(network.layers[0], 12);
  EXPECT_EQ(counts.macs, 4 * 3 * 9 * 16);  // 4 x 4 outputs
  EXPECT_EQ(counts.space, 12);
  EXPECT_EQ(counts.time, 16 * 9);
  EXPECT_EQ(counts.tensors[0].footprint, 3 * 81);
  EXPECT_EQ(maestro::cost_of(network, {.pes = 12}).at(0).macs, counts.macs);
}

TEST(MaestroRelations, RefusesWhatComputesTwice) {
  for (const char* dataflow : {"TemporalMap(2,1) M; SpatialMap(1,1) N; TemporalMap(1,1) K;",
                               "TemporalMap(1,2) M; SpatialMap(1,1) N; TemporalMap(1,1) K;",
                               "SpatialMap(1,1) M; SpatialMap(1,1) N; TemporalMap(1,1) K;"})
    EXPECT_THROW(maestro::problem_of(maestro::parse_network(gemm_text(8, 8, 8, dataflow)).layers[0], 16), Error)
        << dataflow;
}

}  // namespace
}  // namespace sator::formats
