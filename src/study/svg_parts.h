// What the plots share: places for text, scales, axes, marks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sator::study {

/// Plots are drawn for the width of a phone and scaled up where there is room: letters stay readable on both.
inline constexpr double kPlotWidth = 360;

/// Text for HTML and SVG: & < > " ' are replaced, and so is what XML forbids.
std::string escaped(std::string_view s);

/// With one digit behind the point, if it is not 0.
std::string coordinate(double v);

/// The start of a figure, named for those who cannot see it; `inner` ends with "</svg>".
std::string open_svg(double height, std::string_view about);
std::string label(double x, double y, std::string_view css_class, std::string_view words);
/// A figure that says that there is none.
std::string empty_figure(std::string_view about);

/// Values that are positive and finite with room to spare: a margin around them stays inside of the doubles.
bool drawable(double v);

struct Box2 {
  double left, top, right, bottom;
  bool meets(const Box2& o) const { return left < o.right && o.left < right && top < o.bottom && o.top < bottom; }
};

/// What a text takes at 10 units of height, in a font that is wide.
double text_width(std::string_view words, bool strong = false);

/// Places of tick marks in [low, high], about `count` of them, at round numbers.
std::vector<double> round_ticks(double low, double high, int count, bool logarithmic);

/// One axis: values to coordinates.
class Scale {
 public:
  /// Of all values, with a margin; logarithmic where they span more than a factor of three.
  Scale(const std::vector<double>& values, double from, double to);
  /// Logarithmic from low to high.
  static Scale decades(double low, double high, double from, double to);

  double at(double v) const;
  std::vector<double> ticks(int count) const { return round_ticks(low_, high_, count, logarithmic_); }
  bool logarithmic() const { return logarithmic_; }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  Scale() = default;
  double from_ = 0, to_ = 0, low_ = 0, high_ = 1;
  bool logarithmic_ = false;
};

/// "20 ms", "1.5 T": a round value without zeros behind the point.
std::string tick_text(double v, std::string_view unit);

/// Where a plot's points lie.
struct PlotArea {
  double left = 50, top = 12, right = kPlotWidth - 10, bottom = 250;
  Box2 box() const { return {left, top, right, bottom}; }
};
inline constexpr double kBelowAxis = 42;  // height of an axis' names below the area

struct AxisNames {
  std::string_view x, x_unit, y, y_unit;  // "decode latency", "s", "perplexity", ""
};

/// Grid, ticks and titles of both axes.
std::string axes(const PlotArea& area, const Scale& x, const Scale& y, const AxisNames& names);

/// A place for a name beside a point, at most so far away, where it covers nothing that is taken; takes it.
struct NamePlace {
  double x, y;  // of the text's start
  Box2 box;
};
std::optional<NamePlace> find_place(double px, double py, double width, const PlotArea& area, std::vector<Box2>& taken,
                                    double farthest = 42);

/// A name beside a point, with a line between them where it had to move away; nothing where there is no room.
std::string name_beside(double px, double py, std::string_view words, bool strong, const PlotArea& area,
                        std::vector<Box2>& taken, double farthest = 42);

/// Shapes of points, told apart without colour: circle, square, diamond, triangle, then again with a hole.
inline constexpr int kShapes = 8;
std::string mark(double x, double y, double radius, int shape, std::string_view css_class, std::string_view title);

/// An interval from `low` to `high` on a horizontal axis, with ends.
std::string whisker(double low, double high, double y, double half_height);

}  // namespace sator::study
