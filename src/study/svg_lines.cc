#include "study/svg_lines.h"

#include "base/text.h"

namespace sator::study {

namespace {

constexpr size_t kColours = 6;  // classes l0, l1, ... of the style sheet

std::string colour(size_t line) { return text("l", line % kColours); }
int shape(size_t line) { return static_cast<int>(line % static_cast<size_t>(kShapes)); }

}  // namespace

std::string line_sign(size_t line, std::string_view name) {
  return text("<svg class=\"sign\" viewBox=\"0 0 14 14\" aria-hidden=\"true\">",
              mark(7, 7, 4.5, shape(line), "line-point " + colour(line), name),
              "</svg>");
}

std::string line_plot(const std::vector<PlotLine>& lines, const AxisNames& names, std::string_view about) {
  std::vector<double> xs, ys;
  for (const PlotLine& line : lines)
    for (const PlotLine::At& p : line.points)
      if (drawable(p.x) && drawable(p.y)) xs.push_back(p.x), ys.push_back(p.y);
  if (xs.empty()) return empty_figure(about);
  const PlotArea area{.top = 24};
  const Scale x(xs, area.left, area.right), y(ys, area.bottom, area.top);
  std::string out = open_svg(area.bottom + kBelowAxis, about) + axes(area, x, y, names), marks, words;
  std::vector<Box2> taken;
  for (const PlotLine& line : lines)
    for (const PlotLine::At& p : line.points)
      if (drawable(p.x) && drawable(p.y)) {
        const double px = x.at(p.x), py = y.at(p.y);
        taken.push_back({px - 4, py - 4, px + 4, py + 4});
      }
  for (size_t l = 0; l < lines.size(); ++l) {
    std::string path;
    const PlotLine::At* last = nullptr;
    for (const PlotLine::At& p : lines[l].points) {
      if (!drawable(p.x) || !drawable(p.y)) continue;
      path += text(path.empty() ? "M" : "L", coordinate(x.at(p.x)), " ", coordinate(y.at(p.y)));
      marks += mark(x.at(p.x), y.at(p.y), 3, shape(l), "line-point " + colour(l), p.title);
      last = &p;
    }
    if (!last) continue;
    out += text("<path class=\"line ", colour(l), "\" d=\"", path, "\"/>");
    words += name_beside(x.at(last->x), y.at(last->y), lines[l].name, false, area, taken);
  }
  return out + marks + words + "</svg>";
}

}  // namespace sator::study
