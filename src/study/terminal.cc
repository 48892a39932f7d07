#include "study/terminal.h"

#include <algorithm>

#include "base/figures.h"
#include "base/text.h"
#include "study/compare.h"
#include "study/host_comparison.h"
#include "study/sweep.h"
#include "study/tables.h"
#include "study/words.h"

namespace sator::study {

namespace {

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

/// Those of the columns that stand in the terminal, each wide enough for its head, which may hold a scheme's name.
std::vector<FigureColumn> in_terminal(std::vector<FigureColumn> columns) {
  std::erase_if(columns, [](const FigureColumn& c) { return c.width == 0; });
  for (FigureColumn& c : columns) c.width = std::max(c.width, std::max(c.head.size(), c.below.size()) + 1);
  return columns;
}

size_t width_of(const std::vector<FigureColumn>& columns) {
  size_t taken = 0;
  for (const FigureColumn& c : columns) taken += c.width;
  return taken;
}

std::string table(const Study& study, const std::vector<FigureColumn>& columns, size_t width) {
  const size_t name_width = widest_scheme(study, width - width_of(columns));
  auto row = [&](const std::string& name, const std::function<std::string(const FigureColumn&)>& cell) {
    std::string line = pad_right(name, name_width);
    for (const FigureColumn& c : columns) line += pad_left(cell(c), c.width);
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
  };
  std::string out = row("scheme", [](const FigureColumn& c) { return c.head; }) +
                    row("", [](const FigureColumn& c) { return c.below; });
  for (const SchemeResult& s : study.schemes)
    out += row(s.name, [&](const FigureColumn& c) { return c.figure(s).words; });
  return out;
}

std::string speed_table(const Study& study, size_t width) {
  const std::vector<FigureColumn> columns = in_terminal(speed_columns(study));
  return columns.empty() ? "" : "\n" + wrapped(speeds_line(study), width, 2) + table(study, columns, width);
}

std::string chip_table(const Study& study, size_t chip, size_t width) {
  const std::vector<FigureColumn> columns = in_terminal(chip_columns(study, chip));
  const size_t taken = width_of(columns), half = taken / 2;
  return std::string(widest_scheme(study, width - taken), ' ') +
         pad_left(text("prefill of ", counted(study.protocol.prompt_len, "token")), half) +
         pad_left(text("decode, 1 token at ", study.protocol.decode_context), taken - half) + "\n" +
         table(study, columns, width);
}

}  // namespace

std::string terminal_table(const Study& study, size_t width) {
  std::string out = wrapped(headline(study), width, 2) + wrapped(protocol_line(study), width, 2);
  if (study.schemes.empty()) return out + "\nno scheme was run\n";
  out += "\n" + table(study, in_terminal(quality_columns(study)), width) + speed_table(study, width);
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
