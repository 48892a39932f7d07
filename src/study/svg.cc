#include "study/svg.h"

#include <algorithm>
#include <cmath>

#include "base/figures.h"
#include "base/text.h"

namespace sator::study {

namespace {

constexpr double kRow = 33, kBarTop = 17, kBar = 13, kEdge = 1;

/// A stripe from x, w wide, in the row that begins at y.
std::string stripe(const std::string& key, double x, double w, double y, const std::string& title) {
  return text("<path class=\"",
              escaped(key),
              "\" d=\"M",
              fixed(x, 2),
              " ",
              coordinate(y + kBarTop),
              "h",
              fixed(w, 2),
              "v",
              coordinate(kBar),
              "h-",
              fixed(w, 2),
              "z\"><title>",
              escaped(title),
              "</title></path>");
}

/// Name and figure above a bar; a name that would run into the figure is cut.
std::string bar_head(double y, const std::string& name, const std::string& figure, const std::string& strong) {
  const double room = kPlotWidth - 2 * kEdge - 1.15 * text_width(figure, !strong.empty());
  const auto fits = static_cast<size_t>(std::max(1.0, room / (1.15 * (strong.empty() ? 6.4 : 7.0))));
  const std::string shown = display_width(name) > fits ? pad_right(name, fits) : name;
  return label(kEdge, y + 12, "name" + strong, shown) +
         label(kPlotWidth - kEdge, y + 12, "figure end" + strong, figure);
}

}  // namespace

std::string stacked_bars(const std::vector<StackedBar>& bars, std::string_view about) {
  if (bars.empty()) return empty_figure(about);
  double longest = 0;
  for (const StackedBar& bar : bars) {
    double sum = 0;
    for (const Segment& s : bar.segments) sum += drawable(s.value) ? s.value : 0;
    if (bar.range && drawable(bar.range->high)) sum = std::max(sum, bar.range->high);
    longest = std::max(longest, sum);
  }
  const double unit = longest > 0 ? (kPlotWidth - 2 * kEdge) / longest : 0;
  std::string out = open_svg(kRow * static_cast<double>(bars.size()) + 2, about);
  double y = 0;
  for (const StackedBar& bar : bars) {
    out += bar_head(y, bar.name, bar.figure, bar.emphasized ? " strong" : "");
    double x = kEdge;
    std::string marks;
    for (const Segment& s : bar.segments) {
      const double w = drawable(s.value) ? s.value * unit : 0;
      if (w >= 0.05) out += stripe(s.key, x, w, y, s.title);
      if (!s.mark.empty() && w > text_width(s.mark)) marks += label(x + w / 2, y + kBarTop + 10, "mark middle", s.mark);
      x += w;
    }
    out += marks;
    if (bar.range && drawable(bar.range->low) && drawable(bar.range->high))
      out += whisker(kEdge + bar.range->low * unit, kEdge + bar.range->high * unit, y + kBarTop + kBar, 3);
    y += kRow;
  }
  return out + "</svg>";
}

std::string waterfall(const std::vector<Step>& steps, const std::string& sum_figure, std::string_view about) {
  double sum = 0;
  for (const Step& s : steps) sum += drawable(s.value) ? s.value : 0;
  if (steps.empty() || !drawable(sum)) return empty_figure(about);
  const double unit = (kPlotWidth - 2 * kEdge) / sum;
  std::string out = open_svg(kRow * static_cast<double>(steps.size() + 1) + 2, about), bars;
  double x = kEdge, y = 0;
  for (const Step& s : steps) {
    const double w = drawable(s.value) ? s.value * unit : 0;
    bars += bar_head(y, s.name, s.figure, "");
    if (w >= 0.05) bars += stripe(s.key, x, w, y, s.title);
    x += w;
    // To where the next step begins; below the words that stand there.
    out += text("<path class=\"leader\" d=\"M",
                fixed(x, 2),
                " ",
                coordinate(y + kBarTop),
                "V",
                coordinate(y + kRow + kBarTop),
                "\"/>");
    y += kRow;
  }
  out += bars;
  out += bar_head(y, "sum", sum_figure, " strong") + stripe("sum", kEdge, sum * unit, y, "sum: " + sum_figure);
  return out + "</svg>";
}

std::string scatter_plot(const std::vector<PlotPoint>& points, const AxisNames& names, std::string_view about,
                         FrontLine line) {
  std::vector<const PlotPoint*> shown;
  std::vector<double> xs, ys;
  for (const PlotPoint& p : points) {
    if (!drawable(p.x) || !drawable(p.y)) continue;
    shown.push_back(&p), xs.push_back(p.x), ys.push_back(p.y);
    if (p.x_range && drawable(p.x_range->low) && drawable(p.x_range->high))
      xs.push_back(p.x_range->low), xs.push_back(p.x_range->high);
  }
  if (shown.empty()) return empty_figure(about);
  const PlotArea area{.top = 24};
  const Scale x(xs, area.left, area.right), y(ys, area.bottom, area.top);
  std::string out = open_svg(area.bottom + kBelowAxis, about) + axes(area, x, y, names);

  // Points of the front come first: they get the best places for their names.
  std::stable_sort(shown.begin(), shown.end(), [](const PlotPoint* a, const PlotPoint* b) {
    return a->on_front != b->on_front ? a->on_front : a->x < b->x;
  });
  std::string front;
  for (const PlotPoint* p : shown)
    if (p->on_front) front += text(front.empty() ? "M" : "L", coordinate(x.at(p->x)), " ", coordinate(y.at(p->y)));
  if (!front.empty() && line == FrontLine::drawn) out += text("<path class=\"front\" d=\"", front, "\"/>");

  std::vector<Box2> taken;
  for (const PlotPoint* p : shown) {
    const double px = x.at(p->x), py = y.at(p->y);
    taken.push_back({px - 5, py - 5, px + 5, py + 5});
    if (p->x_range && drawable(p->x_range->low) && drawable(p->x_range->high))
      out += whisker(x.at(p->x_range->low), x.at(p->x_range->high), py, 3);
  }
  std::string marks, words;
  for (const PlotPoint* p : shown) {
    const double px = x.at(p->x), py = y.at(p->y);
    // Marks of the front lie above the others.
    std::string m = mark(px, py, p->on_front ? 5 : 3.5, p->shape, p->on_front ? "point best" : "point", p->title);
    marks = p->on_front ? marks + m : m + marks;
    words += name_beside(px, py, p->name, p->on_front, area, taken);
  }
  return out + marks + words + "</svg>";
}

}  // namespace sator::study
