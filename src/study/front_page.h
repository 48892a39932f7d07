// A Pareto front as a page of its own.
#pragma once

#include "study/svg.h"

namespace sator::study {

/// A table of words: a head, and rows of as many cells.
struct FrontTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

/// An HTML page with one plot of points, those on the front marked, and a table of them; what a point is shows too when it is
/// pointed at.
///   title   its heading;  note   a paragraph below the plot
std::string front_page(const std::string& title, const std::string& note, const std::vector<PlotPoint>& points,
                       const AxisNames& axes, const FrontTable& table);

}  // namespace sator::study
