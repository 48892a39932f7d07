// Plots as pure functions from data to SVG. Colours are classes: the page's style sheet gives them, for light and dark.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sator::study {

/// Text for HTML and SVG: & < > " ' are replaced, and so is what XML forbids.
std::string escaped(std::string_view s);

/// One stripe of a bar. `key` names its class: "c-weights".
struct Segment {
  std::string key;
  double value = 0;
  std::string title;  // shown when pointed at
};

/// A bar with its name and figure above it.
struct StackedBar {
  std::string name, figure;
  std::vector<Segment> segments;
  bool emphasized = false;
};

/// Horizontal bars below each other, all to the scale of the longest. Values that are not positive, or beyond 1e200, are
/// left out. Without bars: a line that says so.
///   about   what the plot shows, for those who cannot see it
std::string stacked_bars(const std::vector<StackedBar>& bars, std::string_view about);

struct PlotPoint {
  std::string name, title;
  double x = 0, y = 0;
  bool on_front = false;
};

/// Points with names, those on the front joined by a line. An axis that spans more than a factor of three is logarithmic.
/// Points that are not positive, or beyond 1e200, are left out; names that find no room are, too (their titles remain).
///   x_axis, y_axis   name and direction: "decode latency per token"
///   x_unit, y_unit   of tick labels: "s", ""
std::string scatter_plot(const std::vector<PlotPoint>& points, std::string_view x_axis, std::string_view x_unit,
                         std::string_view y_axis, std::string_view y_unit, std::string_view about);

/// Places of tick marks in [low, high], about `count` of them, at round numbers.
std::vector<double> round_ticks(double low, double high, int count, bool logarithmic);

}  // namespace sator::study
