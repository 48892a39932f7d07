// A Pareto front as a page of its own.
#pragma once

#include "study/svg.h"

namespace sator::study {

/// An HTML page with one plot of points, those on the front marked; what a point is shows when it is pointed at.
///   title   its heading;  note   a paragraph below
std::string front_page(const std::string& title, const std::string& note, const std::vector<PlotPoint>& points,
                       const AxisNames& axes);

}  // namespace sator::study
