#include "study/browser.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "study/by_hand.h"
#include "study/page.h"
#include "study/sample.h"

namespace sator::study {
namespace {

struct Window {
  const char* name;
  int width;
  bool dark;
  double letters;  // the least height that is read there without effort, in pixels
};

void expect_good(const Look& look, const Window& window) {
  ASSERT_TRUE(look.seen.is_object()) << "the browser did not finish";
  const Json& seen = look.seen;
  EXPECT_EQ(look.console, "");
  EXPECT_EQ(seen["dark"], window.dark);
  EXPECT_EQ(seen["requests"], 0);
  EXPECT_LE(seen["wide"].get<double>(), 0);
  EXPECT_GT(seen["texts"].get<int>(), 0);
  EXPECT_EQ(seen["unnamed"], 0);
  EXPECT_EQ(seen["outside"].dump(), "[]");
  EXPECT_EQ(seen["overlapping"], 0) << seen["overlaps"].dump(2);
  EXPECT_GE(seen["contrast"].get<double>(), 4.5) << seen["faintest"];
  EXPECT_GE(seen["smallest"].get<double>(), window.letters);
}

void PrintTo(const Window& window, std::ostream* out) { *out << window.name; }

/// Sweeps of made-up costs: times grow with batch and context, and differ between schemes.
void add_sweeps(Study& study, const std::vector<int64_t>& batches, const std::vector<int64_t>& contexts) {
  for (size_t s = 0; s < study.schemes.size(); ++s)
    for (ChipResult& chip : study.schemes[s].chips)
      for (int64_t batch : batches)
        for (int64_t context : contexts) {
          SweepPoint p{.batch = batch, .context = context, .prefill = {}, .decode = {}};
          p.prefill.latency_s = 1e-6 * static_cast<double>(batch * context) * (1 + 0.03 * static_cast<double>(s));
          p.decode.latency_s = 1e-3 + 1e-7 * static_cast<double>(batch * context) * (2 - 0.1 * static_cast<double>(s));
          chip.sweep.push_back(p);
        }
}

class InBrowser : public testing::TestWithParam<Window> {};

TEST_P(InBrowser, ThePageIsReadable) {
  const std::string browser = found_browser();
  if (browser.empty()) GTEST_SKIP() << kNoBrowser;
  static const std::string page = [] {
    Study study = sample_study(default_samples(), {"tpuv1", "edge_npu32"});
    add_sweeps(study, {1, 8}, {128, 512, 1024, 4096});
    return html_page(study);
  }();
  ASSERT_NE(page.find("latency of a decode step against context, tokens on edge_npu32"), std::string::npos);
  expect_good(look_at(browser, page, GetParam().width, GetParam().dark), GetParam());
}

// Names and figures of any length, many chips, and no perplexity.
TEST_P(InBrowser, ExtremesAreReadable) {
  const std::string browser = found_browser();
  if (browser.empty()) GTEST_SKIP() << kNoBrowser;
  std::vector<SchemeByHand> schemes;
  for (int i = 0; i < 14; ++i)
    schemes.push_back({"a-scheme-with-quite-a-long-name-" + std::to_string(i), {}, 1000 + 7 * i * i, 100 + i});
  Study study = study_by_hand(schemes, {"one", "two", "a_chip_with_a_name_that_does_not_end_soon", "four", "five"});
  for (SchemeResult& s : study.schemes)
    for (ChipResult& c : s.chips)
      c.decode.cost.latency_interval = {c.decode.cost.latency_s * 0.5, c.decode.cost.latency_s * 2};
  add_sweeps(study, {1, 64, 4096}, {1, 7, 1000, 131072});
  expect_good(look_at(browser, html_page(study), GetParam().width, GetParam().dark), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Windows, InBrowser,
                         testing::Values(Window{"phone", 390, false, 10}, Window{"phone_dark", 390, true, 10},
                                         Window{"desktop", 1280, false, 12}, Window{"desktop_dark", 1280, true, 12}),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Perplexities 32.5, 33.61 and 32.46; a scheme without one stays last in both orders.
TEST(Browser, SortsTables) {
  const std::string browser = found_browser();
  if (browser.empty()) GTEST_SKIP() << kNoBrowser;
  Study study = sample_study({default_samples()[0], default_samples()[9], default_samples()[3]}, {"edge_npu32"});
  study.schemes[2].perplexity = 32.46;
  study.schemes.push_back(study.schemes[0]);
  study.schemes[3].name = "a";
  study.schemes[3].perplexity.reset();
  const std::string page = html_page(study);
  const Look look = look_at(browser, page, 1280, false, kSort);
  ASSERT_TRUE(look.seen.is_object()) << look.console;
  EXPECT_EQ(look.console, "");
  EXPECT_EQ(look.seen["buttons"], look.seen["columns"]);
  using Orders = std::vector<std::vector<std::string>>;
  EXPECT_EQ(look.seen["orders"].get<Orders>(),
            (Orders{{"f32", "int4-group32", "int8-channel", "a"},
                    {"int8-channel", "f32", "int4-group32", "a"},
                    {"int4-group32", "f32", "int8-channel", "a"},
                    {"a", "f32", "int4-group32", "int8-channel"}}));
  EXPECT_EQ(look.seen["sorted"].get<Orders>(), (Orders{{"ascending"}, {"descending"}, {"ascending"}}));
  EXPECT_EQ(look.seen["focus"], 3);  // a keyboard reaches them
  EXPECT_GE(look.seen["links"].get<int>(), 5);
  // Where scripts do not run, the tables stand there as they are.
  const Look without = look_at(browser, page, 1280, false, kSort, false);
  ASSERT_TRUE(without.seen.is_object());
  EXPECT_EQ(without.seen["buttons"], 0);
  EXPECT_EQ(without.seen["orders"].get<Orders>().size(), 1U);
  EXPECT_EQ(without.seen["links"], look.seen["links"]);
  Look plain = look_at(browser, page, 390, true, kAudit, false);
  plain.console.clear();  // that a script was not run
  expect_good(plain, {"phone_dark", 390, true, 10});
}

// A page with one of each fault: the look finds them all, whatever the font. Figures have room for letters half as high again
// as their size, and what overlaps or leaves them does so by more than a letter of any width.
TEST(Browser, SeesFaults) {
  const std::string browser = found_browser();
  if (browser.empty()) GTEST_SKIP() << kNoBrowser;
  const Look look = look_at(
      browser,
      "<!doctype html><html><head><style>p{color:#999;background:#fff}</style></head><body>"
      "<p>faint words</p><div style=\"width:3000px\">wide</div><img src=\"http://localhost:9/x.png\">"
      "<svg viewBox=\"0 0 200 60\" width=\"200\" height=\"60\" font-size=\"12\"><text x=\"5\" y=\"30\">one</text>"
      "<text x=\"7\" y=\"31\">two</text><text x=\"197\" y=\"30\">beyond</text></svg></body></html>",
      390,
      false);
  ASSERT_TRUE(look.seen.is_object());
  EXPECT_NE(look.console.find("Content Security Policy"), std::string::npos) << look.console;
  EXPECT_GT(look.seen["wide"].get<double>(), 2000);
  EXPECT_EQ(look.seen["faintest"], "faint words");
  EXPECT_NEAR(look.seen["contrast"].get<double>(), 2.85, 0.01);  // of #999999 on white, by WCAG's formula
  EXPECT_EQ(look.seen["unnamed"], 1);
  EXPECT_EQ(look.seen["overlaps"].dump(), "[\"one | two\"]");
  EXPECT_EQ(look.seen["outside"].dump(), "[\"beyond\"]");
}

}  // namespace
}  // namespace sator::study
