#include "study/csv.h"

#include <gtest/gtest.h>

#include <map>

#include "study/by_hand.h"
#include "study/csv_table.h"
#include "study/sample.h"

namespace sator::study {
namespace {

using Line = std::map<std::string, std::string>;

/// CSV as RFC 4180 defines it, by the names of its first line.
std::vector<Line> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> lines(1, {""});
  bool in_quotes = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& field = lines.back().back();
    if (in_quotes) {
      if (c != '"')
        field += c;
      else if (i + 1 < text.size() && text[i + 1] == '"')
        field += text[++i];
      else
        in_quotes = false;
    } else if (c == '"') {
      in_quotes = true;
    } else if (c == ',') {
      lines.back().push_back("");
    } else if (c == '\n') {
      lines.push_back({""});
    } else {
      field += c;
    }
  }
  lines.pop_back();
  std::vector<Line> result;
  for (size_t l = 1; l < lines.size(); ++l) {
    EXPECT_EQ(lines[l].size(), lines[0].size()) << "line " << l;
    Line line;
    for (size_t c = 0; c < lines[0].size(); ++c)
      EXPECT_TRUE(line.emplace(lines[0][c], lines[l][c]).second) << lines[0][c];
    result.push_back(std::move(line));
  }
  return result;
}

TEST(CsvField, IsQuotedWhereItMustBe) {
  EXPECT_EQ(csv_field("plain text"), "plain text");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_field(""), "");
}

TEST(StudyCsv, TextOfAllKindsSurvives) {
  Study study = study_by_hand({{"a,\"b\"\nc", 30.5, 10, 20}}, {"chip, the first"});
  study.model.name = "say \"x\"";
  const std::vector<Line> lines = parse_csv(study_csv(study));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].at("scheme"), "a,\"b\"\nc");
  EXPECT_EQ(lines[0].at("chip"), "chip, the first");
  EXPECT_EQ(lines[0].at("model"), "say \"x\"");
  EXPECT_EQ(lines[0].at("phase"), "prefill");
  EXPECT_EQ(lines[1].at("phase"), "decode");
  EXPECT_EQ(lines[0].at("perplexity"), "30.5");
}

TEST(StudyCsv, RatiosAndColumnsOfTheirOwn) {
  Study study = study_by_hand({{"f16", 30.0, 3000, 500}, {"int4", {}, 1000, 125}}, {"chip"});
  at(study.schemes[1].chips[0].decode.cost.components, Component::dequantize) = {7, 42, 21};
  at(study.schemes[1].chips[0].decode.cost.components, Component::rescale) = {3, 6, 2};
  study.schemes[1].chips[0].decode.cost.levels[0].by_kind = {.weight = 804, .scale = 160, .kv = 8};
  const std::vector<Line> lines = parse_csv(study_csv(study));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[2].at("ratio_latency"), "3");
  EXPECT_EQ(lines[3].at("ratio_latency"), "4");
  EXPECT_EQ(lines[3].at("ratio_baseline"), "f16");
  EXPECT_EQ(lines[3].at("perplexity"), "");
  EXPECT_EQ(lines[3].at("weight_bytes_moved"), "100.5");
  EXPECT_EQ(lines[3].at("scale_bytes_moved"), "20");
  EXPECT_EQ(lines[3].at("kv_bytes_moved"), "1");
  EXPECT_EQ(lines[3].at("dequantize_latency_cycles"), "7");
  EXPECT_EQ(lines[3].at("dequantize_vector_ops"), "42");
  EXPECT_EQ(lines[3].at("rescale_vector_cycles"), "2");
}

