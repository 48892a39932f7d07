#include "ir/script/source.h"

#include <algorithm>

namespace sator::script {

namespace {

/// Characters of UTF-8: bytes that do not continue one.
int count_characters(std::string_view s) {
  return static_cast<int>(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

/// The first place from `at` on where a character of UTF-8 begins.
size_t character_at(std::string_view s, size_t at) {
  while (at < s.size() && (s[at] & 0xc0) == 0x80) ++at;
  return std::min(at, s.size());
}

}  // namespace

Source::Source(std::string text, std::string name, int32_t indent)
    : text_(std::move(text)), name_(std::move(name)), indent_(indent) {
  if (text_.size() >= 0x7fffffff)
    sator::fail({.what = sator::text("the program is ", text_.size(), " bytes long"),
                 .needs = "a text below 2 GiB",
                 .hint = "split the module"});
  line_starts_.push_back(0);
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(static_cast<uint32_t>(i + 1));
  }
}

std::string_view Source::line(int number) const {
  size_t begin = line_starts_[number - 1];
  size_t end = static_cast<size_t>(number) < line_starts_.size() ? line_starts_[number] - 1 : text_.size();
  std::string_view s = std::string_view(text_).substr(begin, end - begin);
  if (s.ends_with('\r')) s.remove_suffix(1);
  return s;
}

Span Source::span(Place place) const {
  auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), place.begin);
  auto number = static_cast<int32_t>(after - line_starts_.begin());
  uint32_t start = line_starts_[number - 1];
  std::string_view before = std::string_view(text_).substr(start, place.begin - start);
  return {number, count_characters(before) + 1 + indent_};
}

Reason Source::located(Place place, Reason reason) const {
  Span at = span(place);
  std::string position = sator::text("line ", at.line, ", column ", at.column);
  std::string here = name_.empty() ? position : sator::text("in ", name_, " ", position);
  reason.where = reason.where.empty() ? here : sator::text(here, ", ", reason.where);
  if (reason.program.empty()) {
    std::string_view quoted_line = line(at.line);
    uint32_t start = line_starts_[at.line - 1];
    size_t first = std::min<size_t>(place.begin - start, quoted_line.size());
    size_t last = std::clamp<size_t>(place.end > start ? place.end - start : 0, first, quoted_line.size());
    size_t lead = quoted_line.find_first_not_of(" \t");
    if (lead == quoted_line.npos || lead > first) lead = std::min(first, quoted_line.size());
    // Of a very long line, what stands around the place.
    constexpr size_t kWidth = 160;
    std::string_view shown = quoted_line.substr(lead), before = quoted_line.substr(lead, first - lead);
    bool is_cut = before.size() > kWidth / 2;
    if (is_cut) {
      const size_t cut = character_at(before, before.size() - kWidth / 2);
      shown.remove_prefix(cut);
      before.remove_prefix(cut);
    }
    size_t marked = std::min(last - first, kWidth);
    bool is_cut_after = shown.size() > before.size() + marked + kWidth;
    if (is_cut_after) shown = shown.substr(0, character_at(shown, before.size() + marked + kWidth / 2));
    int carets = std::max(1, count_characters(shown.substr(before.size(), marked)));
    std::string line = sator::text(is_cut ? "..." : "", shown, is_cut_after ? "..." : "");
    std::replace(line.begin(), line.end(), '\t', ' ');
    reason.program = sator::text(
        line, "\n", std::string((is_cut ? 3 : 0) + count_characters(before), ' '), std::string(carets, '^'));
  }
  return reason;
}

void Source::fail(Place place, Reason reason) const {
  throw SourceError(located(place, std::move(reason)), span(place));
}

}  // namespace sator::script
