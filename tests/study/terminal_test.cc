#include "study/terminal.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/figures.h"
#include "base/text.h"
#include "study/by_hand.h"
#include "study/sample.h"

namespace sator::study {
namespace {

void expect_fits(const std::string& table, size_t width) {
  for (std::string_view line : split(table, '\n')) EXPECT_LE(display_width(line), width) << line;
}

/// The line of the table after `section` that begins with `name`.
std::string line_of(const std::string& table, const std::string& section, const std::string& name) {
  bool inside = section.empty();
  for (std::string_view line : split(table, '\n')) {
    inside |= !section.empty() && line.starts_with(section);
    if (inside && line.starts_with(name + " ")) return std::string(line);
  }
  return "";
}

TEST(TerminalTable, SaysFiguresAndRatios) {
  Study study = study_by_hand({{"f16", 30.25, 3000, 500}, {"int4", 31.5, 1000, 125}}, {"chip"});
  study.schemes[1].weight_bytes = 4'500'000;
  study.schemes[1].bits_per_weight = 4.5;
  study.schemes[1].host_decode = HostSpeed{812.3, 700, 820};
  const std::string table = terminal_table(study);
  expect_fits(table, 120);
  EXPECT_EQ(line_of(table, "", "int4").substr(0, 4), "int4");
  for (const char* figure : {"31.500", "4.50 MB", "4.50"})
    EXPECT_NE(line_of(table, "", "int4").find(figure), std::string::npos) << figure << "\n" << table;
  for (const char* figure : {"812~", "700", "820"})
    EXPECT_NE(line_of(table, "speed here", "int4").find(figure), std::string::npos) << figure << "\n" << table;
  EXPECT_NE(table.find("~ rounds differ by more than 10 %"), std::string::npos);
  const std::string line = line_of(table, "chip:", "int4");
  // 1000 cycles at 1 GHz against 3000; 125 against 500.
  for (const char* figure : {"1.00 µs", "1.00 M", "64.0", "10.0 GB/s", "3.00x", "125 ns", "125 k", "4.00x"})
    EXPECT_NE(line.find(figure), std::string::npos) << figure << "\n" << table;
  EXPECT_NE(line_of(table, "chip:", "f16").find("1.00x"), std::string::npos);
  EXPECT_NE(table.find("vs f16"), std::string::npos);
  EXPECT_NE(table.find("estimate, not calibrated to silicon"), std::string::npos);
  EXPECT_NE(table.find("int4 is fastest on chip"), std::string::npos);
}

TEST(TerminalTable, NamesTheBaselineOfEachChip) {
  Study study =
      study_by_hand({{"f16", 30.0, 3000, 500}, {"f16+a16", 30.0, 600, 500}, {"int4", 31.0, 300, 125}}, {"npu", "gpu"});
  study.chips[1].is_16_bit = true;
  const std::string table = terminal_table(study);
  EXPECT_NE(line_of(table, "npu:", "scheme").find("vs f16"), std::string::npos) << table;
  EXPECT_NE(line_of(table, "npu:", "int4").find("10.0x"), std::string::npos) << table;
  const size_t gpu = table.find("\ngpu:"), names = table.find("\nscheme", gpu);
  ASSERT_NE(names, std::string::npos);
  const std::vector<std::string_view> head = split(std::string_view(table).substr(names + 1), '\n');
  EXPECT_EQ(std::ranges::count(split(head[0], ' '), "vs"), 2) << table;
  EXPECT_EQ(std::ranges::count(split(head[1], ' '), "f16+a16"), 2) << table;
  EXPECT_NE(line_of(table, "gpu:", "int4").find("2.00x"), std::string::npos) << table;
  EXPECT_NE(table.find("x f16+a16's speed"), std::string::npos) << table;
}

// Of one window nothing is known about how windows differ: its errors are dashes, its figures are not.
TEST(TerminalTable, OneWindowHasNoErrors) {
  Study study = study_by_hand({{"f32", 30.0, 3000, 500}, {"int4", 31.5, 1000, 125}}, {"chip"});
  study.protocol.reference = "f32";
  study.schemes[1].compared = Compared{{1.5, {}}, {0.0421, {}}, 0.912};
  const std::string table = terminal_table(study), line = line_of(table, "", "int4");
  for (const char* figure : {"31.500", "+1.50", "0.0421", "91.2 %"})
    EXPECT_NE(line.find(figure), std::string::npos) << figure << "\n" << table;
  EXPECT_EQ(std::count(line.begin(), line.end(), '-'), 3);
  EXPECT_NE(table.find("f32 has 30.000"), std::string::npos) << table;
  study.schemes[1].compared = Compared{{1.5, 0.0123}, {4.21e-7, 3e-9}, 0.912};
  study.schemes[1].standard_error = 2.25;
  for (const char* figure : {"2.25", "0.0123", "4.21e-07", "3.00e-09"})
    EXPECT_NE(line_of(terminal_table(study), "", "int4").find(figure), std::string::npos) << figure;
}

TEST(TerminalTable, WhatWasNotMeasuredIsADash) {
  Study study = study_by_hand({{"f16", {}, 3000, 500}}, {"chip"});
  study.protocol.shapes_only = true;
  const std::string line = line_of(terminal_table(study), "", "f16");
  // perplexity and its error, the difference and its error, divergence and its error, the same token
  EXPECT_EQ(std::count(line.begin(), line.end(), '-'), 7);
  EXPECT_EQ(terminal_table(study).find("speed here"), std::string::npos);
}

TEST(TerminalTable, FitsWithTheLongestNames) {
  std::vector<SchemeByHand> schemes;
  for (int i = 0; i < 30; ++i)
    schemes.push_back(
        {"int4-group128-asym+embed+a8-embedding-" + std::to_string(i), 1e9, 1'000'000'000 + i, 77777 + i});
  Study study =
      study_by_hand(schemes, {"a_chip_with_a_rather_long_name_that_somebody_gave_to_it_and_nobody_dared_to_cut", "b"});
  study.protocol.host = std::string(300, 'x');
  expect_fits(terminal_table(study), 120);
}

TEST(TerminalTable, NothingToShow) {
  const std::string table = terminal_table(study_by_hand({}, {"chip"}));
  EXPECT_NE(table.find("no scheme was run"), std::string::npos);
}

TEST(TerminalTable, SaysWhatRunsOtherwise) {
  const std::string table = terminal_table(sample_study({default_samples()[0], default_samples()[5]}, {"edge_npu32"}));
  expect_fits(table, 120);
  EXPECT_NE(table.find("float32 x float32 runs as int16 x int16 in 4 passes: f32\n"), std::string::npos) << table;
  EXPECT_NE(table.find("float16 x float32 runs as int16 x int16 in 2 passes: all schemes\n"), std::string::npos)
      << table;
}

}  // namespace
}  // namespace sator::study
