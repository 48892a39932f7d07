// Bars and points as pure functions from data to SVG. Colours are classes: the page's style sheet gives them, for light and
// dark. No colour stands alone: bars have marks or names, points have shapes.
#pragma once

#include "study/svg_parts.h"

namespace sator::study {

/// One stripe of a bar. `key` names its class: "c-weights"; `mark` is written into it where it fits.
struct Segment {
  std::string key;
  double value = 0;
  std::string title;  // shown when pointed at
  std::string mark = {};
};

/// What measurements lie within, around a value.
struct Range {
  double low = 0, high = 0;
};

/// A bar with its name and figure above it.
struct StackedBar {
  std::string name, figure;
  std::vector<Segment> segments;
  bool emphasized = false;
  std::optional<Range> range = {};  // of its end: drawn as a whisker
};

/// Horizontal bars below each other, all to the scale of the longest (whiskers included). Values that are not positive, or
/// beyond 1e200, are left out. Without bars: a line that says so.
///   about   what the plot shows, for those who cannot see it
std::string stacked_bars(const std::vector<StackedBar>& bars, std::string_view about);

/// One step of a sum.
struct Step {
  std::string name, figure, key, title;
  double value = 0;
};

/// A waterfall: each step begins where the one before it ends, the last row is the sum. Steps as in stacked_bars.
std::string waterfall(const std::vector<Step>& steps, const std::string& sum_figure, std::string_view about);

struct PlotPoint {
  std::string name, title;
  double x = 0, y = 0;
  bool on_front = false;
  int shape = 0;
  std::optional<Range> x_range = {};
};

enum class FrontLine : uint8_t { drawn, none };

/// Points with names, those on the front joined by a line. An axis that spans more than a factor of three is logarithmic.
/// Points that are not positive, or beyond 1e200, are left out; names that find no room are, too (their titles remain).
std::string scatter_plot(const std::vector<PlotPoint>& points, const AxisNames& names, std::string_view about,
                         FrontLine line = FrontLine::drawn);

}  // namespace sator::study
