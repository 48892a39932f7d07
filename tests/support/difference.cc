// The difference of two texts by lines, and new expectations for a file.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "support/texttest.h"

namespace sator::test {

std::string line_difference(std::string_view expected, std::string_view got) {
  std::vector<std::string_view> a = split(expected, '\n'), b = split(got, '\n');
  constexpr size_t kMostCells = 1 << 26;  // 256 MB: beyond it the comparison would take longer than reading both texts
  if (a.size() * b.size() > kMostCells) return text("- ", a.size(), " lines\n+ ", b.size(), " other lines\n");
  // common[i][j]: length of the longest common subsequence of a[i..] and b[j..]
  size_t width = b.size() + 1;
  std::vector<uint32_t> common((a.size() + 1) * width);
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      common[i * width + j] = a[i] == b[j] ? common[(i + 1) * width + j + 1] + 1
                                           : std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
  std::vector<std::pair<char, std::string_view>> lines;
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      lines.emplace_back(' ', a[i]);
      ++i, ++j;
    } else if (i < a.size() && (j == b.size() || common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      lines.emplace_back('-', a[i++]);
    } else {
      lines.emplace_back('+', b[j++]);
    }
  }
  constexpr size_t kContext = 3;
  std::string out;
  size_t hidden = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    size_t from = i < kContext ? 0 : i - kContext, to = std::min(lines.size(), i + kContext + 1);
    bool near = std::any_of(lines.begin() + from, lines.begin() + to, [](const auto& l) { return l.first != ' '; });
    if (!near) {
      ++hidden;
      continue;
    }
    if (hidden) out += text("  ... ", hidden, " lines\n");
    hidden = 0;
    out += text(lines[i].first, " ", lines[i].second, "\n");
  }
  return out;
}

// The lines of a section's text, those that would read as headers with a backslash before them.
static void append_section(std::vector<std::string>& lines, std::string header, std::string_view body) {
  lines.push_back(std::move(header));
  if (body.empty()) return;
  for (std::string_view line : split(body, '\n')) {
    bool special = line.starts_with("\\") || line.starts_with("case ") || line.starts_with("--- ");
    lines.push_back(text(special ? "\\" : "", line));
  }
}

std::string blessed(std::string_view content, const std::vector<Blessing>& blessings) {
  std::vector<std::string_view> old = split(content, '\n');
  // By first line (from 0): what replaces the old lines up to `end`.
  struct Edit {
    size_t end;
    std::vector<std::string> lines;
  };
  std::map<size_t, Edit> edits;
  for (const Blessing& blessing : blessings) {
    const TestCase& test = *blessing.test;
    const Section* expect = test.find("expect");
    size_t begin = expect ? expect->line - 1 : test.end_line - 1, end = begin;
    if (expect) {
      // Up to the next section, or to the case's last line that is not blank: blank lines between cases stay.
      end = test.end_line - 1;
      for (const Section& s : test.sections)
        if (s.line > expect->line) end = std::min(end, static_cast<size_t>(s.line - 1));
    }
    Edit edit{end, {}};
    append_section(edit.lines, blessing.outcome->is_error ? "--- expect error" : "--- expect", blessing.outcome->got);
    edits.emplace(begin, std::move(edit));
  }
  std::vector<std::string> lines;
  size_t next = 0;  // of the old lines, the first that is not copied or replaced yet
  for (auto& [begin, edit] : edits) {
    lines.insert(lines.end(), old.begin() + next, old.begin() + begin);
    lines.insert(lines.end(), edit.lines.begin(), edit.lines.end());
    next = edit.end;
  }
  lines.insert(lines.end(), old.begin() + next, old.end());
  return join(lines, "\n");
}

}  // namespace sator::test
