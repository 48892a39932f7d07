#include "engine/jinja/python_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/text.h"
#include "engine/jinja/builtins.h"
#include "engine/tokenizer/unicode.h"

namespace sator::jinja {

namespace {

struct CharRange {
  char32_t first, last;
};
template <size_t n>
bool in(const CharRange (&ranges)[n], char32_t c) {
  return std::ranges::any_of(ranges, [c](const CharRange& r) { return c >= r.first && c <= r.last; });
}

// Other_Lowercase and Other_Uppercase.
constexpr CharRange kOtherLower[] = {
    {0xaa, 0xaa},     {0xba, 0xba},     {0x2b0, 0x2b8},     {0x2c0, 0x2c1},     {0x2e0, 0x2e4},     {0x345, 0x345},
    {0x37a, 0x37a},   {0x1d2c, 0x1d6a}, {0x1d78, 0x1d78},   {0x1d9b, 0x1dbf},   {0x2071, 0x2071},   {0x207f, 0x207f},
    {0x2090, 0x209c}, {0x2170, 0x217f}, {0x24d0, 0x24e9},   {0x2c7c, 0x2c7d},   {0xa69c, 0xa69d},   {0xa770, 0xa770},
    {0xa7f8, 0xa7f9}, {0xab5c, 0xab5f}, {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba}};
constexpr CharRange kOtherUpper[] = {
    {0x2160, 0x216f}, {0x24b6, 0x24cf}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
// Numeric_Type Digit: superscripts, circled digits, ...
constexpr CharRange kOtherDigits[] = {{0xb2, 0xb3},       {0xb9, 0xb9},       {0x1369, 0x1371},   {0x19da, 0x19da},
                                      {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
                                      {0x2474, 0x247c},   {0x2488, 0x2490},   {0x24ea, 0x24ea},   {0x24f5, 0x24fd},
                                      {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},   {0x278a, 0x2792},
                                      {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a}};
// Numeric_Type Numeric that are letters: ideographs.
constexpr std::u32string_view kIdeographicNumbers =
    U"㐅㒃㠪㭍一七万三九二五亖亿什仟仨伍佰億兆兩八六十千卄卅卌叁参參叄四壱壹幺廾廿弌弍弎弐拾捌柒漆玖百肆萬貮貳贰阡陆陌"
    U"陸零𠀁𠁤𠃢𠄡𠤪𠦃𠦌𠦜𠫪𠫽𠬙𢎐𢦘𣬛𦉭\uf96b\uf973\uf978\uf9b2\uf9d1\uf9d3\uf9fd\U0002f890";
// Case_Ignorable that are neither marks, formats nor modifiers: Word_Break MidLetter, MidNumLet and Single_Quote.
constexpr std::u32string_view kInsideWords =
    U"'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a";

utf8proc_category_t general_category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }
char32_t to_lower(char32_t c) { return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))); }
char32_t to_upper(char32_t c) { return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))); }
char32_t to_title(char32_t c) { return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))); }

bool is_cased(char32_t c) { return is_lower(c) || is_upper(c) || is_title(c); }
bool is_case_ignorable(char32_t c) {
  switch (general_category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return kInsideWords.find(c) != kInsideWords.npos;
  }
}

std::u32string folded(char32_t c) {
  utf8proc_int32_t parts[8];
  int boundary = 0;
  const auto n =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, std::ssize(parts), UTF8PROC_CASEFOLD, &boundary);
  return {parts, parts + n};
}

/// The small letters of a character that has no capital of its own (ﬁ: fi, ᾳ: αι); empty of all others.
std::u32string expansion(char32_t c) {
  if (c < 0x80 || is_upper(c)) return {};
  std::u32string out = folded(c);
  return out.size() > 1 ? out : U"";
}

