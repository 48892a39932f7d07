#include "study/svg.h"

#include <algorithm>
#include <cmath>

#include "base/figures.h"
#include "base/text.h"

namespace sator::study {

namespace {

// Drawn for the width of a phone and scaled up where there is room: letters stay readable on both.
constexpr double kWidth = 360;

std::string coordinate(double v) {
  std::string s = fixed(v, 1);
  return s.ends_with(".0") ? s.substr(0, s.size() - 2) : s;
}

std::string open_svg(double height, std::string_view about) {
  return text("<svg viewBox=\"0 0 ",
              coordinate(kWidth),
              " ",
              coordinate(height),
              "\" role=\"img\" aria-label=\"",
              escaped(about),
              "\">");
}

std::string label(double x, double y, std::string_view css_class, std::string_view words) {
  return text("<text x=\"",
              coordinate(x),
              "\" y=\"",
              coordinate(y),
              "\" class=\"",
              css_class,
              "\">",
              escaped(words),
              "</text>");
}

// Beyond these a margin around the value would leave the doubles.
bool drawable(double v) { return v > 1e-200 && v < 1e200; }

struct Box {
  double left, top, right, bottom;
  bool meets(const Box& o) const { return left < o.right && o.left < right && top < o.bottom && o.top < bottom; }
};

/// One axis: values to coordinates.
class Scale {
 public:
  Scale(std::vector<double> values, double from, double to) : from_(from), to_(to) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    low_ = *least, high_ = *most;
    logarithmic_ = high_ > 3 * low_;
    const double margin = high_ > low_ ? 0.08 : 0.5;
    if (logarithmic_) {
      const double room = std::pow(high_ / low_, margin);
      low_ /= room, high_ *= room;
    } else {
      const double room = high_ > low_ ? margin * (high_ - low_) : margin * high_;
      low_ -= room, high_ += room;
    }
  }
  double at(double v) const {
    const double part = logarithmic_ ? std::log(v / low_) / std::log(high_ / low_) : (v - low_) / (high_ - low_);
    return from_ + part * (to_ - from_);
  }
  std::vector<double> ticks(int count) const { return round_ticks(low_, high_, count, logarithmic_); }
  bool logarithmic() const { return logarithmic_; }

 private:
  double from_, to_, low_ = 0, high_ = 1;
  bool logarithmic_ = false;
};

struct Area {
  double left = 46, top = 12, right = kWidth - 10, bottom = 250;
};

/// Grid, ticks and titles of both axes.
std::string axes(const Area& area, const Scale& x, const Scale& y, std::string_view x_axis, std::string_view x_unit,
                 std::string_view y_axis, std::string_view y_unit) {
  std::string grid, words;
  double last = -100;
  for (double v : x.ticks(4)) {
    const double at = x.at(v);
    grid += text("M", coordinate(at), " ", coordinate(area.top), "V", coordinate(area.bottom));
    if (at - last < 52) continue;  // the names of two ticks would touch
    last = at;
    // The last one ends at the edge instead of being centred beyond it.
    words += at > area.right - 16 ? label(kWidth - 2, area.bottom + 15, "tick end", quantity(v, x_unit))
                                  : label(at, area.bottom + 15, "tick middle", quantity(v, x_unit));
  }
  for (double v : y.ticks(5)) {
    grid += text("M", coordinate(area.left), " ", coordinate(y.at(v)), "H", coordinate(area.right));
    words += label(area.left - 5, y.at(v) + 3.5, "tick end", y_unit.empty() ? significant(v) : quantity(v, y_unit));
  }
  auto title = [](std::string_view name, const Scale& s) { return text(name, s.logarithmic() ? " (log)" : ""); };
  words += label((area.left + area.right) / 2, area.bottom + 32, "axis middle", title(x_axis, x));
  words += text("<text transform=\"translate(11 ",
                coordinate((area.top + area.bottom) / 2),
                ") rotate(-90)\" class=\"axis middle\">",
                escaped(title(y_axis, y)),
                "</text>");
  return text("<path class=\"grid\" d=\"", grid, "\"/>", words);
}

/// A place for a name beside its point where it covers nothing; false if there is none.
struct NamePlace {
  double x, y;
  Box box;
};
bool find_place(double px, double py, double width, const Area& area, const std::vector<Box>& taken, NamePlace& place) {
  constexpr double kHeight = 11;
  for (double far : {7.0, 16.0, 27.0, 40.0})
    for (auto [dx, dy] : {std::pair{1.0, 0.0},
                          {-1.0, 0.0},
                          {0.7, -0.7},
                          {0.7, 0.7},
                          {-0.7, -0.7},
                          {-0.7, 0.7},
                          {0.0, -1.0},
                          {0.0, 1.0}}) {
      const double cx = px + dx * far, cy = py + dy * far;
      const double left = dx > 0.1 ? cx : dx < -0.1 ? cx - width : cx - width / 2;
      const Box box{left, cy - kHeight / 2, left + width, cy + kHeight / 2};
      if (box.left < area.left + 1 || box.right > area.right || box.top < area.top || box.bottom > area.bottom)
        continue;
      if (std::any_of(taken.begin(), taken.end(), [&](const Box& t) { return t.meets(box); })) continue;
      place = {left, cy + 3.5, box};
      return true;
    }
  return false;
}

}  // namespace

std::string escaped(std::string_view s) {
  std::string out;
  for (char c : s) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t')
          out += c;
        else
          out += "\xef\xbf\xbd";  // control characters are no text
    }
  return out;
}

