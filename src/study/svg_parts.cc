#include "study/svg_parts.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/figures.h"
#include "base/text.h"

namespace sator::study {

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

std::string coordinate(double v) {
  std::string s = fixed(v, 1);
  return s.ends_with(".0") ? s.substr(0, s.size() - 2) : s;
}

std::string open_svg(double height, std::string_view about) {
  return text("<svg viewBox=\"0 0 ",
              coordinate(kPlotWidth),
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

std::string empty_figure(std::string_view about) {
  return open_svg(30, about) + label(1, 18, "tick", "nothing to show") + "</svg>";
}

bool drawable(double v) { return v > 1e-200 && v < 1e200; }

double text_width(std::string_view words, bool strong) {
  return static_cast<double>(display_width(words)) * (strong ? 7.0 : 6.4) + 2;
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
    if (ticks.size() > 2) return ticks;  // else little more than a factor of two: steps as of a linear axis
    ticks.clear();
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

Scale::Scale(const std::vector<double>& values, double from, double to) : from_(from), to_(to) {
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

Scale Scale::decades(double low, double high, double from, double to) {
  Scale s;
  s.from_ = from, s.to_ = to, s.low_ = low, s.high_ = high;
  s.logarithmic_ = true;
  return s;
}

double Scale::at(double v) const {
  const double part = logarithmic_ ? std::log(v / low_) / std::log(high_ / low_) : (v - low_) / (high_ - low_);
  return from_ + part * (to_ - from_);
}

/// "20 ms", "1.5 T": a round value without zeros behind the point.
std::string tick_text(double v, std::string_view unit) {
  if (unit.empty() && v >= 1e-3 && v < 1e4) {
    std::string plain = significant(v);
    if (plain.find('.') == std::string::npos) return plain;
    while (plain.back() == '0') plain.pop_back();
    if (plain.back() == '.') plain.pop_back();
    return plain;
  }
  std::string words = quantity(v, unit);
  const size_t end = std::min(words.find(' '), words.size()), point = words.find('.');
  if (point >= end) return words;
  size_t keep = end;
  while (words[keep - 1] == '0') --keep;
  if (words[keep - 1] == '.') --keep;
  return words.erase(keep, end - keep);
}

std::string axes(const PlotArea& area, const Scale& x, const Scale& y, const AxisNames& names) {
  constexpr double kNarrow = 62;  // between the names of two ticks
  std::string grid, words;
  double last = -100;
  for (double v : x.ticks(4)) {
    const double at = x.at(v);
    grid += text("M", coordinate(at), " ", coordinate(area.top), "V", coordinate(area.bottom));
    const bool at_edge = at > area.right - 22;  // the last one ends at the edge instead of being centred beyond it
    if (at - last < (at_edge ? kNarrow + 20 : kNarrow)) continue;
    last = at;
    words += at_edge ? label(kPlotWidth - 2, area.bottom + 16, "tick end", tick_text(v, names.x_unit))
                     : label(at, area.bottom + 16, "tick middle", tick_text(v, names.x_unit));
  }
  last = area.bottom + 100;
  for (double v : y.ticks(5)) {
    grid += text("M", coordinate(area.left), " ", coordinate(y.at(v)), "H", coordinate(area.right));
    if (last - y.at(v) < 15) continue;
    last = y.at(v);
    words += label(area.left - 5, y.at(v) + 3.5, "tick end", tick_text(v, names.y_unit));
  }
  auto title = [](std::string_view name, const Scale& s) { return text(name, s.logarithmic() ? " (log)" : ""); };
  words += label((area.left + area.right) / 2, area.bottom + 35, "axis middle", title(names.x, x));
  // Above the area, where it needs not be turned.
  words += label(1, area.top - 10, "axis", title(names.y, y));
  return text("<path class=\"grid\" d=\"", grid, "\"/>", words);
}

std::optional<NamePlace> find_place(double px, double py, double width, const PlotArea& area, std::vector<Box2>& taken,
                                    double farthest) {
  constexpr double kHeight = 14;
  for (double far : {8.0, 17.0, 28.0, 42.0}) {
    if (far > farthest) break;
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
      const Box2 box{left, cy - kHeight / 2, left + width, cy + kHeight / 2};
      if (box.left < area.left + 1 || box.right > area.right || box.top < area.top || box.bottom > area.bottom)
        continue;
      if (std::any_of(taken.begin(), taken.end(), [&](const Box2& t) { return t.meets(box); })) continue;
      taken.push_back(box);
      return NamePlace{left, cy + 3.5, box};
    }
  }
  return {};
}

std::string name_beside(double px, double py, std::string_view words, bool strong, const PlotArea& area,
                        std::vector<Box2>& taken, double farthest) {
  if (words.empty()) return "";
  const std::optional<NamePlace> place = find_place(px, py, text_width(words, strong), area, taken, farthest);
  if (!place) return "";
  std::string out;
  const double nx = std::clamp(px, place->box.left, place->box.right);
  const double ny = std::clamp(py, place->box.top, place->box.bottom);
  if (std::hypot(nx - px, ny - py) > 12)
    out = text("<path class=\"leader\" d=\"M",
               coordinate(px),
               " ",
               coordinate(py),
               "L",
               coordinate(nx),
               " ",
               coordinate(ny),
               "\"/>");
  return out + label(place->x, place->y, strong ? "pname strong" : "pname", words);
}

std::string mark(double x, double y, double radius, int shape, std::string_view css_class, std::string_view title) {
  const double r = radius;
  auto path = [&](std::initializer_list<std::pair<double, double>> corners) {
    std::string d;
    for (auto [dx, dy] : corners) d += text(d.empty() ? "M" : "L", coordinate(x + dx * r), " ", coordinate(y + dy * r));
    return text("<path d=\"", d, "z\"");
  };
  std::string shape_text;
  switch (shape % (kShapes / 2)) {
    case 0:
      shape_text = text("<circle cx=\"", coordinate(x), "\" cy=\"", coordinate(y), "\" r=\"", coordinate(r), "\"");
      break;
    case 1: shape_text = path({{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}}); break;
    case 2: shape_text = path({{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}}); break;
    default: shape_text = path({{0, -1.2}, {1.15, 0.9}, {-1.15, 0.9}}); break;
  }
  const bool hole = shape % kShapes >= kShapes / 2;
  return text(shape_text,
              " class=\"",
              css_class,
              hole ? " hole" : "",
              "\"><title>",
              escaped(title),
              "</title>",
              shape % (kShapes / 2) == 0 ? "</circle>" : "</path>");
}

std::string whisker(double low, double high, double y, double half_height) {
  auto end = [&](double x) {
    return text("M", coordinate(x), " ", coordinate(y - half_height), "v", coordinate(2 * half_height));
  };
  return text("<path class=\"whisker\" d=\"M",
              coordinate(low),
              " ",
              coordinate(y),
              "H",
              coordinate(high),
              end(low),
              end(high),
              "\"/>");
}

}  // namespace sator::study
