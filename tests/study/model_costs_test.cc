#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/text.h"
#include "frontend/hf_config.h"
#include "reference_data.h"
#include "study/measure.h"
#include "study/phase.h"
#include "study/sample.h"
#include "study/tenet_files.h"
#include "study/workers.h"

namespace sator::study {
namespace {

/// The example under a scheme, costed from its program on one chip; nothing is run.
ChipResult cost_of(const std::string& scheme, const std::string& chip) {
  SchemeJob job{.scheme = llm::parse_scheme(scheme), .options = {}, .decode_context = 144};
  job.options.model = std::string(SATOR_SOURCE_DIR) + "/examples/gpt2-stories";
  job.options.shapes_only = true;
  const std::vector<Chip> chips = {shipped(chip)};
  return model_workers().cost(job, chips, [](const std::string&, bool) {}).at(0);
}

int64_t stored_bytes(const std::string& scheme) {
  const fs::path model = std::string(SATOR_SOURCE_DIR) + "/examples/gpt2-stories";
  return sizes_of_shapes(model, llm::parse_scheme(scheme)).weight_bytes;
}

// A decode step reads all that is stored, once: but of the table of 512 positions one row, and besides the head, which
// is the embedding, one row of that. Rows have 256 numbers.
TEST(ModelCosts, ADecodeStepReadsTheStoredBytes) {
  struct Case {
    const char* scheme;
    int64_t table_bits;  // of position table and embedding, which these schemes leave alone
  };
  for (const Case& c : {Case{"f32", 32},
                        Case{"f16", 16},
                        Case{"int8-tensor", 16},
                        Case{"int8-channel", 16},
                        Case{"int8-input", 16},
                        Case{"int8-channel+a8", 16},
                        Case{"int4-group32", 16}}) {
    const OperandBits moved = cost_of(c.scheme, "edge_npu32").decode.cost.levels.at(0).by_kind;
    const int64_t row = 256 * c.table_bits;
    EXPECT_EQ(moved.weight + moved.scale, stored_bytes(c.scheme) * 8 - 512 * row + 2 * row) << c.scheme;
  }
}

// Here the embedding is quantized too: its row has 256 codes of 4 bits and 8 scales of 16.
TEST(ModelCosts, OfAQuantizedEmbeddingARowIsRead) {
  const OperandBits moved = cost_of("q4f16_1", "edge_npu32").decode.cost.levels.at(0).by_kind;
  const int64_t position = 256 * 16, row = 256 * 4 + 8 * 16;
  EXPECT_EQ(moved.weight + moved.scale, stored_bytes("q4f16_1") * 8 - 512 * position + position + row);
}

// Keys and values of eight layers, 256 numbers each per token, in the cache's dtype: that of the checkpoint, float16, but exact
// under f32. 144 tokens are attended to, one is appended.
TEST(ModelCosts, ADecodeStepReadsTheCacheOnce) {
  for (const auto& [scheme, bits] : {std::pair{"f16", 16}, {"int4-group32", 16}, {"f32", 32}}) {
    const OperandBits moved = cost_of(scheme, "edge_npu32").decode.cost.levels.at(0).by_kind;
    const int64_t token = 8 * 2 * 256 * bits;
    EXPECT_EQ(moved.kv, 144 * token + token) << scheme;
  }
}

// Layers with a window of 6 positions and layers that see all are launches of different work, however alike their sizes are.
TEST(ModelCosts, WindowedAndFullAttentionAreCostedApart) {
  for (const char* family : {"gemma2", "gemma3", "gpt-oss", "cohere2"}) {
    SCOPED_TRACE(family);
    SchemeJob job{.scheme = llm::parse_scheme("f16"), .options = {}, .decode_context = 20};
    job.options.model = reference_data("models/families") / family;
    job.options.shapes_only = true;
    job.options.prompt_len = 16, job.options.gen_len = 4;
    const ModelConfig config = read_model_config(job.options.model);
    ASSERT_EQ(config.attention.window, 6);
    const std::vector<Chip> chips = {shipped("edge_npu32")};
    const ChipResult result = model_workers().cost(job, chips, [](const std::string&, bool) {}).at(0);
    // Queries meet pairs of positions: all up to their own, or the last six of them.
    const int64_t pair = 2 * config.attention.heads * config.attention.head_dim;
    const std::map<std::string, int64_t> prefill = {{"attention", 136}, {"attention_window", 21 + 10 * 6}},
                                         decode = {{"attention", 20}, {"attention_window", 6}};
    for (const auto& [phase, pairs] : {std::pair{&result.prefill, prefill}, {&result.decode, decode}}) {
      std::set<std::string> seen;
      for (const KernelRow& row : phase->rows)
        if (auto at = pairs.find(row.function); at != pairs.end()) {
          EXPECT_EQ(row.cost.macs, pair * at->second) << row.function;
          seen.insert(row.function);
        }
      EXPECT_EQ(seen.size(), 2U);
    }
  }
}

/// Causal attention: its rows run in blocks, each with a mapping of its own, or in one pass.
bool runs_in_blocks(const KernelRow& row) { return row.tile.starts_with("in "); }

TEST(ModelCosts, PartsSumOnEveryChip) {
  for (const char* chip : {"tpuv1", "gemmini16", "edge_npu32"})
    for (const char* scheme : {"int8-channel+a8", "q4f16_1"}) {
      const ChipResult result = cost_of(scheme, chip);
      EXPECT_GT(result.decode.kernels_checked, 0);
      for (const PhaseName& phase : kPhases) {
        const PhaseResult& p = result.*phase.result;
        EXPECT_EQ(p.kernels_costed, p.kernels);
        int64_t cycles = 0, macs = 0;
        for (const ComponentCost& c : p.cost.components) cycles += c.latency_cycles;
        for (const KernelRow& row : p.rows) {
          macs += row.cost.macs * row.count;
          // What runs on the array has its mapping as a schedule, which the study has read again and counted.
          EXPECT_EQ(row.schedule.find("sch.bind(") != std::string::npos, row.k > 0 && !runs_in_blocks(row))
              << row.schedule;
          // On 256 x 256 PEs whole rows of 16 bits take no more than blocks of them.
          const bool whole = std::string_view(chip) == "tpuv1" && std::string_view(scheme).ends_with("+a8");
          EXPECT_EQ(runs_in_blocks(row), row.function == "attention" && &p == &result.prefill && !whole);
        }
        EXPECT_EQ(cycles, p.cost.latency_cycles);
        EXPECT_EQ(macs, p.cost.macs);
        for (const LevelCost& l : p.cost.levels) EXPECT_EQ(l.by_kind.total(), l.bits()) << l.name;
        EXPECT_GT(p.cost.utilization, 0);
        EXPECT_LE(p.cost.utilization, 1);
        EXPECT_LE(p.cost.mac_units_used, static_cast<double>(shipped(chip).pes()));
      }
    }
}

class TenetFiles : public testing::TestWithParam<const char*> {};

// Also of a chip with two cores, whose number is a coordinate of space.
INSTANTIATE_TEST_SUITE_P(ModelCosts, TenetFiles, testing::Values("edge_npu32", "tpuv3"));

// Each product as TENET's files, read again: the volumes are the kernel's, and every product has its line per tensor.
TEST_P(TenetFiles, HoldTheProducts) {
  Study study;
  study.chips = {facts_of(shipped(GetParam()))};
  study.schemes = {{.name = "q4f16_1", .chips = {cost_of("q4f16_1", GetParam())}}};
  std::map<std::string, std::string> files;
  for (auto& [name, words] : tenet_files(study)) EXPECT_TRUE(files.emplace(name, words).second) << name;
  const std::vector<std::string_view> metrics = split(files.at("tenet/metrics.csv"), '\n');
  std::map<std::string, int64_t> unique;  // by the name of the files
  for (size_t l = 1; l + 1 < metrics.size(); ++l) {
    const std::vector<std::string_view> fields = split(metrics[l], ',');
    ASSERT_EQ(fields.size(), split(metrics[0], ',').size()) << metrics[l];
    unique[std::string(fields[0])] += std::stoll(std::string(fields[6]));
    EXPECT_GE(std::stoll(std::string(fields[13])), 0) << metrics[l];  // delay_cycles
    EXPECT_FALSE(fields[3].starts_with("dequantize")) << "made on the way from codes, which are moved: " << metrics[l];
  }
  EXPECT_EQ(files.size(), 3 * unique.size() + 1);
  EXPECT_GE(unique.size(), 8U);  // four linear layers of a block, twice, beside attention and head
  const TenetNames names(study);
  for (const PhaseName& phase : kPhases)
    for (const KernelRow& row : (study.schemes[0].chips[0].*phase.result).rows) {
      if (row.k == 0 || runs_in_blocks(row)) continue;  // of blocks the last one has files
      int64_t volume = 0;
      const std::string files_of_row = names.of(study.chips[0].name, row);
      for (std::string_view name : split(files_of_row, ';')) volume += unique.at(std::string(trim(name)));
      EXPECT_EQ(volume, row.counts.unique) << row.function;
    }
}

// What the schemes are for: codes of 8 bits with activations of 8 bits run as they are on a chip that has both.
TEST(ModelCosts, IntegerSchemesRunAsIntegers) {
  const ChipResult result = cost_of("int8-channel+a8", "edge_npu32");
  bool integers = false;
  for (const PrecisionUse& p : result.prefill.cost.precisions)
    if (p.asked == "int8 x int8") integers = p.exact() && p.macs > result.prefill.cost.macs / 2;
  EXPECT_TRUE(integers);
}

}  // namespace
}  // namespace sator::study
