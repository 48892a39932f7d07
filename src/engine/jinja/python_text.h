// Texts as Python's str sees them: kinds of characters, cases, lines and numbers.
// Source: the Python documentation, "Text Sequence Type"; Unicode, "DerivedCoreProperties" and "SpecialCasing".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sator::jinja {

/// Strings are sequences of code points.
std::u32string code_points(std::string_view s);
std::string utf8(std::u32string_view s);

inline bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

// str.isspace() and so on of one character.
bool is_blank(char32_t c);
bool is_letter(char32_t c);   // isalpha
bool is_decimal(char32_t c);  // isdecimal
bool is_digit(char32_t c);    // isdigit: also ² and ①
bool is_numeral(char32_t c);  // isnumeric: also ½ and 三
bool is_printable(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);  // a capital and a small letter in one: ǅ

// Cases: full ones, so ﬁ in capitals is FI; a sigma that ends a word becomes ς.
std::string lower(std::string_view s);
std::string upper(std::string_view s);
std::string casefolded(std::string_view s);
/// The first character as a title begins, the others small.
std::string capitalized(std::string_view s);
/// The first character of each run of cased characters as a title begins, the others small.
std::string titled(std::string_view s);
std::string swapped_case(std::string_view s);

/// str.splitlines(keep_ends).
std::vector<std::string> lines_of(std::string_view s, bool keep_ends);

/// A number as int() and float() read it: decimal digits of any script, `_` between digits, white space around.
struct Digits {
  std::string ascii;  ///< an optional '-', then what from_chars reads
  int base = 10;
};
/// Nothing where int(s, base) fails.
std::optional<Digits> integer_digits(std::string_view s, int64_t base);
std::optional<double> float_of(std::string_view s);

}  // namespace sator::jinja
