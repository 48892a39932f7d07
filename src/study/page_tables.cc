#include "study/page_tables.h"

#include <algorithm>
#include <cmath>

#include "base/figures.h"
#include "base/text.h"
#include "study/compare.h"
#include "study/svg_parts.h"
#include "study/tables.h"
#include "study/words.h"

namespace sator::study {

namespace {

/// A head of a column, with a second line below it.
std::string head(const FigureColumn& c) {
  const std::string &words = c.page_head.empty() ? c.head : c.page_head,
                    &below = c.page_head.empty() ? c.below : c.page_below;
  return text(c.begins_group ? "<th class=\"phase\">" : "<th>",
              escaped(words),
              below.empty() ? "" : text("<small>", escaped(below), "</small>"),
              "</th>");
}

/// The row of heads; with those of the groups above it, if there are any.
std::string heads(const std::vector<FigureColumn>& columns, const std::string& groups = "") {
  std::string row = "<th>scheme</th>";
  for (const FigureColumn& c : columns) row += head(c);
  return text(groups, "<tr>", row, "</tr>");
}

/// A row per scheme.
std::string body(const Study& study, const std::vector<FigureColumn>& columns, size_t baseline) {
  std::string rows;
  for (size_t i = 0; i < study.schemes.size(); ++i) {
    const SchemeResult& s = study.schemes[i];
    rows += text("<tr",
                 i == baseline ? " class=\"base\"" : "",
                 "><th title=\"",
                 escaped(s.description),
                 "\">",
                 escaped(s.name),
                 "</th>");
    for (const FigureColumn& c : columns) {
      const Figure f = c.figure(s);
      rows += cell({f.words, f.value, c.is_best && c.is_best(s), c.begins_group});
    }
    rows += "</tr>";
  }
  return rows;
}

}  // namespace

std::string cell(const TableCell& c) {
  const std::string css = text(c.of_phase ? "phase" : "", c.best ? (c.of_phase ? " best" : "best") : "");
  return text("<td",
              css.empty() ? "" : text(" class=\"", css, "\""),
              c.value && std::isfinite(*c.value) ? text(" data-v=\"", *c.value, "\"") : "",
              ">",
              escaped(c.words),
              "</td>");
}

std::string sortable_table(const std::string& heads, const std::string& body, std::string_view css) {
  return text("<div class=\"scroll",
              css.empty() ? "" : text(" ", css),
              "\"><table class=\"sortable\"><thead>",
              heads,
              "</thead><tbody>",
              body,
              "</tbody></table></div>");
}

std::string quality_section(const Study& study) {
  const std::vector<FigureColumn> columns = quality_columns(study);
  return "<h2>Quality and size</h2>" + sortable_table(heads(columns), body(study, columns, baseline_of(study)));
}

std::string speed_section(const Study& study) {
  const std::vector<FigureColumn> columns = speed_columns(study);
  if (columns.empty()) return "";
  std::string words = speeds_line(study);
  words[0] = 'S';
  return text("<h2>Speed here</h2><p class=\"soft small\">",
              escaped(words),
              ".</p>",
              sortable_table(heads(columns), body(study, columns, baseline_of(study))));
}

std::string chip_table(const Study& study, size_t chip) {
  const std::vector<FigureColumn> columns = chip_columns(study, chip);
  const size_t each = columns.size() / std::size(kPhases);
  const std::string groups = text("<tr><th></th><th class=\"span\" colspan=\"",
                                  each,
                                  "\">prefill of ",
                                  counted(study.protocol.prompt_len, "token"),
                                  "</th><th class=\"span\" colspan=\"",
                                  each,
                                  "\">decode, one token at context ",
                                  study.protocol.decode_context,
                                  "</th></tr>");
  return sortable_table(heads(columns, groups), body(study, columns, baseline_of(study, chip)), "wide");
}

std::string_view page_script() {
  // Rows without a value stay last in both orders. No "<" stands here, so that the page's markup can be checked as a whole.
  return R"js(
for (const table of document.querySelectorAll('table.sortable')) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      const sign = head.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
      for (const other of heads) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', sign === 1 ? 'ascending' : 'descending');
      const words = row => row.cells[column].textContent, value = row => row.cells[column].dataset.v;
      const numbers = [...body.rows].some(row => value(row) !== undefined);
      body.append(...[...body.rows].sort((a, b) => {
        if (!numbers) return sign * words(a).localeCompare(words(b));
        if (value(a) === undefined || value(b) === undefined) return (value(a) === undefined) - (value(b) === undefined);
        return sign * (value(a) - value(b));
      }));
    });
  });
}
)js";
}

}  // namespace sator::study
