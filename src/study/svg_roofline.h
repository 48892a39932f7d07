// The roofline: what a chip can do at most, and where kernels are.
#pragma once

#include "study/svg_parts.h"

namespace sator::study {

/// What the array can do at a precision: a level line.
struct Ceiling {
  std::string name;
  double macs_per_s = 0;
};

/// What a memory can move: a line along which MACs/s are its bytes/s times the MACs per byte.
struct Slope {
  std::string name;
  double bytes_per_s = 0;
};

/// A kernel.
///   macs_per_byte   of the memory that it is set against
///   on              the slope of that memory
struct RooflinePoint {
  std::string name, title;
  double macs_per_byte = 0, macs_per_s = 0;
  int shape = 0;
  size_t on = 0;
};

struct Roofline {
  std::vector<Ceiling> ceilings;
  std::vector<Slope> slopes;  // outermost memory first
  std::vector<RooflinePoint> points;
};

/// Where axes of such a plot end, and what they make of values.
struct RooflineScales {
  PlotArea area;
  Scale x, y;
};
/// Nothing where no point and no ceiling can be drawn.
std::optional<RooflineScales> roofline_scales(const Roofline& roofline);

/// Both axes logarithmic. Points against the outermost memory are filled, those against others hollow. Slopes are drawn up to the
/// highest ceiling.
std::string roofline_plot(const Roofline& roofline, std::string_view about);

}  // namespace sator::study
