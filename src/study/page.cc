#include "study/page.h"

#include <algorithm>

#include "base/figures.h"
#include "base/text.h"
#include "study/host_comparison.h"
#include "study/page_figures.h"
#include "study/page_style.h"
#include "study/page_tables.h"
#include "study/sweep_figures.h"
#include "study/words.h"

namespace sator::study {

namespace {

std::string tag(std::string_view name, std::string_view css_class, std::string_view inner) {
  return text("<", name, css_class.empty() ? "" : text(" class=\"", css_class, "\""), ">", inner, "</", name, ">");
}

std::string legend(const Study& study) {
  std::string items;
  for (const ComponentName& c : components()) {
    bool used = false;
    for (const SchemeResult& s : study.schemes)
      for (const ChipResult& chip : s.chips)
        for (const PhaseName& phase : kPhases)
          used |= at((chip.*phase.result).cost.components, c.component).latency_cycles > 0;
    if (used)
      items += text("<li title=\"",
                    escaped(c.means),
                    "\"><i class=\"c-",
                    c.key,
                    "\">",
                    c.mark,
                    "</i>",
                    escaped(c.words),
                    "</li>");
  }
  return text("<ul class=\"legend\">", items, "</ul>");
}

std::string verdict_cards(const Study& study) {
  std::string cards;
  for (size_t chip = 0; const Verdict& v : verdicts(study)) {
    const SchemeResult& winner = study.schemes[v.winner];
    const SchemeResult& base = study.schemes[baseline_of(study, chip)];
    auto r = ratio(request_s(base.chips[chip], study.protocol), request_s(winner.chips[chip], study.protocol));
    cards +=
        tag("div",
            "card verdict",
            tag("h3", "", escaped(v.chip)) + tag("div", "big", times(r)) +
                tag("div", "who", escaped(text(winner.name, " vs ", base.name))) + tag("p", "", escaped(v.sentence)));
    ++chip;
  }
  return tag("div", "grid", cards);
}

std::string layer_cards(const Study& study, const SchemeResult& scheme, size_t chip) {
  std::string cards;
  for (const PhaseName& phase : kPhases)
    cards += tag(
        "div",
        "card",
        tag("h3", "", text(phase.name, " per layer: ", escaped(scheme.name))) + layer_plot(study, scheme, chip, phase));
  return tag("div", "grid two", cards);
}

std::string card(const std::string& title, const std::string& figure, const std::string& caption = "") {
  return tag("div",
             "card",
             tag("h3", "", escaped(title)) + figure + (caption.empty() ? "" : tag("p", "caption", escaped(caption))));
}

/// Roofline, energy and sensitivity of one scheme on a chip.
std::string scheme_cards(const Study& study, const SchemeResult& scheme, size_t chip) {
  std::string cards =
      card(text("Roofline: ", scheme.name),
           roofline_plot(roofline_of(study, scheme, chip),
                         text("roofline of ", study.chips[chip].name, " with the kernels of ", scheme.name)),
           "Circles are kernels of prefill, diamonds of decode, against the outermost memory; hollow ones "
           "once more against the memory that binds them. Kernels without MACs are left out.");
  std::string sensitivity;
  for (const PhaseName& phase : kPhases)
    sensitivity += tag("h4", "", phase.name) + sensitivity_plot(study, scheme, chip, phase);
  cards += tag("div",
               "card",
               tag("h3", "", escaped(text("If a part were 10 % faster, a memory 10 % larger: ", scheme.name))) +
                   sensitivity +
                   tag("p",
                       "caption",
                       "What it takes off the latency while the same parts bind: the part's elasticity times 1 - "
                       "1/1.1. Mostly less where "
                       "another comes to bind. The clock moves all but the outermost memory; parts that give nothing "
                       "are left out. A larger memory has the same ports, and its kernels are mapped anew."));
  for (const PhaseName& phase : kPhases)
    cards += card(text("Energy of ", phase.name, ": ", scheme.name), energy_plot(study, scheme, chip, phase));
  return tag("div", "grid two", cards);
}

std::string scheme_figures(const Study& study, size_t chip, size_t winner) {
  std::string others;
  for (size_t s = 0; s < study.schemes.size(); ++s)
    if (s != winner) others += scheme_cards(study, study.schemes[s], chip);
  std::string out = scheme_cards(study, study.schemes[winner], chip);
  std::string products;
  for (const PhaseName& phase : kPhases)
    if (auto product = space_time_figure(study, study.schemes[winner], chip, phase))
      products += card(product->title, product->figure);
  if (!products.empty())
    out +=
        tag("h3", "above", text("Where each PE has its operands from: ", escaped(study.schemes[winner].name))) +
        tag("div", "grid two", products) +
        tag("p",
            "soft small",
            "The largest product of each phase. A full square comes from memory, a small one from a neighbouring PE, a "
            "line is kept. Shares are those of the whole product.");
  if (!others.empty())
    out +=
        text("<details><summary>Roofline, sensitivity and energy: the other schemes</summary>", others, "</details>");
  return out;
}

/// Which schemes on which chips no other beats, as a plot and as a table.
std::string pareto_section(const Study& study) {
  std::vector<Candidate> all = candidates(study);
  if (all.size() < 2) return "";
  std::string chips;
  for (size_t c = 0; c < study.chips.size(); ++c)
    chips += tag("li",
                 "",
                 text("<svg class=\"sign\" viewBox=\"0 0 14 14\" aria-hidden=\"true\">",
                      mark(7, 7, 4.5, static_cast<int>(c), "point best", study.chips[c].name),
                      "</svg>",
                      escaped(study.chips[c].name)));
  const std::string plot = tag("div",
                               "card",
                               tag("h3", "", "Energy against latency of a request") + pareto_plot(study, all) +
                                   text("<ul class=\"legend\">", chips, "</ul>"));
  std::stable_sort(
      all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.latency_s < b.latency_s; });
  std::string rows;
  for (const Candidate& c : all)
    if (c.best)
      rows += tag("tr",
                  "",
                  text("<th>", escaped(study.schemes[c.scheme].name), "</th>") + cell({study.chips[c.chip].name}) +
                      cell({quantity(c.latency_s, "s"), c.latency_s}) + cell({energy_text(c.energy_j), c.energy_j}) +
                      cell({perplexity_text(c.perplexity), c.perplexity}));
  const std::string table =
      sortable_table("<tr><th>scheme</th><th>chip</th><th>latency</th><th>energy</th><th>perplexity</th></tr>", rows);
  return tag("h2", "", "Which are worth choosing among") +
         tag("p",
             "soft small",
             text("Marked and listed: no other scheme and chip is as good in latency, energy",
                  all[0].perplexity ? " and perplexity (within two paired standard errors)" : "",
                  " and better in one of them. A request is a prompt of ",
                  counted(study.protocol.prompt_len, "token"),
                  " and ",
                  study.protocol.gen_len,
                  " generated ones.")) +
         tag("div", "grid two", plot + table);
}

/// The winner's layers, and those of the other schemes behind a click.
std::string layer_section(const Study& study, size_t chip, size_t winner) {
  std::string others;
  for (size_t s = 0; s < study.schemes.size(); ++s)
    if (s != winner) others += layer_cards(study, study.schemes[s], chip);
  std::string out = layer_cards(study, study.schemes[winner], chip);
  if (!others.empty()) out += text("<details><summary>Per layer: the other schemes</summary>", others, "</details>");
  return out;
}

std::string list(const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string out;
  for (const std::string& item : items) out += tag("li", "", escaped(item));
  return tag("ul", "remarks", out);
}

std::string chip_section(const Study& study, size_t chip, const std::vector<Verdict>& all) {
  const ChipFacts& facts = study.chips[chip];
  std::string out = tag("h2", "", escaped(facts.name));
  out += tag("p",
             "soft",
             escaped(facts.description.empty() ? chip_line(facts) : text(facts.description, "; ", speed_words(facts))));
  out += chip_table(study, chip) + host_section(study, chip);
  std::vector<std::string> remarks;
  for (const PrecisionRemark& r : precision_remarks_on(study, chip))
    remarks.push_back(text(r.words, ": ", join(r.schemes, ", ")));
  for (std::string& r : capacity_remarks_on(study, chip)) remarks.push_back(std::move(r));
  out += list(remarks);

  std::string plots;
  const bool quality = std::any_of(
      study.schemes.begin(), study.schemes.end(), [](const SchemeResult& s) { return s.perplexity.has_value(); });
  if (quality)
    for (const PhaseName& phase : kPhases)
      plots += tag(
          "div", "card", tag("h3", "", text("Quality against cost: ", phase.name)) + quality_plot(study, chip, phase));
  for (const PhaseName& phase : kPhases)
    plots += tag(
        "div", "card", tag("h3", "", text("Where the time of ", phase.name, " goes")) + time_plot(study, chip, phase));
  out += tag("div", "grid two", plots) + legend(study);
  out += scheme_figures(study, chip, all[chip].winner);
  if (!quality)
    out += tag("p", "soft small", "No perplexity was measured, so there is no plot of quality against cost.");
  return out + layer_section(study, chip, all[chip].winner);
}

std::string energy_sources(const Study& study) {
  std::string items;
  for (size_t chip = 0; chip < study.chips.size(); ++chip) {
    std::vector<std::string> seen;
    for (const SchemeResult& s : study.schemes)
      for (const PhaseName& phase : kPhases)
        for (const EnergyShare& e : (s.chips[chip].*phase.result).cost.energy) {
          std::string words = text(e.name, ": ", e.source);
          if (!e.source.empty() && std::find(seen.begin(), seen.end(), words) == seen.end())
            seen.push_back(std::move(words));
        }
    items += text("<dt>",
                  escaped(study.chips[chip].name),
                  study.chips[chip].node_nm > 0 ? text(", ", study.chips[chip].node_nm, " nm") : "",
                  "</dt><dd>",
                  escaped(join(seen, "; ")),
                  "</dd>");
  }
  return tag("dl", "", items);
}

std::string reading_section(const Study& study) {
  std::string parts;
  for (const ComponentName& c : components())
    parts += text("<dt>", escaped(c.words), "</dt><dd>", escaped(c.means), "</dd>");
  std::string schemes;
  for (const SchemeResult& s : study.schemes)
    schemes += text("<dt>", escaped(s.name), "</dt><dd>", escaped(s.description), "</dd>");
  std::string out = tag("h2", "", "How to read this");
  out +=
      tag("p",
          "small soft",
          "A kernel's latency is that of the resource that binds (the MAC array, the vector unit or a memory) and of "
          "what nothing "
          "hides; kernels run one after the other, so latencies add. Bandwidth is bytes of the outermost memory over "
          "the latency. "
          "MAC units used is the average of those at work while the array works. Ratios above 1 are faster than the "
          "baseline, whose row is grey: f16, and f16+a16 on chips whose fast units take 16 bits. "
          "A request, by which schemes are ranked, is the prompt and then every generated token at the mean context.");
  out += text("<details><summary>What the colours mean</summary>", tag("dl", "", parts), "</details>");
  out += text("<details><summary>The schemes</summary>", tag("dl", "", schemes), "</details>");
  return out + text("<details><summary>Where the energies come from</summary>", energy_sources(study), "</details>");
}

}  // namespace

