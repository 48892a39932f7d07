#include "study/svg_space_time.h"

#include <algorithm>
#include <array>

#include "base/figures.h"
#include "base/text.h"
#include "study/page_style.h"

namespace sator::study {

using dataflow::Counts;
using dataflow::SpaceTime;
using dataflow::SpaceTimeCell;
using dataflow::SpaceTimeTensor;
using dataflow::Supply;

namespace {

struct Way {
  Supply supply;
  const char* css;
  const char* words;
  int64_t SupplyShares::* triples;
  double top, height;  // of a cell of height 1
};
constexpr Way kWays[] = {{Supply::memory, "s-memory", "from memory", &SupplyShares::memory, 0, 1},
                         {Supply::neighbour, "s-neighbour", "neighbour", &SupplyShares::neighbour, 0.2, 0.6},
                         {Supply::kept, "s-kept", "kept", &SupplyShares::kept, 0.38, 0.24}};

constexpr double kLeft = 46, kGap = 12, kHead = 34, kTicks = 18;

std::string point_text(const std::vector<int64_t>& p) {
  std::vector<std::string> parts;
  for (int64_t v : p) parts.push_back(text(v));
  return parts.size() == 1 ? parts[0] : text("(", join(parts, ","), ")");
}

/// Cells of one way as one path. Lines and squares that follow each other in one row are joined, so that long diagrams stay small;
/// small squares stay apart.
std::string cells_path(const SpaceTimeTensor& tensor, const Way& way, double x0, double y0, double w, double h) {
  std::string d;
  for (size_t c = 0; c < tensor.cells.size();) {
    const SpaceTimeCell& cell = tensor.cells[c];
    size_t run = 1;
    if (cell.supply() != way.supply) {
      ++c;
      continue;
    }
    while (way.supply == Supply::kept && c + run < tensor.cells.size() && tensor.cells[c + run].pe == cell.pe &&
           tensor.cells[c + run].stamp == cell.stamp + run && tensor.cells[c + run].supply() == way.supply)
      ++run;
    const double inset = way.supply == Supply::neighbour ? 0.2 * w : way.supply == Supply::memory ? 0.06 * w : 0;
    const double width = static_cast<double>(run) * w - 2 * inset;
    d += text("M",
              fixed(x0 + static_cast<double>(cell.stamp) * w + inset, 1),
              " ",
              fixed(y0 + (static_cast<double>(cell.pe) + way.top) * h, 1),
              "h",
              fixed(width, 1),
              "v",
              fixed(way.height * h * (way.supply == Supply::memory ? 0.92 : 1), 1),
              "h-",
              fixed(width, 1),
              "z");
    c += run;
  }
  return d.empty() ? "" : text("<path class=\"", way.css, "\" d=\"", d, "\"/>");
}

/// Sign, words and share of each way, in a row of its own.
std::string legend(const SupplyShares& shares, double& y) {
  std::string out;
  double x = 1;
  for (const Way& way : kWays) {
    const int64_t n = shares.*way.triples;
    const std::string words =
        text(way.words, " ", n == 0 ? "0 %" : percent(static_cast<double>(n) / static_cast<double>(shares.all())));
    const double width = 12 + text_width(words) + 6;
    if (x + width > kPlotWidth) x = 1, y += 16;
    out += text("<path class=\"",
                way.css,
                "\" d=\"M",
                coordinate(x),
                " ",
                fixed(y - 9 + 9 * way.top, 1),
                "h9v",
                fixed(9 * way.height, 1),
                "h-9z\"><title>",
                grouped(n),
                " of ",
                grouped(shares.all()),
                "</title></path>",
                label(x + 13, y, "tick", words));
    x += width;
  }
  return out;
}

/// Names of some rows and columns: the first, and those in steps that leave room.
std::string names_of(const SpaceTime& shown, double x0, double y0, double w, double h) {
  std::string out;
  const auto rows = static_cast<size_t>(std::max(1.0, 14.0 / h + 0.999));
  for (size_t p = 0; p < shown.pes.size(); p += rows)
    out += label(x0 - 4, y0 + (static_cast<double>(p) + 0.5) * h + 3.5, "tick end", point_text(shown.pes[p]));
  double last = -1;
  for (size_t s = 0; s < shown.stamps.size(); ++s) {
    const double x = x0 + static_cast<double>(s) * w;
    const std::string words = point_text(shown.stamps[s]);
    if (x < last || x + text_width(words) > kPlotWidth) continue;
    last = x + text_width(words) + 8;
    out += label(x, y0 + h * static_cast<double>(shown.pes.size()) + 13, "tick", words);
  }
  return out;
}

}  // namespace

SupplyShares shares_of(const dataflow::TensorCounts& t) {
  return {.kept = t.temporal_hits,
          .neighbour = std::max<int64_t>(0, t.assigned - t.unique - t.temporal_hits),
          .memory = t.unique};
}

std::string space_time_plot(const SpaceTime& shown, const Counts& counts, std::string_view about) {
  if (shown.pes.empty() || shown.stamps.empty()) return empty_figure(about);
  size_t longest = 2;
  for (const std::vector<int64_t>& p : shown.pes) longest = std::max(longest, point_text(p).size());
  const double x0 = std::max(kLeft, 6.6 * static_cast<double>(longest) + 8);
  const double w = std::min(12.0, (kPlotWidth - 2 - x0) / static_cast<double>(shown.stamps.size()));
  const double h = std::clamp(w, 5.0, 12.0);
  const double field = h * static_cast<double>(shown.pes.size());
  std::string body;
  double y = 0;
  for (size_t t = 0; t < shown.tensors.size(); ++t) {
    const SpaceTimeTensor& tensor = shown.tensors[t];
    body += label(
        1, y + 13, "name strong", text(tensor.tensor, tensor.role == dataflow::Role::read ? ", read" : ", written"));
    y += kHead - 4;
    body += legend(shares_of(counts.tensors[t]), y);
    y += 8;
    body += text("<rect class=\"field\" x=\"",
                 coordinate(x0),
                 "\" y=\"",
                 coordinate(y),
                 "\" width=\"",
                 coordinate(w * static_cast<double>(shown.stamps.size())),
                 "\" height=\"",
                 coordinate(field),
                 "\"/>");
    for (const Way& way : kWays) body += cells_path(tensor, way, x0, y, w, h);
    body += names_of(shown, x0, y, w, h);
    y += field + kTicks + kGap;
  }
  auto part = [](size_t here, int64_t all) { return text(grouped(static_cast<int64_t>(here)), " of ", grouped(all)); };
  body += label(1, y + 4, "tick", "downwards PEs, to the right stamps;");
  body += label(1,
                y + 19,
                "tick",
                text("shown: stamps ",
                     part(shown.stamps.size(), counts.time),
                     ", PEs ",
                     part(std::min<size_t>(shown.pes.size(), static_cast<size_t>(counts.space)), counts.space)));
  return open_svg(y + 26, about) + body + "</svg>";
}

std::string svg_file(std::string_view figure) {
  const size_t at = figure.find("<svg ");
  const size_t end = figure.find('>', at);
  if (at == std::string_view::npos || end == std::string_view::npos) return std::string(figure);
  return text("<svg xmlns=\"http://www.w3.org/2000/svg\" ",
              figure.substr(at + 5, end - at - 4),
              "<style>",
              page_style(),
              "svg { max-width: 760px; margin: 0 auto; background: var(--card); }</style>",
              figure.substr(end + 1),
              "\n");
}

}  // namespace sator::study