std::u32string full_lower(const std::u32string& s, size_t i) {
  constexpr char32_t kSigma = U'Σ', kFinalSigma = U'ς';
  if (s[i] == U'İ') return U"i\u0307";
  if (s[i] != kSigma) return {to_lower(s[i])};
  size_t before = i, behind = i + 1;
  while (before > 0 && is_case_ignorable(s[before - 1])) --before;
  while (behind < s.size() && is_case_ignorable(s[behind])) ++behind;
  const bool begins = before == 0 || !is_cased(s[before - 1]), ends = behind == s.size() || !is_cased(s[behind]);
  return {!begins && ends ? kFinalSigma : to_lower(kSigma)};
}
std::u32string full_upper(char32_t c) {
  std::u32string out = expansion(c);
  if (out.empty()) return {to_upper(c)};
  std::ranges::transform(out, out.begin(), to_upper);
  return out;
}
std::u32string full_title(char32_t c) {
  std::u32string out = expansion(c);
  if (out.empty() || is_title(to_title(c))) return {to_title(c)};
  // The first of its letters that has a capital; an iota stays below the one before it.
  const auto first = std::ranges::find_if(out, [](char32_t x) { return to_upper(x) != x; });
  if (first != out.end()) *first = to_upper(*first);
  for (auto at = first == out.end() ? first : first + 1; at != out.end(); ++at)
    if (*at == U'ι') *at = U'\u0345';
  return out;
}

/// Each character by a function of (all, index).
template <class Each>
std::string mapped(std::string_view s, Each each) {
  const std::u32string all = code_points(s);
  std::u32string out;
  for (size_t i = 0; i < all.size(); ++i) out += each(all, i);
  return utf8(out);
}

bool ends_line(char32_t c) {
  return (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

/// The value of a decimal digit: those of a script follow each other, ten by ten.
int decimal_value(char32_t c) {
  char32_t first = c;
  while (is_decimal(first - 1)) --first;
  return static_cast<int>((c - first) % 10);
}
/// White space around left out, decimal digits as those of ASCII.
std::string plain_number(std::string_view s) {
  std::u32string all = code_points(s);
  while (!all.empty() && is_blank(all.back())) all.pop_back();
  all.erase(0, static_cast<size_t>(std::ranges::find_if_not(all, is_blank) - all.begin()));
  for (char32_t& c : all)
    if (c >= 0x80 && is_decimal(c)) c = static_cast<char32_t>('0' + decimal_value(c));
  return utf8(all);
}
/// Without the `_` that stand between two digits; nothing if there is another one.
template <class IsDigit>
std::optional<std::string> without_underscores(std::string_view s, IsDigit digit) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '_') {
      out += s[i];
      continue;
    }
    if (i == 0 || i + 1 == s.size() || !digit(s[i - 1]) || !digit(s[i + 1])) return {};
  }
  return out;
}
/// Takes a sign away; whether it is a minus.
bool take_sign(std::string& s) {
  const bool minus = s.starts_with('-');
  if (minus || s.starts_with('+')) s.erase(0, 1);
  return minus;
}

}  // namespace

std::u32string code_points(std::string_view s) {
  std::u32string out;
  for (size_t i = 0; i < s.size();) out += next_char(s, i);
  return out;
}
std::string utf8(std::u32string_view s) {
  std::string out;
  for (char32_t c : s) append_char(out, c);
  return out;
}

bool is_blank(char32_t c) { return is_white_space(c) || (c >= 0x1c && c <= 0x1f); }
bool is_letter(char32_t c) {
  const auto k = general_category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}
bool is_decimal(char32_t c) { return general_category(c) == UTF8PROC_CATEGORY_ND; }
bool is_digit(char32_t c) { return is_decimal(c) || in(kOtherDigits, c); }
bool is_numeral(char32_t c) { return is_numeric(c) || kIdeographicNumbers.find(c) != kIdeographicNumbers.npos; }
bool is_printable(char32_t c) {
  if (c == ' ') return true;
  const auto k = general_category(c);
  return k != UTF8PROC_CATEGORY_CN && !(k >= UTF8PROC_CATEGORY_ZS && k <= UTF8PROC_CATEGORY_CO);
}
bool is_lower(char32_t c) { return general_category(c) == UTF8PROC_CATEGORY_LL || in(kOtherLower, c); }
bool is_upper(char32_t c) { return general_category(c) == UTF8PROC_CATEGORY_LU || in(kOtherUpper, c); }
bool is_title(char32_t c) { return general_category(c) == UTF8PROC_CATEGORY_LT; }

