#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sator {

/// A line of a text that a user gave us, and how to complain about a place in it.
struct TextLine {
  std::string_view content;  // without its line end
  std::string_view file;     // what messages call the text
  int64_t number = 1;
  /// Throws an Error that shows the line with `column` (bytes, from 0) underlined.
  [[noreturn]] void fail(size_t column, std::string what, std::string needs, std::string hint) const;
};

/// The lines of a text; line ends are "\n" or "\r\n". Both views outlive the result.
std::vector<TextLine> text_lines(std::string_view text, std::string_view file);

/// A piece of the user's text as messages quote it: printable ASCII, at most 40 characters.
std::string shown(std::string_view piece);

}  // namespace sator