/// The sections get names, and a list of links to them stands at `at`.
static std::string with_contents(const std::string& page, size_t at) {
  constexpr std::string_view kOpen = "<h2>", kClose = "</h2>";
  std::string out, links;
  size_t from = 0, sections = 0;
  for (size_t h = page.find(kOpen); h != std::string::npos; h = page.find(kOpen, from)) {
    const size_t begin = h + kOpen.size(), end = page.find(kClose, begin);
    const std::string id = text("section-", ++sections), title = page.substr(begin, end - begin);
    links += text("<li><a href=\"#", id, "\">", title, "</a></li>");
    out += text(page.substr(from, h - from), "<h2 id=\"", id, "\">", title);
    from = end;
  }
  out += page.substr(from);
  if (sections == 0) return out;
  return out.insert(at, text("<nav class=\"contents\" aria-label=\"Contents\"><ul>", links, "</ul></nav>\n"));
}

std::string html_page(const Study& study) {
  std::string out = text(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>",
      escaped(study.model.name),
      ": quantization schemes on chips</title><style>",
      page_style(),
      "</style></head><body>\n");
  const std::string head = headline(study);
  out += tag("h1", "", escaped(study.model.name)) +
         tag("p", "soft", escaped(head.substr(std::min(head.size(), study.model.name.size() + 2))));
  out += tag("p", "soft small", escaped(protocol_line(study)));
  const size_t contents_at = out.size();
  if (study.schemes.empty()) {
    out += tag("p", "", "No scheme was run.");
  } else {
    out += verdict_cards(study);
    out += quality_section(study) + speed_section(study);
    out += pareto_section(study);
    const std::vector<Verdict> all = verdicts(study);
    for (size_t chip = 0; chip < study.chips.size(); ++chip) out += chip_section(study, chip, all);
    out += sweep_section(study);
    out += reading_section(study);
  }
  std::string lines;
  for (const std::string& line : footer_lines(study)) lines += tag("p", "", escaped(line));
  out += tag("footer", "", lines + tag("p", "", escaped(study.protocol.version)));
  return with_contents(out, contents_at) + text("\n<script>", page_script(), "</script>\n</body></html>\n");
}

}  // namespace sator::study
