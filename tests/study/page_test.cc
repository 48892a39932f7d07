#include "study/page.h"

#include <gtest/gtest.h>

#include <limits>

#include "study/by_hand.h"
#include "study/markup.h"
#include "study/page_figures.h"
#include "study/sample.h"

namespace sator::study {
namespace {

TEST(Page, NeedsNothingElse) {
  const std::string page = html_page(sample_study(default_samples(), {"tpuv1", "edge_npu32"}));
  EXPECT_EQ(nesting_error(page), "");
  for (const char* what : {"<script ", "src=", "url(", "@import", "http", "import("})
    EXPECT_EQ(page.find(what), std::string::npos) << what;
  EXPECT_EQ(page.find("<script>"), page.rfind("<script>"));  // the page's own
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(page.find("width=device-width"), std::string::npos);
}

TEST(Page, SaysWhatWasCosted) {
  const Study study = sample_study({default_samples()[1], default_samples()[10]}, {"edge_npu32"});
  const std::string page = html_page(study);
  // 1 embedding, 8 layers of 6 or (with activation quantization) 8 kernels, 1 head; two phases.
  EXPECT_NE(page.find("kernels costed: 232 of 232; counts checked by enumeration on 0 kernels"), std::string::npos);
  EXPECT_NE(page.find("estimate, not calibrated to silicon"), std::string::npos);
  EXPECT_NE(page.find("edge_npu32, 7 nm"), std::string::npos);
  for (const SchemeResult& s : study.schemes) EXPECT_NE(page.find(s.name), std::string::npos);
}

TEST(Page, RatiosAreToTheChipsBaseline) {
  Study study =
      study_by_hand({{"f16", 30.0, 6000, 500}, {"f16+a16", 30.0, 600, 500}, {"int4", 31.0, 300, 125}}, {"gpu"});
  for (const bool is_16_bit : {false, true}) {
    study.chips[0].is_16_bit = is_16_bit;
    const std::string page = html_page(study), base = is_16_bit ? "f16+a16" : "f16";
    const std::string factor = is_16_bit ? "3.61x" : "7.1";  // 5.6 or 11 us against 1.55 us
    EXPECT_NE(page.find("<th>vs " + base + "</th>"), std::string::npos) << base;
    EXPECT_NE(page.find("<div class=\"who\">int4 vs " + base + "</div>"), std::string::npos) << base;
    EXPECT_NE(page.find("<div class=\"big\">" + factor), std::string::npos) << base;
  }
}

TEST(Page, TextOfTheStudyIsNoMarkup) {
  Study study = sample_study({default_samples()[1]}, {"edge_npu32"});
  const std::string evil = "<script>alert(\"x\")</script>&'";
  study.model.name = study.model.type = study.protocol.text = study.protocol.host = study.protocol.version = evil;
  study.chips[0].name = study.chips[0].description = evil;
  study.schemes[0].name = study.schemes[0].description = evil;
  for (PhaseResult* phase : {&study.schemes[0].chips[0].prefill, &study.schemes[0].chips[0].decode}) {
    phase->cost.bound = phase->cost.energy[0].source = phase->cost.energy[0].name = evil;
    phase->cost.precisions[0].asked = evil;
    for (KernelRow& row : phase->rows) row.layer = row.function = evil;
  }
  const std::string page = html_page(study);
  EXPECT_EQ(page.find("<script>"), page.rfind("<script>"));
  EXPECT_EQ(page.find("alert(\""), std::string::npos);
  EXPECT_EQ(nesting_error(page), "");
}

// Each link of the contents leads to a section, and each section has one.
TEST(Page, HasContents) {
  const std::string page =
      html_page(sample_study({default_samples()[0], default_samples()[9]}, {"tpuv1", "edge_npu32"}));
  std::vector<std::string> links, targets;
  auto collect = [&](const std::string& before, std::vector<std::string>& into) {
    for (size_t at = page.find(before); at != std::string::npos; at = page.find(before, at + 1)) {
      const size_t begin = at + before.size();
      into.push_back(page.substr(begin, page.find('"', begin) - begin));
    }
  };
  collect("href=\"", links);
  collect("<h2 id=\"", targets);
  for (std::string& t : targets) t = "#" + t;
  EXPECT_EQ(links, targets);
  EXPECT_GE(links.size(), 6U);
  EXPECT_EQ(page.find("<h2>"), std::string::npos);
  EXPECT_LT(page.find("<nav"), page.find("<h2"));
}

// The figures of the tables, and what is said of speeds whose rounds differ.
TEST(Page, SaysErrorsAndSpreads) {
  Study study = sample_study({default_samples()[0], default_samples()[9]}, {"edge_npu32"});
  study.protocol.reference = "f32";
  study.protocol.measured_at = "2026-11-22T20:45:03Z";
  study.protocol.rounds = 5;
  study.schemes[1].compared = Compared{{1.142, 0.0312}, {0.0353, {}}, 0.876};
  const std::string page = html_page(study);
  for (const char* words :
       {"+1.14", "0.0312", "0.0353", "87.6 %", "860~", "760", "861", "2026-11-22T20:45:03Z", "~ rounds differ"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
}

// The best perplexity is marked, and so are those that the same windows do not tell from it.
TEST(Page, MarksWhatIsNotSurelyWorse) {
  Study study = study_by_hand({{"f16", 30.0, 10, 1}, {"close", 30.1, 10, 1}, {"far", 30.1, 10, 1}}, {"chip"});
  study.schemes[0].window_nats = {3.0, 3.5, 3.7, 3.4};
  study.schemes[1].window_nats = {3.1, 3.4, 3.8, 3.4};
  study.schemes[2].window_nats = {3.1, 3.6, 3.8, 3.5};
  const std::string page = html_page(study);
  auto perplexity_of = [&](const std::string& scheme) {
    const size_t row = page.find(scheme + "</th>"), begin = page.find("<td", row);
    return page.substr(begin, page.find('>', begin) - begin);
  };
  EXPECT_NE(perplexity_of("f16").find("best"), std::string::npos);
  EXPECT_NE(perplexity_of("close").find("best"), std::string::npos);
  EXPECT_EQ(perplexity_of("far").find("best"), std::string::npos);
}

TEST(Page, SurvivesExtremes) {
  std::vector<SchemeByHand> thirty;
  for (int i = 0; i < 30; ++i) thirty.push_back({"scheme " + std::to_string(i), 30.0 + i, 1000 + 100 * i, 100 + i});
  for (const Study& study :
       {study_by_hand({}, {}),
        study_by_hand({}, {"chip"}),
        study_by_hand({{"f16", 30.0, 10, 1}}, {"chip"}),
        study_by_hand({{"f16", {}, 10, 1}, {"int4", {}, 5, 1}}, {"chip"}),
        study_by_hand({{"f16", 30.0, 0, 0}}, {"chip"}),
        study_by_hand({{"f16", std::numeric_limits<double>::infinity(), 10, 1}, {"int4", 30.0, 5, 1}}, {"chip"}),
        study_by_hand(thirty, {"a", "b", "c", "d"})}) {
    const std::string page = html_page(study);
    EXPECT_EQ(nesting_error(page), "");
    EXPECT_EQ(page.find("=\"nan"), std::string::npos);
  }
}

TEST(Page, WithoutPerplexityThereIsNoQualityPlot) {
  const std::string page = html_page(study_by_hand({{"f16", {}, 10, 1}}, {"chip"}));
  EXPECT_NE(page.find("No perplexity was measured"), std::string::npos);
  EXPECT_EQ(page.find("Quality against cost"), std::string::npos);
}

TEST(Page, LayersAreGroupedByBlock) {
  EXPECT_EQ(block_of("transformer.h.3.attn.c_attn"), "h.3");
  EXPECT_EQ(block_of("model.layers.12"), "layers.12");
  EXPECT_EQ(block_of("layers.0.mlp"), "layers.0");
  EXPECT_EQ(block_of("lm_head"), "lm_head");
  EXPECT_EQ(block_of("transformer.ln_f"), "ln_f");
  EXPECT_EQ(block_of(""), "other");
}

}  // namespace
}  // namespace sator::study
