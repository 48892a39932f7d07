#include "study/kernels_csv.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "study/csv.h"
#include "study/sample.h"

namespace sator::study {
namespace {

using Records = std::vector<std::vector<std::string>>;

std::string refused(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& e) {
    return e.reason.what + " @ " + e.reason.where;
  }
  return "";
}

TEST(Csv, ReadsQuotes) {
  EXPECT_EQ(parse_csv("a,b\r\n\"x, \"\"y\"\"\",\"1\n2\"\n,\n", "f"),
            (Records{{"a", "b"}, {"x, \"y\"", "1\n2"}, {"", ""}}));
  EXPECT_EQ(parse_csv("", "f"), Records{});
  EXPECT_EQ(parse_csv("a,", "f"), (Records{{"a", ""}}));
  EXPECT_EQ(refused([] { parse_csv("a\nb\n\"open", "f.csv"); }), "a quoted field does not end @ f.csv, line 3");
  EXPECT_EQ(refused([] { parse_csv("\"a\"b", "f.csv"); }), "text follows a closing quote @ f.csv, line 1");
}

Study without_kernels(Study study) {
  for (SchemeResult& s : study.schemes)
    for (ChipResult& c : s.chips) c.prefill.rows.clear(), c.decode.rows.clear();
  return study;
}

TEST(KernelsCsv, ComesBack) {
  Study study = sample_study({default_samples()[1], default_samples()[9]}, {"tpuv1", "edge_npu32"});
  study.schemes[0].chips[0].decode.rows[1].tenet_terms = {{1, 2, 16, 64, 3, 4, 5, 6, 7, 8}, {.items_in = 9, .pes = 10}};
  Study read = without_kernels(study);
  add_kernels(read, kernels_csv(study), "kernels.csv");
  for (size_t s = 0; s < study.schemes.size(); ++s)
    for (size_t c = 0; c < study.chips.size(); ++c)
      for (const PhaseName& phase : kPhases) {
        const auto& wanted = (study.schemes[s].chips[c].*phase.result).rows;
        const auto& rows = (read.schemes[s].chips[c].*phase.result).rows;
        ASSERT_EQ(rows.size(), wanted.size());
        for (size_t r = 0; r < rows.size(); ++r) {
          EXPECT_EQ(rows[r].function, wanted[r].function);
          EXPECT_EQ(rows[r].layer, wanted[r].layer);
          EXPECT_EQ(rows[r].count, wanted[r].count);
          EXPECT_EQ(rows[r].j, wanted[r].j);
          EXPECT_EQ(rows[r].tenet_terms, wanted[r].tenet_terms);
          EXPECT_EQ(rows[r].duration_us, wanted[r].duration_us);
          EXPECT_EQ(rows[r].weight_bits, wanted[r].weight_bits);
          EXPECT_EQ(rows[r].counts.unique, wanted[r].counts.unique);
          EXPECT_EQ(rows[r].stream_cycles, wanted[r].stream_cycles);
          const Cost &a = rows[r].cost, &b = wanted[r].cost;
          EXPECT_EQ(a.latency_s, b.latency_s);
          EXPECT_EQ(a.latency_parts, b.latency_parts);
          EXPECT_EQ(a.resources, b.resources);
          EXPECT_EQ(a.components, b.components);
          EXPECT_EQ(a.clock_elasticity, b.clock_elasticity);
          EXPECT_EQ(a.elasticities, b.elasticities);
          EXPECT_EQ(a.energy_j, b.energy_j);
          ASSERT_EQ(a.levels.size(), b.levels.size());
          EXPECT_EQ(a.levels[0], b.levels[0]);
          EXPECT_EQ(a.levels.back().bits(), b.levels.back().bits());
        }
      }
}

TEST(KernelsCsv, BadFilesAreRefusedWithTheLine) {
  const Study study = sample_study({default_samples()[1]}, {"edge_npu32"});
  const Study bare = without_kernels(study);
  const std::string good = kernels_csv(study);
  auto answer = [&](const std::string& csv) {
    return refused([&] {
      Study read = bare;
      add_kernels(read, csv, "k.csv");
    });
  };
  auto with = [&](const std::string& from, const std::string& to) {
    std::string csv = good;
    const size_t at = csv.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return csv.replace(at, from.size(), to);
  };
  EXPECT_EQ(answer(good), "");
  EXPECT_EQ(answer(""), "the file is empty @ k.csv, line 1");
  EXPECT_EQ(answer(with("latency_cycles", "latency_bicycles")),
            "there is no column \"latency_cycles\" @ k.csv, line 1");
  EXPECT_EQ(answer(with("f16,edge_npu32,prefill", "f17,edge_npu32,prefill")),
            "there is no prefill of f17 on edge_npu32 @ k.csv, line 2");
  EXPECT_EQ(answer(good + "a,b\n").substr(0, 21), "the line has 2 fields");
  EXPECT_NE(answer(good.substr(0, good.rfind("gpt2-stories"))).find("cycles, but study.json says"), std::string::npos);
  EXPECT_NE(
      answer(with("take,transformer.wte,1,", "take,transformer.wte,one,")).find("count is \"one\" @ k.csv, line 2"),
      std::string::npos);
  // No prefix of the file makes more than an error of it.
  for (size_t n = 0; n < good.size(); n += 997) answer(good.substr(0, n));
}

}  // namespace
}  // namespace sator::study
