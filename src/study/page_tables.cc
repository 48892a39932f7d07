#include "study/page_tables.h"

#include <algorithm>
#include <cmath>

#include "base/figures.h"
#include "base/text.h"
#include "study/compare.h"
#include "study/svg_parts.h"
#include "study/words.h"

namespace sator::study {

namespace {

/// The least of the values that are there, if several schemes could have it.
template <class Value>
std::optional<double> least(const Study& study, Value value) {
  std::optional<double> best;
  for (const SchemeResult& s : study.schemes)
    if (std::optional<double> v = value(s)) best = std::min(best.value_or(*v), *v);
  return study.schemes.size() > 1 ? best : std::nullopt;
}

/// A head of a column, with a second line below it.
std::string head(std::string_view words, std::string_view below = "") {
  return text("<th>", escaped(words), below.empty() ? "" : text("<small>", escaped(below), "</small>"), "</th>");
}

std::string scheme_row(const SchemeResult& s, bool is_baseline, const std::string& cells) {
  return text("<tr",
              is_baseline ? " class=\"base\"" : "",
              "><th title=\"",
              escaped(s.description),
              "\">",
              escaped(s.name),
              "</th>",
              cells,
              "</tr>");
}

std::string figure(std::optional<double> value, const std::string& words) { return cell({words, value}); }

std::string quality_cells(const SchemeResult& s, bool best_loss, bool best_bits) {
  std::string cells = cell({perplexity_text(s.perplexity), s.perplexity, best_loss});
  cells += figure(s.standard_error, error_text(s.standard_error));
  if (s.compared) {
    const Compared& c = *s.compared;
    cells += figure(c.perplexity.value, signed_text(c.perplexity.value));
    cells += figure(c.perplexity.error, error_text(c.perplexity.error));
    cells += figure(c.kl.value, significant(c.kl.value)) + figure(c.kl.error, error_text(c.kl.error));
    cells += figure(c.same_top, percent(c.same_top));
  } else {
    for (int i = 0; i < 5; ++i) cells += figure({}, "-");
  }
  const auto bytes = static_cast<double>(s.weight_bytes);
  return cells + figure(bytes, quantity(bytes, "B")) +
         cell({fixed(s.bits_per_weight, 2), s.bits_per_weight, best_bits});
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
  const std::string& reference = study.protocol.reference;
  const std::string to = reference.empty() ? "" : "to " + reference,
                    from = reference.empty() ? "" : "from " + reference;
  const std::string heads = text("<tr>",
                                 head("scheme"),
                                 head("perplexity"),
                                 head("standard", "error"),
                                 head("difference", to),
                                 head("error", "paired"),
                                 head("KL divergence", from),
                                 head("error", "nats"),
                                 head("same", "top token"),
                                 head("stored", "bytes"),
                                 head("bits", "per weight"),
                                 "</tr>");
  const auto best_bits = least(study, [](const SchemeResult& s) { return std::optional(s.bits_per_weight); });
  const SchemeResult* best = nullptr;  // of several schemes; those that the text does not tell from it are marked too
  for (const SchemeResult& s : study.schemes)
    if (study.schemes.size() > 1 && s.perplexity && (!best || *s.perplexity < *best->perplexity)) best = &s;
  std::string body;
  for (size_t i = 0; i < study.schemes.size(); ++i) {
    const SchemeResult& s = study.schemes[i];
    body += scheme_row(
        s,
        i == baseline_of(study),
        quality_cells(s, best && quality_order(s, *best) <= 0, best_bits && s.bits_per_weight == *best_bits));
  }
  return "<h2>Quality and size</h2>" + sortable_table(heads, body);
}

std::string speed_section(const Study& study) {
  if (std::ranges::none_of(study.schemes, [](const SchemeResult& s) { return s.host_prefill || s.host_decode; }))
    return "";
  auto slowness = [](const std::optional<HostSpeed>& s) { return s ? std::optional(-s->median) : std::nullopt; };
  const std::optional<double> best[] = {least(study, [&](const SchemeResult& s) { return slowness(s.host_prefill); }),
                                        least(study, [&](const SchemeResult& s) { return slowness(s.host_decode); })};
  std::string heads = "<tr>" + head("scheme");
  for (const char* phase : {"prefill", "decode"})
    heads += head(phase, "median") + head(phase, "least") + head(phase, "most");
  heads += head("load", "s") + "</tr>";
  std::string body;
  for (size_t i = 0; i < study.schemes.size(); ++i) {
    const SchemeResult& s = study.schemes[i];
    std::string cells;
    size_t phase = 0;
    for (const std::optional<HostSpeed>& speed : {s.host_prefill, s.host_decode}) {
      const std::optional<double>& fastest = best[phase++];
      cells += cell({speed_text(speed),
                     speed ? std::optional(speed->median) : std::nullopt,
                     fastest && slowness(speed) == fastest,
                     true});
      cells += figure(speed ? std::optional(speed->least) : std::nullopt, speed ? significant(speed->least) : "-");
      cells += figure(speed ? std::optional(speed->most) : std::nullopt, speed ? significant(speed->most) : "-");
    }
    cells += figure(s.load_s, or_dash(s.load_s, [](double v) { return fixed(v, 2); }));
    body += scheme_row(s, i == baseline_of(study), cells);
  }
  std::string words = speeds_line(study);
  words[0] = 'S';
  return text("<h2>Speed here</h2><p class=\"soft small\">", escaped(words), ".</p>", sortable_table(heads, body));
}

std::string chip_table(const Study& study, size_t chip) {
  const size_t base = baseline_of(study, chip);
  const std::string units = text("<th class=\"phase\">latency</th>",
                                 head("MACs"),
                                 head("MAC units", "used"),
                                 head("bandwidth", "outside"),
                                 head("energy"),
                                 head("bound"),
                                 head("vs " + study.schemes[base].name));
  const std::string heads = text("<tr><th></th><th class=\"span\" colspan=\"7\">prefill of ",
                                 study.protocol.prompt_len,
                                 " tokens</th><th class=\"span\" colspan=\"7\">decode, one token at context ",
                                 study.protocol.decode_context,
                                 "</th></tr><tr>",
                                 head("scheme"),
                                 units,
                                 units,
                                 "</tr>");
  std::string body;
  for (size_t i = 0; i < study.schemes.size(); ++i) {
    const SchemeResult& s = study.schemes[i];
    std::string cells;
    for (const PhaseName& phase : kPhases) {
      auto cost_of = [&](const SchemeResult& of) -> const Cost& { return (of.chips[chip].*phase.result).cost; };
      const auto fastest = least(study, [&](const SchemeResult& o) { return std::optional(cost_of(o).latency_s); });
      const auto frugal = least(study, [&](const SchemeResult& o) {
        return knows_energy(cost_of(o)) ? std::optional(cost_of(o).energy_j) : std::nullopt;
      });
      const Cost& cost = cost_of(s);
      const auto macs = static_cast<double>(cost.macs);
      const double bandwidth = cost.levels.empty() ? 0 : cost.levels.front().achieved_bytes_per_s;
      const auto faster = ratio(cost_of(study.schemes[base]).latency_s, cost.latency_s);
      cells += cell({quantity(cost.latency_s, "s"), cost.latency_s, cost.latency_s == fastest, true});
      cells += figure(macs, quantity(macs, "")) + figure(cost.mac_units_used, significant(cost.mac_units_used));
      cells += figure(bandwidth, quantity(bandwidth, "B/s"));
      cells += cell({energy_text(cost),
                     knows_energy(cost) ? std::optional(cost.energy_j) : std::nullopt,
                     cost.energy_j == frugal});
      cells += cell({cost.bound}) + cell({times(faster), faster, cost.latency_s == fastest});
    }
    body += scheme_row(s, i == base, cells);
  }
  return sortable_table(heads, body, "wide");
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