std::string lower(std::string_view s) { return mapped(s, full_lower); }
std::string upper(std::string_view s) {
  return mapped(s, [](const std::u32string& all, size_t i) { return full_upper(all[i]); });
}
std::string casefolded(std::string_view s) {
  return mapped(s, [](const std::u32string& all, size_t i) { return folded(all[i]); });
}
std::string capitalized(std::string_view s) {
  return mapped(s,
                [](const std::u32string& all, size_t i) { return i == 0 ? full_title(all[i]) : full_lower(all, i); });
}
std::string titled(std::string_view s) {
  return mapped(s, [](const std::u32string& all, size_t i) {
    return i == 0 || !is_cased(all[i - 1]) ? full_title(all[i]) : full_lower(all, i);
  });
}
std::string swapped_case(std::string_view s) {
  return mapped(s, [](const std::u32string& all, size_t i) {
    return is_upper(all[i]) ? full_lower(all, i) : is_lower(all[i]) ? full_upper(all[i]) : std::u32string{all[i]};
  });
}

std::vector<std::string> lines_of(std::string_view s, bool keep_ends) {
  const std::u32string all = code_points(s);
  std::vector<std::string> out;
  for (size_t from = 0; from < all.size();) {
    size_t end = from;
    while (end < all.size() && !ends_line(all[end])) ++end;
    const size_t next = end == all.size() ? end : end + (all.compare(end, 2, U"\r\n") == 0 ? 2 : 1);
    out.push_back(utf8(std::u32string_view(all).substr(from, (keep_ends ? next : end) - from)));
    require_items(out.size());
    from = next;
  }
  return out;
}

std::optional<Digits> integer_digits(std::string_view s, int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return {};
  std::string digits = plain_number(s);
  const bool minus = take_sign(digits);
  const std::string prefix = lower_case(digits.substr(0, 2));
  const int marked = prefix == "0x" ? 16 : prefix == "0o" ? 8 : prefix == "0b" ? 2 : 0;
  if (marked != 0 && (base == 0 || base == marked)) {
    base = marked;
    digits.erase(0, 2);
    if (digits.starts_with('_')) digits.erase(0, 1);
  } else if (base == 0) {
    base = 10;
    if (digits.starts_with('0') && digits.find_first_not_of("0_") != digits.npos) return {};
  }
  auto digit = [base](char c) {
    const char letter = static_cast<char>(c | 0x20);
    const int value = is_ascii_digit(c) ? c - '0' : letter >= 'a' && letter <= 'z' ? letter - 'a' + 10 : 99;
    return value < base;
  };
  const auto plain = without_underscores(digits, digit);
  if (!plain || plain->empty() || !std::ranges::all_of(*plain, digit)) return {};
  return Digits{(minus ? "-" : "") + *plain, static_cast<int>(base)};
}

std::optional<double> float_of(std::string_view s) {
  auto plain = without_underscores(plain_number(s), is_ascii_digit);
  if (!plain) return {};
  const bool minus = take_sign(*plain);
  double out = 0;
  const char *first = plain->data(), *last = first + plain->size();
  const auto end = std::from_chars(first, last, out);
  if (plain->starts_with('-') || end.ptr != last || end.ec == std::errc::invalid_argument || last[-1] == ')') return {};
  if (end.ec == std::errc::result_out_of_range) out = std::strtod(first, nullptr);  // 0 or infinity
  return minus ? -out : out;
}

}  // namespace sator::jinja
