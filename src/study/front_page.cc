#include "study/front_page.h"

#include "base/text.h"
#include "study/page_style.h"

namespace sator::study {

namespace {

std::string row_of(const std::vector<std::string>& cells, const char* first, const char* other) {
  std::string out = "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    const char* kind = i == 0 ? first : other;
    out += text("<", kind, ">", escaped(cells[i]), "</", kind, ">");
  }
  return out + "</tr>";
}

}  // namespace

std::string front_page(const std::string& title, const std::string& note, const std::vector<PlotPoint>& points,
                       const AxisNames& axes, const FrontTable& table) {
  std::string rows;
  for (const std::vector<std::string>& cells : table.rows) rows += row_of(cells, "th", "td") + "\n";
  return text(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      escaped(title),
      "</title>\n<style>\n",
      page_style(),
      "</style>\n</head>\n<body>\n<main>\n<h1>",
      escaped(title),
      "</h1>\n",
      scatter_plot(points, axes, title, FrontLine::none),
      "\n<p>",
      escaped(note),
      "</p>\n<div class=\"scroll\"><table><thead>",
      row_of(table.head, "th", "th"),
      "</thead><tbody>\n",
      rows,
      "</tbody></table></div>\n</main>\n</body>\n</html>\n");
}

}  // namespace sator::study
