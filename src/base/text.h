#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sator {

// `text(a, b, ...)` joins its arguments. A type takes part by an `append_text(std::string&, const T&)` beside it.
inline void append_text(std::string& out, std::string_view s) { out += s; }
inline void append_text(std::string& out, const char* s) { out += s; }
inline void append_text(std::string& out, const std::string& s) { out += s; }
inline void append_text(std::string& out, char c) { out += c; }
inline void append_text(std::string& out, bool b) { out += b ? "true" : "false"; }
/// The shortest decimal that reads back as the same double.
void append_text(std::string& out, double v);
inline void append_text(std::string& out, std::integral auto v) {
  char buf[24];
  auto [end, err] = std::to_chars(buf, buf + sizeof buf, v);
  out.append(buf, end);
}

template <class... Ts>
std::string text(const Ts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

/// The parts with `separator` between them.
template <class Range>
std::string join(const Range& parts, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& p : parts) {
    if (!first) out += separator;
    first = false;
    append_text(out, p);
  }
  return out;
}

std::vector<std::string_view> split(std::string_view s, char separator);
/// Without spaces, tabs and line ends at both ends.
std::string_view trim(std::string_view s);
/// With a to z for A to Z; all else stays.
std::string lower_case(std::string s);
/// The string as a double-quoted literal with C escapes.
std::string string_literal(std::string_view s);
/// Each line of `s` with `prefix` before it; empty lines stay empty.
std::string indented(std::string_view s, std::string_view prefix);
/// The text with each {name} replaced by its value, name by name: a value may hold the names that follow.
std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& values);
/// A pattern with a number in the place of its star: "experts.*.up" -> "experts.3.up". Without a star it stays.
std::string numbered(const std::string& pattern, int64_t number);
/// A count with separators between thousands: 1234567 -> "1,234,567".
std::string grouped(int64_t v);
/// The names of `among` nearest to `name` by edit distance, best first, at most three.
std::vector<std::string> nearest_names(std::string_view name, const std::vector<std::string>& among);

}  // namespace sator
