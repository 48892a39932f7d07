#include "study/terminal.h"

#include <algorithm>

#include "base/figures.h"
#include "base/text.h"
#include "study/compare.h"
#include "study/host_comparison.h"
#include "study/sweep.h"
#include "study/words.h"

namespace sator::study {

namespace {

/// A column of a table of figures; the first column is the scheme's name.
struct FigureColumn {
  std::string head, unit;
  size_t width;
};

std::string row(const std::string& name, size_t name_width, const std::vector<FigureColumn>& columns,
                const std::vector<std::string>& cells) {
  std::string line = pad_right(name, name_width);
  for (size_t c = 0; c < columns.size(); ++c) line += pad_left(cells[c], columns[c].width);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string heads(size_t name_width, const std::vector<FigureColumn>& columns) {
  std::vector<std::string> names, units;
  for (const FigureColumn& c : columns) names.push_back(c.head), units.push_back(c.unit);
  return row("scheme", name_width, columns, names) + row("", name_width, columns, units);
}

/// The words in lines of at most `width`, the later ones indented.
std::string wrapped(const std::string& words, size_t width, size_t indent) {
  std::string out, line;
  for (std::string_view word : split(words, ' ')) {
    if (!line.empty() && display_width(line) + 1 + display_width(word) > width) {
      out += line + "\n";
      line = std::string(indent, ' ') + std::string(word);
    } else {
      line += (line.empty() ? "" : " ") + std::string(word);
    }
    while (display_width(line) > width) {  // one word wider than the line
      std::string head = pad_right(line, width);
      out += head + "\n";
      line.clear();
    }
  }
  return line.empty() ? out : out + line + "\n";
}

size_t widest_scheme(const Study& study, size_t most) {
  size_t width = 6;
  for (const SchemeResult& s : study.schemes) width = std::max(width, display_width(s.name));
  return std::min(width, most);
}

std::string quality_table(const Study& study, size_t width) {
  const std::string& reference = study.protocol.reference;
  const std::string to = reference.empty() ? "" : "to " + reference,
                    from = reference.empty() ? "" : "from " + reference;
  const std::vector<FigureColumn> columns = {{"perplexity", "", 12},
                                             {"error", "", 7},
                                             {"difference", to, 12},
                                             {"error", "paired", 10},
                                             {"KL", from, 10},
                                             {"error", "", 10},
                                             {"same", "top 1", 9},
                                             {"size", "", 10},
                                             {"bits", "per weight", 12}};
  size_t taken = 0;
  for (const FigureColumn& c : columns) taken += c.width;
  const size_t name_width = widest_scheme(study, width - taken);
  std::string out = heads(name_width, columns);
  for (const SchemeResult& s : study.schemes)
    out += row(s.name,
               name_width,
               columns,
               {perplexity_text(s.perplexity),
                or_dash(s.standard_error, significant),
                s.compared ? signed_text(s.compared->perplexity.value) : "-",
                s.compared ? error_text(s.compared->perplexity.error) : "-",
                s.compared ? significant(s.compared->kl.value) : "-",
                s.compared ? error_text(s.compared->kl.error) : "-",
                s.compared ? percent(s.compared->same_top) : "-",
                quantity(static_cast<double>(s.weight_bytes), "B"),
                fixed(s.bits_per_weight, 2)});
  return out;
}

/// Nothing where no speed was measured.
std::string speed_table(const Study& study, size_t width) {
  if (std::ranges::none_of(study.schemes, [](const SchemeResult& s) { return s.host_prefill || s.host_decode; }))
    return "";
  std::vector<FigureColumn> columns;
  for (const char* phase : {"prefill", "decode"}) {
    columns.push_back({phase, "median", 13});
    columns.push_back({"", "least", 9});
    columns.push_back({"", "most", 9});
  }
  columns.push_back({"load", "s", 8});
  size_t taken = 0;
  for (const FigureColumn& c : columns) taken += c.width;
  const size_t name_width = widest_scheme(study, width - taken);
  std::string out = "\n" + wrapped(speeds_line(study), width, 2) + heads(name_width, columns);
  for (const SchemeResult& s : study.schemes) {
    std::vector<std::string> cells;
    for (const std::optional<HostSpeed>& speed : {s.host_prefill, s.host_decode}) {
      cells.push_back(speed_text(speed));
      cells.push_back(speed ? significant(speed->least) : "-");
      cells.push_back(speed ? significant(speed->most) : "-");
    }
    cells.push_back(or_dash(s.load_s, [](double v) { return fixed(v, 2); }));
    out += row(s.name, name_width, columns, cells);
  }
  return out;
}

std::string chip_table(const Study& study, size_t chip, size_t width) {
  const SchemeResult& base_scheme = study.schemes[baseline_of(study, chip)];
  const std::string versus = "vs " + base_scheme.name;
  // Within the column's width: in its first line, in two, or not at all.
  const FigureColumn ratio_column = display_width(versus) <= 6             ? FigureColumn{versus, "", 8}
                                    : display_width(base_scheme.name) <= 7 ? FigureColumn{"vs", base_scheme.name, 8}
                                                                           : FigureColumn{"ratio", "", 8};
  std::vector<FigureColumn> columns;
  for (size_t phase = 0; phase < 2; ++phase) {
    columns.push_back({"latency", "", phase ? size_t{11} : size_t{10}});
    columns.push_back({"MACs", "", 8});
    columns.push_back({"units", "used", 7});
    columns.push_back({"bandwidth", "", 11});
    columns.push_back(ratio_column);
  }
  size_t taken = 0;
  for (const FigureColumn& c : columns) taken += c.width;
  const size_t name_width = widest_scheme(study, width - taken);
  const size_t half = taken / 2;
  std::string out = std::string(name_width, ' ') +
                    pad_left(text("prefill of ", study.protocol.prompt_len, " tokens"), half) +
                    pad_left(text("decode, 1 token at ", study.protocol.decode_context), taken - half) + "\n";
  out += heads(name_width, columns);
  const ChipResult& baseline = base_scheme.chips[chip];
  for (const SchemeResult& scheme : study.schemes) {
    std::vector<std::string> cells;
    for (const PhaseName& phase : kPhases) {
      const Cost& cost = (scheme.chips[chip].*phase.result).cost;
      const Cost& base = (baseline.*phase.result).cost;
      cells.push_back(quantity(cost.latency_s, "s"));
      cells.push_back(quantity(static_cast<double>(cost.macs), ""));
      cells.push_back(significant(cost.mac_units_used));
      cells.push_back(quantity(cost.levels.empty() ? 0 : cost.levels.front().achieved_bytes_per_s, "B/s"));
      cells.push_back(times(ratio(base.latency_s, cost.latency_s)));
    }
    out += row(scheme.name, name_width, columns, cells);
  }
  return out;
}

}  // namespace

std::string terminal_table(const Study& study, size_t width) {
  std::string out = wrapped(headline(study), width, 2) + wrapped(protocol_line(study), width, 2);
  if (study.schemes.empty()) return out + "\nno scheme was run\n";
  out += "\n" + quality_table(study, width) + speed_table(study, width);
  for (size_t chip = 0; chip < study.chips.size(); ++chip) {
    out += "\n" + wrapped(chip_line(study.chips[chip]), width, 2) + chip_table(study, chip, width);
    if (const std::string here = host_table(study, chip); !here.empty()) out += "\n" + here;
    for (const PrecisionRemark& remark : precision_remarks_on(study, chip))
      out += wrapped(text("  ", remark.words, ": ", join(remark.schemes, ", ")), width, 4);
    for (const std::string& remark : capacity_remarks_on(study, chip)) out += wrapped(remark, width, 2);
  }
  out += sweep_table(study);
  out += "\n";
  for (const Verdict& v : verdicts(study)) out += wrapped(v.sentence, width, 2);
  out += "\n";
  for (const std::string& line : footer_lines(study)) out += wrapped(line, width, 2);
  return out;
}

}  // namespace sator::study
