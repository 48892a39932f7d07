// Lines over an axis, as SVG (svg.h says how plots look).
#pragma once

#include "study/svg_parts.h"

namespace sator::study {

/// A line through points, marked at each. Its colour and its marks' shape follow from its place in the list.
struct PlotLine {
  struct At {
    double x = 0, y = 0;
    std::string title;  // shown when pointed at
  };
  std::string name;
  std::vector<At> points;  // in the order of x
};

/// Lines with their names at their ends, where there is room. An axis that spans more than a factor of three is logarithmic.
/// Points that are not positive, or beyond 1e200, are left out. Without points: a line that says so.
///   about   what the plot shows, for those who cannot see it
std::string line_plot(const std::vector<PlotLine>& lines, const AxisNames& names, std::string_view about);

/// The mark of line number `line` alone, for a legend.
std::string line_sign(size_t line, std::string_view name);

}  // namespace sator::study
