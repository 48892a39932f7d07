#include "study/svg.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "study/markup.h"
#include "study/svg_roofline.h"

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
  EXPECT_EQ(count(svg, "h268.50v13"), 1U);
  EXPECT_EQ(count(svg, "h89.50v13"), 2U);
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
                                       {"latency", "s", "perplexity", ""},
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
    const std::string svg = scatter_plot(points, {"x", "s", "y", ""}, "plot");
    EXPECT_EQ(nesting_error(svg), "");
    EXPECT_EQ(count(svg, "=\"nan") + count(svg, "=\"inf") + count(svg, "=\"-nan"), 0U) << svg;
  }
}

// One to four of 358 units beside each other, then the sum.
TEST(Waterfall, EachStepBeginsWhereTheLastEnds) {
  const std::string svg = waterfall({{"a", "1 J", "c-a", "", 1}, {"b", "3 J", "c-b", "", 3}}, "4 J", "energy");
  EXPECT_EQ(nesting_error(svg), "");
  EXPECT_EQ(count(svg, "M1.00 17h89.50v13"), 1U);
  EXPECT_EQ(count(svg, "M90.50 50h268.50v13"), 1U);
  EXPECT_EQ(count(svg, "class=\"sum\" d=\"M1.00 83h358.00v13"), 1U);
  // Leaders lie behind the words of the rows that they lead to.
  EXPECT_LT(svg.rfind("class=\"leader\""), svg.find("<text"));
  EXPECT_NE(waterfall({}, "", "none").find("nothing to show"), std::string::npos);
}

// The longest is the whisker's end: 4 of 358 units, so 1 is 89.5.
TEST(StackedBars, WhiskersAreToScale) {
  const std::string svg = stacked_bars({{"x", "2 s", {{"c-a", 2, ""}}, false, Range{1, 4}}}, "bars");
  EXPECT_EQ(count(svg, "h179.00v13"), 1U);
  EXPECT_EQ(count(svg, "class=\"whisker\" d=\"M90.5 30H359M90.5 27v6M359 27v6\""), 1U);
}

TEST(ScatterPlot, PointsAreWhereTheScalesPutThem) {
  const Scale x({1, 100}, 50, 350), y({10, 20}, 250, 24);
  // 8 % of the span beyond both ends; a factor of 100 is logarithmic, one of 2 is not.
  EXPECT_TRUE(x.logarithmic());
  EXPECT_FALSE(y.logarithmic());
  EXPECT_NEAR(x.at(10), 200, 1e-9);
  EXPECT_NEAR(x.at(1), 50 + 300 * 0.08 / 1.16, 1e-9);
  EXPECT_NEAR(y.at(15), 137, 1e-9);
  EXPECT_NEAR(y.at(10), 250 - 226 * 0.08 / 1.16, 1e-9);
  const std::string svg =
      scatter_plot({{"a", "", 1, 10}, {"b", "", 10, 15}, {"c", "", 100, 20}}, {"x", "s", "y", ""}, "plot");
  EXPECT_EQ(count(svg, "cx=\"200\" cy=\"137\""), 1U);
}

TEST(Marks, HaveShapesOfTheirOwn) {
  std::vector<std::string> seen;
  for (int shape = 0; shape < kShapes; ++shape) {
    seen.push_back(mark(10, 10, 4, shape, "point", "p"));
    EXPECT_EQ(nesting_error(seen.back()), "");
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
}

// A chip of 1 GB/s and 100 MACs/s per byte of it: the ridge is at 100 MACs per byte.
TEST(RooflinePlot, LinesMeetAtTheRidge) {
  const Roofline r{.ceilings = {{"int8", 1e11}},
                   .slopes = {{"dram", 1e9}},
                   .points = {{"low", "", 1, 1e9, 0, 0}, {"high", "", 1000, 0.5e11, 2, 0}}};
  const auto scales = roofline_scales(r);
  ASSERT_TRUE(scales.has_value());
  const std::string svg = roofline_plot(r, "roofline");
  EXPECT_EQ(nesting_error(svg), "");
  auto at = [](double v) {
    char out[32];
    std::snprintf(out, sizeof out, "%.2f", v);
    return std::string(out);
  };
  const std::string ridge_x = at(scales->x.at(100)), ridge_y = at(scales->y.at(1e11));
  EXPECT_EQ(count(svg, "L" + ridge_x + " " + ridge_y + "\""), 1U);  // the slope ends there
  EXPECT_EQ(count(svg, "class=\"roof ceiling\" d=\"M" + ridge_x + " " + ridge_y + "H"), 1U);
  // A kernel at the memory's speed lies on its line: both axes have the same logarithm's distance.
  const double dx = scales->x.at(100) - scales->x.at(1), dy = scales->y.at(1e9) - scales->y.at(1e11);
  const double decade_x = scales->x.at(10) - scales->x.at(1), decade_y = scales->y.at(1e9) - scales->y.at(1e10);
  EXPECT_NEAR(dx / decade_x, dy / decade_y, 1e-9);
  EXPECT_EQ(count(svg, text("cx=\"", coordinate(scales->x.at(1)), "\" cy=\"", coordinate(scales->y.at(1e9)), "\"")),
            1U);
}

TEST(RooflinePlot, SurvivesExtremes) {
  for (const Roofline& r :
       {Roofline{},
        Roofline{.points = {{"p", "", 1, 1, 0, 0}}},
        Roofline{.ceilings = {{"c", kInf}}, .slopes = {{"s", 0}}, .points = {{"p", "", 1, 1, 0, 0}}},
        Roofline{.ceilings = {{"c", 1}}, .slopes = {{"s", 1e-190}, {"t", kInf}}, .points = {{"p", "", 1, 1, 0, 0}}},
        Roofline{.ceilings = {{"c", 1}}, .points = {{"p", "", std::nan(""), 1, 0, 0}, {"q", "", 1, kInf, 0, 0}}}}) {
    const std::string svg = roofline_plot(r, "r");
    EXPECT_EQ(nesting_error(svg), "");
    EXPECT_EQ(count(svg, "nan") + count(svg, "inf"), 0U) << svg;
  }
}

TEST(Ticks, SayNoMoreThanNeeded) {
  EXPECT_EQ(tick_text(0.02, "s"), "20 ms");
  EXPECT_EQ(tick_text(1.5e12, ""), "1.5 T");
  EXPECT_EQ(tick_text(0.5, ""), "0.5");
  EXPECT_EQ(tick_text(100, ""), "100");
  EXPECT_EQ(tick_text(2e-4, "s"), "200 µs");
}

TEST(Ticks, AreRoundAndInside) {
  EXPECT_EQ(round_ticks(0, 10, 5, false), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(31.9, 34.3, 5, false).front(), 32);
  EXPECT_EQ(round_ticks(1, 100, 5, true), (std::vector<double>{1, 2, 5, 10, 20, 50, 100}));
  EXPECT_EQ(round_ticks(1, 1e9, 4, true).size(), 10U);                                 // decades alone
  EXPECT_EQ(round_ticks(12, 37, 5, true), (std::vector<double>{15, 20, 25, 30, 35}));  // 20 alone is no scale
  EXPECT_TRUE(round_ticks(3, 3, 4, false).empty());
}

}  // namespace
}  // namespace sator::study
