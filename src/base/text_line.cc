#include "base/text_line.h"

#include <algorithm>

#include "base/error.h"

namespace sator {
namespace {

std::string in_ascii(std::string_view piece) {
  std::string out(piece);
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return out;
}

}  // namespace

void TextLine::fail(size_t column, std::string what, std::string needs, std::string hint) const {
  constexpr size_t kWidth = 100;
  const size_t from = column < kWidth ? 0 : column - kWidth / 2;
  const std::string part = in_ascii(content.substr(std::min(from, content.size()), kWidth));
  sator::fail({.what = std::move(what),
               .needs = std::move(needs),
               .hint = std::move(hint),
               .program = text(part, "\n", std::string(column - from, ' '), "^"),
               .where = text(file, " line ", number, ", column ", column + 1)});
}

std::vector<TextLine> text_lines(std::string_view text, std::string_view file) {
  std::vector<TextLine> lines;
  int64_t number = 1;
  for (std::string_view content : split(text, '\n')) {
    if (content.ends_with('\r')) content.remove_suffix(1);
    lines.push_back({content, file, number++});
  }
  return lines;
}

std::string shown(std::string_view piece) {
  constexpr size_t kMost = 40;
  return string_literal(piece.size() <= kMost ? in_ascii(piece) : in_ascii(piece.substr(0, kMost)) + "...");
}

}  // namespace sator
