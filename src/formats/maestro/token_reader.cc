#include "formats/maestro/token_reader.h"

#include "base/text.h"

namespace sator::formats::maestro {
namespace {

constexpr std::string_view kMarks = "{}(),;:";

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

}  // namespace

TokenReader::TokenReader(std::string_view text, std::string_view file) : lines_(text_lines(text, file)) {
  if (lines_.empty()) lines_.push_back({"", file, 1});
  for (size_t line = 0; line < lines_.size(); ++line) {
    const std::string_view content = lines_[line].content;
    for (size_t at = 0; at < content.size();) {
      if (blank(content[at])) {
        ++at;
        continue;
      }
      if (content.substr(at, 2) == "//") break;
      size_t end = at + 1;
      if (kMarks.find(content[at]) == kMarks.npos)
        while (end < content.size() && !blank(content[end]) && kMarks.find(content[end]) == kMarks.npos &&
               content.substr(end, 2) != "//")
          ++end;
      tokens_.push_back({content.substr(at, end - at), line, at});
      at = end;
    }
  }
}

bool TokenReader::accept(std::string_view text) {
  if (peek() != text || at_end()) return false;
  ++next_;
  return true;
}

void TokenReader::expect(std::string_view text, std::string_view where) {
  if (!accept(text))
    fail_next(sator::text(next_shown(), " stands where ", shown(text), " should"),
              sator::text(shown(text), " ", where),
              sator::text("write ", shown(text), " here"));
}

std::string_view TokenReader::word(std::string_view what) {
  if (at_end() || kMarks.find(peek()[0]) != kMarks.npos)
    fail_next(
        text(next_shown(), " stands where ", what, " should"), text(what, " is a word"), text("write ", what, " here"));
  return take();
}

int64_t TokenReader::to_integer(std::string_view digits) {
  int64_t value = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return -1;
    value = value > INT32_MAX ? value : value * 10 + (c - '0');
  }
  return digits.empty() ? -1 : value > INT32_MAX ? INT64_MAX : value;
}

int64_t TokenReader::integer(std::string_view what, int64_t least) {
  const std::string_view digits = word(what);
  const int64_t value = to_integer(digits);
  if (value < least || value > INT32_MAX)
    fail_last(text(what, " is ", shown(digits)),
              text(what, " is an integer from ", least, " up to 2^31 - 1"),
              text("write a number of at least ", least));
  return value;
}

Place TokenReader::place() const {
  if (at_end()) return {static_cast<int64_t>(lines_.size()), static_cast<int64_t>(lines_.back().content.size()) + 1};
  return {static_cast<int64_t>(tokens_[next_].line) + 1, static_cast<int64_t>(tokens_[next_].column) + 1};
}

void TokenReader::fail_next(std::string what, std::string needs, std::string hint) const {
  const Place at = place();
  lines_[at.line - 1].fail(at.column - 1, std::move(what), std::move(needs), std::move(hint));
}

void TokenReader::fail_last(std::string what, std::string needs, std::string hint) const {
  const Token& token = tokens_[next_ - 1];
  lines_[token.line].fail(token.column, std::move(what), std::move(needs), std::move(hint));
}

}  // namespace sator::formats::maestro
