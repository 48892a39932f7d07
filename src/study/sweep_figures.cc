#include "study/sweep_figures.h"

#include <algorithm>
#include <set>

#include "base/figures.h"
#include "base/text.h"
#include "study/svg_lines.h"

namespace sator::study {

namespace {

/// A figure of a point of the sweep.
struct SweepFigure {
  std::string_view title, axis, unit;
  double (*value)(const SweepPoint&);
};
constexpr SweepFigure kFigures[] = {
    {"Decode step", "latency of a decode step", "s", [](const SweepPoint& p) { return p.decode.latency_s; }},
    {"Tokens generated per second",
     "tokens/s",
     "",
     [](const SweepPoint& p) {
       return p.decode.latency_s > 0 ? static_cast<double>(p.batch) / p.decode.latency_s : 0;
     }},
    {"Prefill of the batch", "latency of the prefill", "s", [](const SweepPoint& p) { return p.prefill.latency_s; }},
};

/// What the plots' horizontal axis is.
enum class Over : uint8_t { context, batch };

std::string plot(const Study& study, size_t chip, const SweepFigure& figure, Over over, std::optional<int64_t> batch) {
  std::vector<PlotLine> lines;
  for (const SchemeResult& scheme : study.schemes) {
    PlotLine line{.name = scheme.name, .points = {}};
    for (const SweepPoint& p : scheme.chips[chip].sweep) {
      if (batch && p.batch != *batch) continue;
      const int64_t x = over == Over::context ? p.context : p.batch;
      const double y = figure.value(p);
      line.points.push_back(
          {static_cast<double>(x),
           y,
           text(scheme.name,
                ", batch ",
                p.batch,
                ", context ",
                p.context,
                ": ",
                figure.unit.empty() ? text(significant(y), " ", figure.axis) : quantity(y, figure.unit))});
    }
    std::sort(line.points.begin(), line.points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
    lines.push_back(std::move(line));
  }
  const std::string_view x = over == Over::context ? "context, tokens" : "batch, sequences";
  return text("<div class=\"card\"><h4>",
              figure.title,
              batch && over == Over::context ? text(", batch ", *batch) : "",
              "</h4>",
              line_plot(lines,
                        {x, "", figure.axis, figure.unit},
                        text(figure.axis, " against ", x, " on ", study.chips[chip].name, ", one line per scheme")),
              "</div>");
}

std::string plots(const Study& study, size_t chip, Over over, std::optional<int64_t> batch) {
  std::string cards;
  for (const SweepFigure& figure : kFigures) cards += plot(study, chip, figure, over, batch);
  return text("<div class=\"grid two\">", cards, "</div>");
}

}  // namespace

std::string sweep_section(const Study& study) {
  std::set<int64_t> batches, contexts;
  for (const SchemeResult& scheme : study.schemes)
    for (const ChipResult& chip : scheme.chips)
      for (const SweepPoint& p : chip.sweep) batches.insert(p.batch), contexts.insert(p.context);
  if (batches.size() * contexts.size() < 2) return "";
  const Over over = contexts.size() > 1 ? Over::context : Over::batch;
  std::string out =
      "<h2>Batches and contexts</h2><p class=\"soft small\">Each point is a step of the whole model at that size. A "
      "decode "
      "step appends a token to every sequence of the batch; prompts are taken in one after the other. Lines end with "
      "their scheme's name where there is room; point at a mark for its figures.</p>";
  std::string legend;
  for (size_t s = 0; s < study.schemes.size(); ++s)
    legend += text("<li>", line_sign(s, study.schemes[s].name), escaped(study.schemes[s].name), "</li>");
  for (size_t chip = 0; chip < study.chips.size(); ++chip) {
    out += text("<h3 class=\"above\">", escaped(study.chips[chip].name), "</h3>");
    if (over == Over::batch) {
      out += plots(study, chip, over, {});
      continue;
    }
    std::string others;
    for (int64_t batch : batches) (batch == *batches.begin() ? out : others) += plots(study, chip, over, batch);
    if (!others.empty())
      out += text(
          "<details><summary>", escaped(study.chips[chip].name), ": the other batches</summary>", others, "</details>");
  }
  return out + text("<ul class=\"legend\">", legend, "</ul>");
}

}  // namespace sator::study
