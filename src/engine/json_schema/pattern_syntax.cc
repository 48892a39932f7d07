#include "engine/json_schema/pattern_syntax.h"

#include <utf8proc.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "engine/tokenizer/unicode.h"

namespace sator::json_schema {

namespace {

constexpr char32_t kLastChar = 0x10ffff;
constexpr int64_t kMostRepeats = 1000;
constexpr int kMostNesting = 200;

const CharRanges kDigitChars = {{'0', '9'}};
const CharRanges kWordChars = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
// ECMA-262: WhiteSpace and LineTerminator.
const CharRanges kSpaceChars = {{0x9, 0xd},
                                {0x20, 0x20},
                                {0xa0, 0xa0},
                                {0x1680, 0x1680},
                                {0x2000, 0x200a},
                                {0x2028, 0x2029},
                                {0x202f, 0x202f},
                                {0x205f, 0x205f},
                                {0x3000, 0x3000},
                                {0xfeff, 0xfeff}};
const CharRanges kLineEnds = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

/// The names of general categories that \p{...} may give: the letters with which these categories begin, and in words.
/// Source: ECMA-262, "Value aliases and canonical values for the Unicode property General_Category".
struct Property {
  const char* category;
  const char* name;
};
constexpr Property kProperties[] = {{"L", "Letter"},
                                    {"Lu", "Uppercase_Letter"},
                                    {"Ll", "Lowercase_Letter"},
                                    {"Lt", "Titlecase_Letter"},
                                    {"Lm", "Modifier_Letter"},
                                    {"Lo", "Other_Letter"},
                                    {"M", "Mark"},
                                    {"M", "Combining_Mark"},
                                    {"Mn", "Nonspacing_Mark"},
                                    {"Mc", "Spacing_Mark"},
                                    {"Me", "Enclosing_Mark"},
                                    {"N", "Number"},
                                    {"Nd", "Decimal_Number"},
                                    {"Nd", "digit"},
                                    {"Nl", "Letter_Number"},
                                    {"No", "Other_Number"},
                                    {"P", "Punctuation"},
                                    {"P", "punct"},
                                    {"Pc", "Connector_Punctuation"},
                                    {"Pd", "Dash_Punctuation"},
                                    {"Ps", "Open_Punctuation"},
                                    {"Pe", "Close_Punctuation"},
                                    {"Pi", "Initial_Punctuation"},
                                    {"Pf", "Final_Punctuation"},
                                    {"Po", "Other_Punctuation"},
                                    {"S", "Symbol"},
                                    {"Sm", "Math_Symbol"},
                                    {"Sc", "Currency_Symbol"},
                                    {"Sk", "Modifier_Symbol"},
                                    {"So", "Other_Symbol"},
                                    {"Z", "Separator"},
                                    {"Zs", "Space_Separator"},
                                    {"Zl", "Line_Separator"},
                                    {"Zp", "Paragraph_Separator"},
                                    {"C", "Other"},
                                    {"Cc", "Control"},
                                    {"Cc", "cntrl"},
                                    {"Cf", "Format"},
                                    {"Co", "Private_Use"},
                                    {"Cn", "Unassigned"}};

CharRanges chars_of_category(std::string_view category) {
  CharRanges out;
  for (char32_t c = 0; c <= kLastChar; ++c) {
    if (c >= 0xd800 && c <= 0xdfff) continue;
    if (!std::string_view(utf8proc_category_string(static_cast<utf8proc_int32_t>(c))).starts_with(category)) continue;
    if (!out.empty() && out.back().second + 1 == c)
      out.back().second = c;
    else
      out.emplace_back(c, c);
  }
  return out;
}

class PatternParser {
 public:
  PatternParser(const std::string& pattern, const std::string& where) : where_(where), pattern_(pattern) {
    for (size_t i = 0; i < pattern.size();) chars_.push_back(next_char(pattern, i));
  }

  Regular all() {
    Regular r = choice(0);
    if (at_ < chars_.size()) refuse("has a `)` without its `(`");
    return r;
  }

 private:
  [[noreturn]] void refuse(const std::string& what,
                           const std::string& needs =
                               "a regular expression of ECMA-262 whose language is regular: no "
                               "lookaround, no back references, no \\b",
                           const std::string& hint = "") const {
    fail({.what = text(where_, ": the pattern ", string_literal(pattern_), " ", what, ", at character ", at_ + 1),
          .needs = needs,
          .hint = hint});
  }
  bool more() const { return at_ < chars_.size(); }
  bool is(char32_t c) const { return more() && chars_[at_] == c; }
  bool take(char32_t c) {
    if (!is(c)) return false;
    ++at_;
    return true;
  }
  char32_t any() {
    if (!more()) refuse("ends early");
    return chars_[at_++];
  }