TEST(StudyCsv, RatiosAreToTheChipsBaseline) {
  Study study =
      study_by_hand({{"f16", 30.0, 3000, 500}, {"f16+a16", 30.0, 600, 500}, {"int4", {}, 300, 125}}, {"a", "b"});
  study.chips[1].is_16_bit = true;
  const std::vector<Line> lines = parse_csv(study_csv(study));
  ASSERT_EQ(lines.size(), 12U);
  EXPECT_EQ(lines[8].at("chip") + lines[8].at("phase") + lines[8].at("scheme"), "aprefillint4");
  EXPECT_EQ(lines[8].at("ratio_latency"), "10");
  EXPECT_NEAR(std::stod(lines[8].at("ratio_energy")), 10, 1e-9);
  EXPECT_EQ(lines[8].at("ratio_bytes"), "10");
  EXPECT_EQ(lines[8].at("ratio_baseline"), "f16");
  EXPECT_EQ(lines[10].at("chip") + lines[10].at("phase") + lines[10].at("scheme"), "bprefillint4");
  EXPECT_EQ(lines[10].at("ratio_latency"), "2");
  EXPECT_NEAR(std::stod(lines[10].at("ratio_energy")), 2, 1e-9);
  EXPECT_EQ(lines[10].at("ratio_bytes"), "2");
  EXPECT_EQ(lines[10].at("ratio_baseline"), "f16+a16");
}

TEST(StudyCsv, WithoutSchemesThereIsTheHead) {
  const Study study = study_by_hand({}, {"chip"});
  EXPECT_TRUE(parse_csv(study_csv(study)).empty());
  EXPECT_TRUE(study_csv(study).starts_with("model,scheme,chip,phase,"));
  EXPECT_TRUE(kernels_csv(study).starts_with("model,scheme,chip,phase,function,layer,count,"));
}

// The lines of kernels.csv, each by its count, sum to those of study.csv.
TEST(KernelsCsv, SumsToTheStudy) {
  const Study study = sample_study({default_samples()[1], default_samples()[10]}, {"gemmini16", "edge_npu32"});
  std::map<std::string, std::map<std::string, double>> sums;
  const std::vector<std::string> added = {"latency_cycles",
                                          "macs",
                                          "weight_bytes_moved",
                                          "scale_bytes_moved",
                                          "dequantize_vector_ops",
                                          "attention_latency_cycles"};
  auto key = [](const Line& l) { return l.at("scheme") + "/" + l.at("chip") + "/" + l.at("phase"); };
  int64_t kernels = 0;
  for (const Line& line : parse_csv(kernels_csv(study))) {
    ++kernels;
    for (const std::string& name : added)
      sums[key(line)][name] += std::stod(line.at(name)) * std::stod(line.at("count"));
  }
  EXPECT_EQ(kernels, tally(study).kernels);
  const std::vector<Line> lines = parse_csv(study_csv(study));
  EXPECT_EQ(lines.size(), 8U);
  for (const Line& line : lines)
    for (const std::string& name : added)
      EXPECT_EQ(std::stod(line.at(name)), sums[key(line)][name]) << key(line) << name;
}

TEST(KernelsCsv, HasSizesAndReuse) {
  const Study study = sample_study({default_samples()[5]}, {"edge_npu32"});
  int found = 0;
  for (const Line& line : parse_csv(kernels_csv(study))) {
    if (line.at("function") != "down" || line.at("phase") != "prefill") continue;
    ++found;
    EXPECT_EQ(line.at("i"), "128");
    EXPECT_EQ(line.at("j"), "256");
    EXPECT_EQ(line.at("k"), "1024");
    EXPECT_EQ(line.at("weight_bits"), "8");
    EXPECT_EQ(line.at("computes"), "int8 x int8");
    EXPECT_EQ(line.at("runs_as"), "int8 x int8");
    EXPECT_NE(line.at("tile"), "");
    EXPECT_NEAR(std::stod(line.at("reuse_factor")),
                std::stod(line.at("total_volume")) / std::stod(line.at("unique_volume")),
                1e-9);
    EXPECT_EQ(line.at("host_duration_us"), "12.5");
    EXPECT_NE(line.at("read_bytes_weight_buffer"), "");
  }
  EXPECT_EQ(found, 8);
}

// Chips name their memories; a chip without one of them leaves its columns empty.
TEST(KernelsCsv, MemoriesOfAllChipsHaveColumns) {
  const Study study = sample_study({default_samples()[1]}, {"gemmini16", "edge_npu32"});
  for (const Line& line : parse_csv(study_csv(study))) {
    EXPECT_EQ(line.at("read_bytes_scratchpad").empty(), line.at("chip") != "gemmini16");
    EXPECT_EQ(line.at("read_bytes_weight_buffer").empty(), line.at("chip") != "edge_npu32");
    EXPECT_FALSE(line.at("read_bytes_dram").empty());
  }
}

}  // namespace
}  // namespace sator::study
