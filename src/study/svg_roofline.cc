#include "study/svg_roofline.h"

#include <algorithm>
#include <cmath>

#include "base/figures.h"
#include "base/text.h"

namespace sator::study {

namespace {

bool visible(const RooflinePoint& p) { return drawable(p.macs_per_byte) && drawable(p.macs_per_s); }

double highest(const Roofline& r) {
  double top = 0;
  for (const Ceiling& c : r.ceilings)
    if (drawable(c.macs_per_s)) top = std::max(top, c.macs_per_s);
  return top;
}

/// The slopes, each with its name beside it where there is room.
std::string slope_lines(const Roofline& r, const RooflineScales& s, std::vector<Box2>& taken) {
  std::string lines, words;
  const double top = highest(r);
  for (size_t m = 0; m < r.slopes.size(); ++m) {
    const double speed = r.slopes[m].bytes_per_s;
    if (!drawable(speed)) continue;
    const double from = std::max(s.x.low(), s.y.low() / speed), to = std::min(s.x.high(), top / speed);
    if (!(from < to)) continue;  // all of it is beyond the axes
    const double x0 = s.x.at(from), y0 = s.y.at(from * speed), x1 = s.x.at(to), y1 = s.y.at(to * speed);
    lines += text("<path class=\"",
                  m == 0 ? "roof outer" : "roof",
                  "\" d=\"M",
                  fixed(x0, 2),
                  " ",
                  fixed(y0, 2),
                  "L",
                  fixed(x1, 2),
                  " ",
                  fixed(y1, 2),
                  "\"><title>",
                  escaped(text(r.slopes[m].name, ": ", quantity(speed, "B/s"))),
                  "</title></path>");
    for (double part : {0.25, 0.5, 0.1, 0.75, 0.9}) {
      const std::string name = text(r.slopes[m].name, " ", quantity(speed, "B/s"));
      const std::string found = name_beside(x0 + part * (x1 - x0), y0 + part * (y1 - y0), name, false, s.area, taken);
      words += found;
      if (!found.empty()) break;
    }
  }
  return lines + words;
}

/// The ceilings, from where the fastest memory reaches them; their names end at the right edge, above the line or below it.
std::string ceiling_lines(const Roofline& r, const RooflineScales& s, std::vector<Box2>& taken) {
  double fastest = 0;
  for (const Slope& slope : r.slopes)
    if (drawable(slope.bytes_per_s)) fastest = std::max(fastest, slope.bytes_per_s);
  std::string lines, words;
  for (const Ceiling& c : r.ceilings) {
    if (!drawable(c.macs_per_s)) continue;
    const double y = s.y.at(c.macs_per_s);
    const double reached = fastest > 0 ? std::max(s.x.low(), c.macs_per_s / fastest) : s.x.low();
    const double x0 = s.x.at(std::min(reached, s.x.high()));
    lines += text("<path class=\"roof ceiling\" d=\"M",
                  fixed(x0, 2),
                  " ",
                  fixed(y, 2),
                  "H",
                  fixed(s.area.right, 2),
                  "\"><title>",
                  escaped(text(c.name, ": ", quantity(c.macs_per_s, "MAC/s"))),
                  "</title></path>");
    const std::string name = text(c.name, " ", quantity(c.macs_per_s, "MAC/s"));
    bool named = false;
    // At the right edge or where the line begins, above it or below; without the figure where the whole finds no room.
    for (const std::string& shown : {name, c.name}) {
      const double width = text_width(shown), at_edge = s.area.right - width;
      for (double left : {at_edge, std::min(x0 + 2, at_edge)})
        for (double top : {y - 15, y + 2}) {
          const Box2 box{left, top, left + width, top + 13};
          if (named || box.top < 14 ||
              std::any_of(taken.begin(), taken.end(), [&](const Box2& t) { return t.meets(box); }))
            continue;
          taken.push_back(box);
          words += label(left + 1, top + 10, "pname", shown);
          named = true;
        }
    }
  }
  return lines + words;
}

}  // namespace

std::optional<RooflineScales> roofline_scales(const Roofline& r) {
  const double top = highest(r);
  double x_low = 1e300, x_high = 0, y_low = 1e300;
  for (const RooflinePoint& p : r.points) {
    if (!visible(p)) continue;
    x_low = std::min(x_low, p.macs_per_byte), x_high = std::max(x_high, p.macs_per_byte);
    y_low = std::min(y_low, p.macs_per_s);
  }
  if (x_high == 0 || top == 0) return {};
  // The ridge of the outermost memory is part of the picture.
  if (!r.slopes.empty() && drawable(r.slopes[0].bytes_per_s)) {
    const double ridge = top / r.slopes[0].bytes_per_s;
    if (drawable(ridge)) x_low = std::min(x_low, ridge), x_high = std::max(x_high, ridge);
  }
  const PlotArea area{.top = 24};
  return RooflineScales{area,
                        Scale::decades(x_low / 3, x_high * 4, area.left, area.right),
                        Scale::decades(y_low / 4, std::max(top, y_low) * 2.2, area.bottom, area.top)};
}

std::string roofline_plot(const Roofline& r, std::string_view about) {
  const std::optional<RooflineScales> s = roofline_scales(r);
  if (!s) return empty_figure(about);
  std::vector<Box2> taken;
  for (const RooflinePoint& p : r.points) {
    if (!visible(p)) continue;
    const double x = s->x.at(p.macs_per_byte), y = s->y.at(p.macs_per_s);
    taken.push_back({x - 5, y - 5, x + 5, y + 5});
  }
  std::string out = open_svg(s->area.bottom + kBelowAxis, about) +
                    axes(s->area, s->x, s->y, {"MACs per byte of the memory", "", "MACs per second", ""});
  // Lines lie below points; names of ceilings have one place each, so they choose first.
  const std::string ceilings = ceiling_lines(r, *s, taken);
  std::string marks, words;
  for (const RooflinePoint& p : r.points) {
    if (!visible(p)) continue;
    const double x = s->x.at(p.macs_per_byte), y = s->y.at(p.macs_per_s);
    marks += mark(x, y, 4, p.shape, p.on == 0 ? "point best" : "point inner", p.title);
    words += name_beside(x, y, p.name, false, s->area, taken, 17);
  }
  return out + slope_lines(r, *s, taken) + ceilings + marks + words + "</svg>";
}

}  // namespace sator::study