  Regular choice(int depth) {
    if (depth > kMostNesting) refuse(text("nests deeper than ", kMostNesting, " groups"), "fewer groups in each other");
    Regular all{.kind = Regular::Kind::choice};
    do all.parts.push_back(sequence(depth));
    while (take('|'));
    return all.parts.size() == 1 ? std::move(all.parts[0]) : all;
  }

  Regular sequence(int depth) {
    Regular all;
    while (more() && !is('|') && !is(')')) {
      Regular part = atom(depth);
      while (std::optional<std::pair<int64_t, int64_t>> count = repeats()) {
        if (part.kind == Regular::Kind::begin || part.kind == Regular::Kind::end) refuse("repeats an end");
        part = {
            .kind = Regular::Kind::repeat, .parts = {std::move(part)}, .least = count->first, .most = count->second};
        if (is('*') || is('+') || is('?')) refuse("repeats a repetition");
      }
      all.parts.push_back(std::move(part));
    }
    return all;
  }

  /// A count behind an atom, if there is one.
  std::optional<std::pair<int64_t, int64_t>> repeats() {
    std::pair<int64_t, int64_t> count;
    if (take('*'))
      count = {0, -1};
    else if (take('+'))
      count = {1, -1};
    else if (take('?'))
      count = {0, 1};
    else if (!is('{') || !read_braces(count))
      return {};
    take('?');  // as few as possible: the same language
    return count;
  }
  bool read_braces(std::pair<int64_t, int64_t>& count) {
    const size_t begin = at_++;
    auto number = [&]() -> std::optional<int64_t> {
      int64_t v = 0;
      const size_t first = at_;
      for (; more() && chars_[at_] >= '0' && chars_[at_] <= '9'; ++at_)
        v = std::min<int64_t>(v * 10 + static_cast<int64_t>(chars_[at_] - '0'), kMostRepeats + 1);
      return at_ > first ? std::optional(v) : std::nullopt;
    };
    const auto least = number();
    std::optional<int64_t> most = least;
    if (least && take(',')) most = is('}') ? std::optional<int64_t>(-1) : number();
    if (!least || !most || !take('}')) {  // braces that are no count stand for themselves
      at_ = begin;
      return false;
    }
    if (*most >= 0 && *most < *least) refuse("has a count from more to fewer");
    if (std::max(*least, *most) > kMostRepeats)
      refuse(text("counts beyond ", kMostRepeats),
             text("counts up to ", kMostRepeats),
             "write + or *, or minLength and maxLength instead of the count");
    count = {*least, *most};
    return true;
  }

  static Regular of(CharRanges chars) { return {.kind = Regular::Kind::chars, .chars = std::move(chars)}; }

  Regular atom(int depth) {
    const char32_t c = any();
    switch (c) {
      case '^': return {.kind = Regular::Kind::begin};
      case '$': return {.kind = Regular::Kind::end};
      case '.': return of(opposite_of(kLineEnds));
      case '[': return of(char_class());
      case '\\': return of(escape(false));
      case '*':
      case '+':
      case '?': --at_; refuse("repeats nothing");
      case '(': {
        if (take('?')) group_kind();
        Regular inner = choice(depth + 1);
        if (!take(')')) refuse("has a `(` without its `)`");
        return inner;
      }
      default: return of({{c, c}});
    }
  }
  /// Behind "(?": a group that is not captured, or has a name.
  void group_kind() {
    if (take(':')) return;
    if (take('<') && !is('=') && !is('!')) {
      while (!take('>')) any();
      return;
    }
    refuse("looks around, or sets flags",
           "(...), (?:...) or (?<name>...): no lookaround, no flags as in (?i:...)",
           "write both cases of a letter: [aA]");
  }

  CharRanges char_class() {
    const bool negative = take('^');
    CharRanges all;
    while (!take(']')) {
      const auto low = class_atom(all);
      if (!low) continue;
      if (is('-') && at_ + 1 < chars_.size() && chars_[at_ + 1] != ']') {
        ++at_;
        const auto high = class_atom(all);
        if (!high || *high < *low) refuse("has a range without an order");
        all.emplace_back(*low, *high);
      } else {
        all.emplace_back(*low, *low);
      }
    }
    all = normalized_ranges(std::move(all));
    return negative ? opposite_of(all) : all;
  }
  /// One character of a class; of an escape that stands for several these are added.
  std::optional<char32_t> class_atom(CharRanges& all) {
    const char32_t c = any();
    if (c != '\\') return c;
    const CharRanges meant = escape(true);
    if (meant.size() == 1 && meant[0].first == meant[0].second) return meant[0].first;
    all.insert(all.end(), meant.begin(), meant.end());
    return {};
  }

