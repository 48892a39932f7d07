#include "study/front_page.h"

#include "base/text.h"
#include "study/page_style.h"

namespace sator::study {

std::string front_page(const std::string& title, const std::string& note, const std::vector<PlotPoint>& points,
                       const AxisNames& axes) {
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
      "</p>\n</main>\n</body>\n</html>\n");
}

}  // namespace sator::study
