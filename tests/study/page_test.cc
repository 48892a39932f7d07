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
  for (const char* what : {"<script", "src=", "href=", "url(", "@import", "http"})
    EXPECT_EQ(page.find(what), std::string::npos) << what;
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
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("alert(\""), std::string::npos);
  EXPECT_EQ(nesting_error(page), "");
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
