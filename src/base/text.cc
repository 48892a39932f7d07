#include "base/text.h"

#include <algorithm>

namespace sator {

void append_text(std::string& out, double v) {
  char buf[40];
  auto [end, err] = std::to_chars(buf, buf + sizeof buf, v);
  out.append(buf, end);
}

std::vector<std::string_view> split(std::string_view s, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t at = s.find(separator);
    parts.push_back(s.substr(0, at));
    if (at == std::string_view::npos) return parts;
    s.remove_prefix(at + 1);
  }
}

std::string lower_case(std::string s) {
  for (char& c : s)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return s;
}

std::string_view trim(std::string_view s) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  size_t from = s.find_first_not_of(kSpace);
  if (from == std::string_view::npos) return {};
  return s.substr(from, s.find_last_not_of(kSpace) - from + 1);
}

std::string string_literal(std::string_view s) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (unsigned char c : s) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (c < 0x20 || c == 0x7f) {
          out += "\\x";
          out += kHex[c >> 4];
          out += kHex[c & 15];
        } else {
          out += static_cast<char>(c);
        }
    }
  }
  return out + '"';
}

std::string indented(std::string_view s, std::string_view prefix) {
  std::string out;
  for (std::string_view line : split(s, '\n')) {
    if (!out.empty()) out += '\n';
    if (!line.empty()) out.append(prefix).append(line);
  }
  return out;
}

std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [name, value] : values) {
    const std::string hole = "{" + name + "}";
    for (size_t at = text.find(hole); at != text.npos; at = text.find(hole, at + value.size()))
      text.replace(at, hole.size(), value);
  }
  return text;
}

std::string numbered(const std::string& pattern, int64_t number) {
  const size_t at = pattern.find('*');
  return at == pattern.npos ? pattern : text(pattern.substr(0, at), number, pattern.substr(at + 1));
}

std::string grouped(int64_t v) {
  std::string digits = text(v);
  size_t first = digits[0] == '-' ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

static size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t up = row[j];
      row[j] = std::min({up + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = up;
    }
  }
  return row[b.size()];
}

std::vector<std::string> nearest_names(std::string_view name, const std::vector<std::string>& among) {
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string& candidate : among) {
    size_t d = edit_distance(name, candidate);
    if (d <= std::max(name.size(), candidate.size()) / 2 + 1) ranked.emplace_back(d, candidate);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < ranked.size() && i < 3; ++i) names.push_back(std::move(ranked[i].second));
  return names;
}

}  // namespace sator
