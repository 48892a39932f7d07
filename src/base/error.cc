#include "base/error.h"

#include <algorithm>

namespace sator {

/// How many bytes the well-formed UTF-8 of one character at `i` takes; 0 if it is none. Source: RFC 3629, section 4.
static size_t utf8_length(std::string_view s, size_t i) {
  const auto at = [&](size_t j) { return j < s.size() ? static_cast<uint8_t>(s[j]) : uint8_t{0}; };
  const uint8_t first = at(i);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xc2 && first < 0xe0   ? 2
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  for (size_t j = 1; j < length; ++j)
    if (at(i + j) >> 6 != 2) return 0;
  const uint8_t second = at(i + 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90),
             outside = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
  return overlong || outside ? 0 : length;
}

/// A message may quote a file's bytes: control characters, which terminals obey, and what is no UTF-8 become \xNN.
static std::string printable(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size();) {
    const size_t length = utf8_length(s, i);
    const auto byte = static_cast<uint8_t>(s[i]);
    const bool is_control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f ||
                            (length == 2 && byte == 0xc2 && static_cast<uint8_t>(s[i + 1]) < 0xa0);
    const size_t taken = std::max<size_t>(length, 1);
    if (length > 0 && !is_control) {
      out += s.substr(i, taken);
    } else {
      for (size_t j = i; j < i + taken; ++j) {
        constexpr char kDigits[] = "0123456789abcdef";
        const auto b = static_cast<uint8_t>(s[j]);
        out += {'\\', 'x', kDigits[b >> 4], kDigits[b & 15]};
      }
    }
    i += taken;
  }
  return out;
}

std::string Reason::render() const {
  std::string out = "error: " + what;
  if (!where.empty()) out += "\n  " + where;
  if (!program.empty()) out += "\n" + indented(program, "  |    ");
  if (!needs.empty()) out += "\n  needs: " + needs;
  if (!hint.empty()) out += "\n  hint:  " + hint;
  return printable(out);
}

void fail(Reason reason) { throw Error(std::move(reason)); }
void internal_error(std::string message) { throw InternalError(std::move(message)); }

}  // namespace sator