std::vector<double> round_ticks(double low, double high, int count, bool logarithmic) {
  std::vector<double> ticks;
  if (!(high > low) || !std::isfinite(high - low)) return ticks;
  if (logarithmic) {
    const bool few = std::log10(high / low) > count;  // then decades alone
    for (int decade = static_cast<int>(std::floor(std::log10(low))); std::pow(10.0, decade) <= high; ++decade)
      for (double step : {1.0, 2.0, 5.0}) {
        if (few && step != 1) continue;
        const double v = step * std::pow(10.0, decade);
        if (v >= low && v <= high) ticks.push_back(v);
      }
    return ticks;
  }
  const double rough = (high - low) / count;
  const double decade = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * decade;
  for (double s : {5.0, 2.0, 1.0})
    if (s * decade >= rough) step = s * decade;
  const double first = std::ceil(low / step) * step;
  for (int i = 0; i <= 5 * count && first + i * step <= high; ++i) {
    const double v = first + i * step;
    ticks.push_back(std::fabs(v) < step / 2 ? 0 : v);
  }
  return ticks;
}

std::string stacked_bars(const std::vector<StackedBar>& bars, std::string_view about) {
  constexpr double kRow = 31, kBar = 12, kEdge = 1;
  double longest = 0;
  auto length = [](const StackedBar& bar) {
    double sum = 0;
    for (const Segment& s : bar.segments) sum += drawable(s.value) ? s.value : 0;
    return sum;
  };
  for (const StackedBar& bar : bars) longest = std::max(longest, length(bar));
  if (bars.empty()) return open_svg(kRow, about) + label(kEdge, 18, "tick", "nothing to show") + "</svg>";
  std::string out = open_svg(kRow * static_cast<double>(bars.size()) + 2, about);
  double y = 0;
  for (const StackedBar& bar : bars) {
    const std::string strong = bar.emphasized ? " strong" : "";
    out += label(kEdge, y + 11, "name" + strong, bar.name);
    out += label(kWidth - kEdge, y + 11, "figure end" + strong, bar.figure);
    double x = kEdge;
    for (const Segment& s : bar.segments) {
      if (!drawable(s.value) || longest == 0) continue;
      const double w = s.value / longest * (kWidth - 2 * kEdge);
      if (w >= 0.05)
        out += text("<path class=\"",
                    escaped(s.key),
                    "\" d=\"M",
                    fixed(x, 2),
                    " ",
                    coordinate(y + 15),
                    "h",
                    fixed(w, 2),
                    "v",
                    coordinate(kBar),
                    "h-",
                    fixed(w, 2),
                    "z\"><title>",
                    escaped(s.title),
                    "</title></path>");
      x += w;
    }
    y += kRow;
  }
  return out + "</svg>";
}

std::string scatter_plot(const std::vector<PlotPoint>& points, std::string_view x_axis, std::string_view x_unit,
                         std::string_view y_axis, std::string_view y_unit, std::string_view about) {
  std::vector<const PlotPoint*> shown;
  std::vector<double> xs, ys;
  for (const PlotPoint& p : points)
    if (drawable(p.x) && drawable(p.y)) shown.push_back(&p), xs.push_back(p.x), ys.push_back(p.y);
  if (shown.empty()) return open_svg(30, about) + label(1, 18, "tick", "nothing to show") + "</svg>";
  const Area area;
  const Scale x(xs, area.left, area.right), y(ys, area.bottom, area.top);
  std::string out = open_svg(area.bottom + 40, about) + axes(area, x, y, x_axis, x_unit, y_axis, y_unit);

  // Points of the front come first: they get the best places for their names.
  std::stable_sort(shown.begin(), shown.end(), [](const PlotPoint* a, const PlotPoint* b) {
    return a->on_front != b->on_front ? a->on_front : a->x < b->x;
  });
  std::string front;
  for (const PlotPoint* p : shown)
    if (p->on_front) front += text(front.empty() ? "M" : "L", coordinate(x.at(p->x)), " ", coordinate(y.at(p->y)));
  if (!front.empty()) out += text("<path class=\"front\" d=\"", front, "\"/>");

  std::vector<Box> taken;
  for (const PlotPoint* p : shown) {
    const double px = x.at(p->x), py = y.at(p->y);
    taken.push_back({px - 4.5, py - 4.5, px + 4.5, py + 4.5});
  }
  std::string names;
  for (const PlotPoint* p : shown) {
    const double px = x.at(p->x), py = y.at(p->y);
    out += text("<circle cx=\"",
                coordinate(px),
                "\" cy=\"",
                coordinate(py),
                "\" r=\"",
                p->on_front ? "4.5" : "3.5",
                "\" class=\"",
                p->on_front ? "point best" : "point",
                "\"><title>",
                escaped(p->title),
                "</title></circle>");
    NamePlace place{};
    const double width = static_cast<double>(display_width(p->name)) * (p->on_front ? 5.6 : 5.3) + 2;
    if (!find_place(px, py, width, area, taken, place)) continue;
    taken.push_back(place.box);
    // A line joins a name with its point where it had to move away.
    const double nx = std::clamp(px, place.box.left, place.box.right);
    const double ny = std::clamp(py, place.box.top, place.box.bottom);
    if (std::hypot(nx - px, ny - py) > 12)
      names += text("<path class=\"leader\" d=\"M",
                    coordinate(px),
                    " ",
                    coordinate(py),
                    "L",
                    coordinate(nx),
                    " ",
                    coordinate(ny),
                    "\"/>");
    names += label(place.x, place.y, p->on_front ? "pname strong" : "pname", p->name);
  }
  return out + names + "</svg>";
}

}  // namespace sator::study
