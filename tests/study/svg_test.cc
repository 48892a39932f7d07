#include "study/svg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "study/markup.h"

namespace sator::study {
namespace {

const double kInf = std::numeric_limits<double>::infinity();

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(Escaped, LeavesNoMarkup) {
  EXPECT_EQ(escaped("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
  EXPECT_EQ(escaped(std::string("x\0\x1by", 4)), "x\xef\xbf\xbd\xef\xbf\xbdy");
  EXPECT_EQ(escaped("µ"), "µ");
}

TEST(StackedBars, AreToScale) {
  const std::string svg = stacked_bars(
      {{"long", "4 s", {{"c-array", 3, "three"}, {"c-weights", 1, "one"}}}, {"short", "1 s", {{"c-array", 1, "one"}}}},
      "bars");
  EXPECT_EQ(nesting_error(svg), "");
  // The longest bar fills 358 units: 4 parts of 89.5.
  EXPECT_EQ(count(svg, "h268.50v12"), 1U);
  EXPECT_EQ(count(svg, "h89.50v12"), 2U);
  EXPECT_EQ(count(svg, "class=\"c-array\""), 2U);
}

TEST(StackedBars, LeaveOutWhatCannotBeDrawn) {
  const std::string svg =
      stacked_bars({{"x", "", {{"c-a", kInf, ""}, {"c-b", std::nan(""), ""}, {"c-c", -1, ""}, {"c-d", 0, ""}}}}, "b");
  EXPECT_EQ(nesting_error(svg), "");
  EXPECT_EQ(count(svg, "<path"), 0U);
  EXPECT_EQ(count(svg, "nan"), 0U);
  EXPECT_NE(stacked_bars({}, "none").find("nothing to show"), std::string::npos);
}

TEST(ScatterPlot, MarksTheFront) {
  const std::string svg = scatter_plot({{"a", "a", 1, 30, true}, {"b", "b", 2, 29, true}, {"c<", "c", 3, 31, false}},
                                       "latency",
                                       "s",
                                       "perplexity",
                                       "",
                                       "plot");
  EXPECT_EQ(nesting_error(svg), "");
  EXPECT_EQ(count(svg, "class=\"point best\""), 2U);
  EXPECT_EQ(count(svg, "class=\"point\""), 1U);
  EXPECT_EQ(count(svg, "class=\"front\""), 1U);
  EXPECT_NE(svg.find(">c&lt;<"), std::string::npos);
}

TEST(ScatterPlot, SurvivesExtremes) {
  for (const std::vector<PlotPoint>& points : {std::vector<PlotPoint>{},
                                               {{"one", "", 5, 5, true}},
                                               {{"same", "", 1, 1}, {"same", "", 1, 1}},
                                               {{"inf", "", kInf, 1},
                                                {"nan", "", 1, std::nan("")},
                                                {"zero", "", 0, 0},
                                                {"huge", "", 1, 1e300},
                                                {"good", "", 1e-9, 1e199},
                                                {"far", "", 1e9, 2}}}) {
    const std::string svg = scatter_plot(points, "x", "s", "y", "", "plot");
    EXPECT_EQ(nesting_error(svg), "");
    EXPECT_EQ(count(svg, "=\"nan") + count(svg, "=\"inf") + count(svg, "=\"-nan"), 0U) << svg;
  }
}

TEST(Ticks, AreRoundAndInside) {
  EXPECT_EQ(round_ticks(0, 10, 5, false), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(31.9, 34.3, 5, false).front(), 32);
  EXPECT_EQ(round_ticks(1, 100, 5, true), (std::vector<double>{1, 2, 5, 10, 20, 50, 100}));
  EXPECT_EQ(round_ticks(1, 1e9, 4, true).size(), 10U);  // decades alone
  EXPECT_TRUE(round_ticks(3, 3, 4, false).empty());
}

}  // namespace
}  // namespace sator::study