  CharRanges escape(bool in_class) {
    const char32_t c = any();
    auto one = [](char32_t v) { return CharRanges{{v, v}}; };
    switch (c) {
      case 'd': return kDigitChars;
      case 'D': return opposite_of(kDigitChars);
      case 'w': return kWordChars;
      case 'W': return opposite_of(kWordChars);
      case 's': return kSpaceChars;
      case 'S': return opposite_of(kSpaceChars);
      case 'n': return one('\n');
      case 'r': return one('\r');
      case 't': return one('\t');
      case 'f': return one('\f');
      case 'v': return one('\v');
      case '0': return one(0);
      case 'c': return one(any() % 32);
      case 'x': return one(hex(2));
      case 'u': return one(is('{') ? braced_hex() : utf16());
      case 'p': return property(false);
      case 'P': return property(true);
      case 'b':
        if (in_class) return one('\b');
        break;
      default: break;
    }
    const bool is_letter_or_digit = c < 128 && ((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'));
    if (is_letter_or_digit) {
      --at_;
      refuse(c >= '1' && c <= '9' ? "refers back to a group" : text("has the escape \\", static_cast<char>(c)));
    }
    return one(c);
  }
  char32_t hex(int digits) {
    char32_t v = 0;
    for (int i = 0; i < digits; ++i) v = v * 16 + hex_digit();
    return v;
  }
  char32_t hex_digit() {
    const char32_t c = any();
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'f') return (c | 32) - 'a' + 10;
    refuse("has an escape without its hexadecimal digits");
  }
  char32_t utf16() {
    const char32_t high = hex(4);
    if (high < 0xd800 || high > 0xdfff) return high;
    if (high > 0xdbff || !take('\\') || !take('u')) refuse("has half of a character");
    const char32_t low = hex(4);
    if (low < 0xdc00 || low > 0xdfff) refuse("has half of a character");
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
  }
  char32_t braced_hex() {
    ++at_;
    char32_t v = 0;
    while (!take('}'))
      if (v = v * 16 + hex_digit(); v > kLastChar) refuse("has a character beyond Unicode");
    if (v >= 0xd800 && v <= 0xdfff) refuse("has half of a character");
    return v;
  }
  CharRanges property(bool negative) {
    std::string name;
    if (!take('{')) refuse("has \\p without {...}");
    while (!take('}')) append_char(name, any());
    for (const char* prefix : {"General_Category=", "gc="})
      if (name.starts_with(prefix)) name.erase(0, std::string_view(prefix).size());
    for (const Property& p : kProperties)
      if (name == p.name || name == p.category) {
        const CharRanges chars = chars_of_category(p.category);
        return negative ? opposite_of(chars) : chars;
      }
    refuse(text("asks for the property ", name),
           "\\p{...} of a general category, as \\p{L} or \\p{Lowercase_Letter}; no scripts, no binary properties",
           "write the characters as ranges: [a-z\\u0370-\\u03ff]");
  }

  const std::string &where_, &pattern_;
  std::u32string chars_;
  size_t at_ = 0;
};

}  // namespace

CharRanges normalized_ranges(CharRanges ranges) {
  std::ranges::sort(ranges);
  CharRanges out;
  for (const auto& [low, high] : ranges)
    if (!out.empty() && low <= out.back().second + 1)
      out.back().second = std::max(out.back().second, high);
    else
      out.emplace_back(low, high);
  return out;
}

CharRanges opposite_of(const CharRanges& ranges) {
  CharRanges out, given = ranges;
  given.emplace_back(0xd800, 0xdfff);
  char32_t next = 0;
  for (const auto& [low, high] : normalized_ranges(std::move(given))) {
    if (low > next) out.emplace_back(next, low - 1);
    next = high + 1;
  }
  if (next <= kLastChar) out.emplace_back(next, kLastChar);
  return out;
}

Regular read_pattern_syntax(const std::string& pattern, const std::string& where) {
  return PatternParser(pattern, where).all();
}

}  // namespace sator::json_schema
