// Oniguruma's Ruby syntax in PCRE2's. Source: Oniguruma's doc/RE and doc/UNICODE_PROPERTIES, PCRE2's
// pcre2pattern(3).
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/error.h"
#include "engine/tokenizer/regex.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

namespace {

// Sets as members of a character class.
constexpr std::string_view kSpace = "\\p{White_Space}", kNotSpace = "\\P{White_Space}";
// By itself \w also matches Latin-1's superscript digits and fractions; in a class, and as [:word:], it does
// not.
constexpr std::string_view kPosixWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
constexpr std::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\xB2\\xB3\\xB9\\xBC-\\xBE";
constexpr std::string_view kRustWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}";
constexpr std::string_view kHex = "0-9A-Fa-f";
constexpr std::string_view kAnyChar = "[\\x{0}-\\x{10FFFF}]";

/// POSIX brackets and properties of the same name, as members of a class.
struct NamedSet {
  std::string_view name, bracket, property;
};
const NamedSet kNamedSets[] = {
    {"alpha", "\\p{Alphabetic}", "\\p{Alphabetic}"},
    {"alnum", "\\p{Alphabetic}\\p{Nd}", "\\p{Alphabetic}\\p{Nd}"},
    {"ascii", "\\x{0}-\\x{7F}", "\\x{0}-\\x{7F}"},
    {"blank", "\\p{Zs}\\t", "\\p{Zs}\\t"},
    {"cntrl", "\\p{Cc}", "\\p{Cc}"},
    {"digit", "\\p{Nd}", "\\p{Nd}"},
    {"lower", "\\p{Lowercase}", "\\p{Lowercase}"},
    {"punct", "\\p{P}\\p{S}", "\\p{P}"},
    {"space", kSpace, kSpace},
    {"upper", "\\p{Uppercase}", "\\p{Uppercase}"},
    {"word", kPosixWord, kWord},
    {"xdigit", kHex, kHex},
};

bool compiles(const std::string& pcre) {
  int code = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* compiled = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(pcre.data()), pcre.size(), PCRE2_UTF | PCRE2_UCP, &code, &offset, nullptr);
  pcre2_code_free(compiled);
  return compiled != nullptr;
}

std::string code_point(char32_t c) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string hex;
  do hex.insert(hex.begin(), kDigits[c & 15]);
  while (c >>= 4);
  return text("\\x{", hex, "}");
}

class Translator {
 public:
  explicit Translator(std::string_view pattern, bool rust) : in_(pattern), rust_(rust) {}

  std::string run() {
    while (i_ < in_.size()) step();
    if (!groups_.empty()) give_up("a group is not closed");
    return std::move(out_);
  }

 private:
  /// A set that matches one character: what stands between brackets, or, where that does not suffice,
  /// alternatives.
  struct Set {
    std::string members;
    std::vector<std::string> others;  // expressions that match one character each

    bool is_plain() const { return others.empty(); }
    std::string expression() const {
      std::string brackets = members.empty() ? "" : text("[", members, "]");
      if (others.empty()) return members.empty() ? "(?!)" : brackets;
      if (brackets.empty() && others.size() == 1) return others[0];
      std::vector<std::string> all = others;
      if (!brackets.empty()) all.insert(all.begin(), brackets);
      return text("(?:", join(all, "|"), ")");
    }
  };

  [[noreturn]] void give_up(std::string_view why) const {
    fail({.what =
              text("the regular expression ", string_literal(in_), " cannot be translated: ", why, " (byte ", i_, ")"),
          .needs = text(rust_ ? "Rust's" : "Oniguruma", " syntax without that construct")});
  }

  char peek(size_t ahead = 0) const { return i_ + ahead < in_.size() ? in_[i_ + ahead] : '\0'; }
  bool accept(std::string_view s) {
    if (!in_.substr(i_).starts_with(s)) return false;
    i_ += s.size();
    return true;
  }
  /// The character at i_, as UTF-8; i_ moves past it.
  std::string take_char() {
    if (i_ >= in_.size()) give_up("it ends too early");
    size_t n = std::min(char_bytes(in_[i_]), in_.size() - i_);
    i_ += n;
    return std::string(in_.substr(i_ - n, n));
  }

  std::string_view word() const { return rust_ ? kRustWord : kWord; }
  void begin_atom() { atom_ = out_.size(); }

  void step() {
    char c = peek();
    if (c == '\\') return escape();
    if (c == '[') {
      begin_atom();
      ++i_;
      out_ += bracket().expression();
      return;
    }
    if (c == '(') return open_group();
    if (c == ')') {
      if (groups_.empty()) give_up("a ')' has no '('");
      atom_ = groups_.back();
      groups_.pop_back();
      out_ += ')';
      ++i_;
      return;
    }
    if (c == '{' && interval()) return;
    if (c == '*' || c == '+' || c == '?') {
      out_ += c;
      ++i_;
      if (peek() == '?' || peek() == '+') out_ += in_[i_++];  // reluctant, possessive: the same in both
      return;
    }
    if (c == '|' || c == '^' || c == '$') {
      out_ += c;
      ++i_;
      return;
    }
    begin_atom();
    if (c == '{' || c == '}' || c == ']') out_ += '\\';
    out_ += take_char();
  }

  /// {n}, {n,}, {,m}, {n,m}; anything else in braces is text.
  bool interval() {
    size_t end = in_.find('}', i_);
    if (end == std::string_view::npos) return false;
    std::string_view body = in_.substr(i_ + 1, end - i_ - 1);
    size_t comma = body.find(',');
    std::string_view low = body.substr(0, comma), high = comma == std::string_view::npos ? low : body.substr(comma + 1);
    auto is_number = [](std::string_view s) { return s.find_first_not_of("0123456789") == std::string_view::npos; };
    if (!is_number(low) || !is_number(high) || (low.empty() && high.empty())) return false;
    bool fixed = comma == std::string_view::npos;
    out_ += text("{", low.empty() ? "0" : low, fixed ? "" : ",", fixed ? "" : high, "}");
    i_ = end + 1;
    // A '+' repeats the repetition; so does the '?' after a fixed count. (In Rust's syntax neither does.)
    if (rust_ && (peek() == '+' || peek() == '?')) {
      out_ += in_[i_++];
    } else if (peek() == '+' || (fixed && peek() == '?')) {
      out_.insert(atom_, "(?:");
      out_ += ')';
      out_ += in_[i_++];
    } else if (peek() == '?') {
      out_ += in_[i_++];
    }
    return true;
  }

  void open_group() {
    groups_.push_back(out_.size());
    ++i_;
    if (peek() != '?') {
      out_ += '(';
      return;
    }
    for (std::string_view kind : {"?:", "?=", "?!", "?<=", "?<!", "?>"})
      if (accept(kind)) {
        out_ += text("(", kind);
        return;
      }
    if (peek(1) == '<' || peek(1) == '\'') {  // named
      out_ += '(';
      while (i_ < in_.size() && peek() != '>' && !(peek() == '\'' && in_[i_ - 1] != '?')) out_ += in_[i_++];
      out_ += take_char();
      return;
    }
    if (accept("?#")) {
      size_t end = in_.find(')', i_);
      if (end == std::string_view::npos) give_up("a comment is not closed");
      i_ = end + 1;
      groups_.pop_back();
      return;
    }
    ++i_;
    std::string flags;
    while (i_ < in_.size() && peek() != ':' && peek() != ')') {
      char flag = in_[i_++];
      if (flag == 'm' && !rust_)
        flags += 's';
      else if (flag == 'i' || flag == '-')
        flags += flag;
      else
        give_up(text("option '", flag, "' of a group"));
    }
    bool at_begin = groups_.back() == 0 || out_.ends_with('(') || out_.ends_with("(?:") || out_.ends_with('|');
    out_ += text("(?", flags);
    if (peek() == ')' && !at_begin) give_up("options that change in the middle of a group");
    if (accept(":")) out_ += ':';
  }

  void escape() {
    begin_atom();
    ++i_;
    char c = peek();
    switch (c) {
      case 's': ++i_, out_ += kSpace; return;
      case 'S': ++i_, out_ += kNotSpace; return;
      case 'w': ++i_, out_ += text("[", word(), "]"); return;
      case 'W': ++i_, out_ += text("[^", word(), "]"); return;
      case 'h': ++i_, out_ += text("[", kHex, "]"); return;
      case 'H': ++i_, out_ += text("[^", kHex, "]"); return;
      case 'O': ++i_, out_ += kAnyChar; return;
      case 'b':
        ++i_, out_ += text("(?:(?<=[", word(), "])(?![", word(), "])|(?<![", word(), "])(?=[", word(), "]))");
        return;
      case 'B':
        ++i_, out_ += text("(?:(?<=[", word(), "])(?=[", word(), "])|(?<![", word(), "])(?![", word(), "]))");
        return;
      case 'R':
      case 'X':
      case 'N':
      case 'K':
      case 'A':
      case 'z':
      case 'Z':
      case 'G': ++i_, out_ += text("\\", c); return;
      case 'k':
      case 'g': {
        size_t end = in_.find('>', i_);
        if (peek(1) != '<' || end == std::string_view::npos) give_up("a reference without <name>");
        out_ += text("\\", in_.substr(i_, end + 1 - i_));
        i_ = end + 1;
        return;
      }
      case 'y':
      case 'Y': give_up("text segment boundaries");
      default: break;
    }
    if (c >= '1' && c <= '9') {
      out_ += text("\\", c);
      ++i_;
      return;
    }
    Set set;
    set_escape(set);
    out_ += set.is_plain() && set.members.starts_with('\\') && single_escape_ ? set.members : set.expression();
  }

  /// An escape that is a character or a set, at the letter after the backslash: added to `set`.
  void set_escape(Set& set) {
    single_escape_ = true;
    std::string c = take_char();
    switch (c[0]) {
      case 's': set.members += kSpace; return;
      case 'S': set.members += kNotSpace; return;
      case 'd': set.members += "\\p{Nd}"; return;
      case 'D': set.members += "\\P{Nd}"; return;
      case 'w': set.members += rust_ ? kRustWord : kPosixWord, single_escape_ = false; return;
      case 'W': set.others.push_back(text("[^", rust_ ? kRustWord : kPosixWord, "]")); return;
      case 'h': set.members += kHex, single_escape_ = false; return;
      case 'H': set.others.push_back(text("[^", kHex, "]")); return;
      case 'p':
      case 'P': return property(set, c[0] == 'P');
      case 'n': set.members += "\\n"; return;
      case 't': set.members += "\\t"; return;
      case 'r': set.members += "\\r"; return;
      case 'f': set.members += "\\f"; return;
      case 'v': set.members += "\\x{B}"; return;
      case 'a': set.members += "\\x{7}"; return;
      case 'e': set.members += "\\x{1B}"; return;
      case 'b': set.members += "\\x{8}"; return;  // reached in a class only
      case 'u': set.members += code_point(hex_digits(4, 4)); return;
      case 'x': {
        if (accept("{")) {
          char32_t value = hex_digits(1, 8);
          if (!accept("}")) give_up("\\x{...} of several characters");
          set.members += code_point(value);
          return;
        }
        char32_t value = hex_digits(1, 2);
        if (value > 0x7f) give_up("\\xHH of a byte beyond ASCII");
        set.members += code_point(value);
        return;
      }
      case '0': {
        char32_t value = 0;
        for (int k = 0; k < 2 && peek() >= '0' && peek() <= '7'; ++k)
          value = value * 8 + static_cast<char32_t>(in_[i_++] - '0');
        set.members += code_point(value);
        return;
      }
      case 'c':
      case 'C':
      case 'M': give_up("control and meta escapes");
      default: break;
    }
    bool plain_letter =
        c.size() > 1 || (c[0] >= '0' && c[0] <= '9') || (c[0] >= 'A' && c[0] <= 'Z') || (c[0] >= 'a' && c[0] <= 'z');
    if (!plain_letter) {
      set.members += '\\';
      set.members += c;
    } else {
      size_t at = 0;
      set.members += code_point(next_char(c, at));
    }
  }

  char32_t hex_digits(int least, int most) {
    char32_t value = 0;
    int n = 0;
    for (; n < most && std::isxdigit(static_cast<unsigned char>(peek())); ++n) {
      int digit = std::tolower(static_cast<unsigned char>(in_[i_++]));
      value = value * 16 + static_cast<char32_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    if (n < least || value > 0x10ffff) give_up("a code point is malformed");
    return value;
  }

  void property(Set& set, bool negated) {
    size_t end = in_.find('}', i_);
    if (!accept("{") || end == std::string_view::npos) give_up("\\p without {name}");
    if (accept("^")) negated = !negated;
    std::string name(in_.substr(i_, end - i_)), plain;
    i_ = end + 1;
    for (char c : name)
      if (c != '_' && c != '-' && c != ' ') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (plain == "any") {
      if (!negated) set.members += "\\x{0}-\\x{10FFFF}";
      single_escape_ = false;
      return;
    }
    for (const NamedSet& row : kNamedSets)
      if (row.name == plain) return add_named(set, row.property, negated);
    std::string script = text("\\p{sc:", name, "}");
    std::string letter = negated ? "\\P{" : "\\p{";
    if (compiles(script))
      set.members += text(letter, "sc:", name, "}");
    else if (compiles(text("\\p{", name, "}")))
      set.members += text(letter, name, "}");
    else
      give_up(text("the property ", name));
  }

  void add_named(Set& set, std::string_view members, bool negated) {
    single_escape_ = false;
    if (negated)
      set.others.push_back(text("[^", members, "]"));
    else
      set.members += members;
  }

  /// A class, behind its '[': unions, nested classes, and && between them.
  Set bracket() {
    if (++depth_ > 100) give_up("classes nest too deep");
    bool negated = accept("^");
    std::vector<Set> operands(1);
    for (bool first = true;; first = false) {
      Set& set = operands.back();
      if (i_ >= in_.size()) give_up("a class is not closed");
      if (!first && accept("]")) break;
      if (accept("&&")) {
        operands.emplace_back();
      } else if (accept("[:")) {
        bool not_in = accept("^");
        size_t end = in_.find(":]", i_);
        if (end == std::string_view::npos) give_up("a POSIX bracket is not closed");
        std::string_view name = in_.substr(i_, end - i_);
        i_ = end + 2;
        const NamedSet* found = nullptr;
        for (const NamedSet& row : kNamedSets)
          if (row.name == name) found = &row;
        if (!found) give_up(text("the POSIX bracket ", name));
        add_named(set, found->bracket, not_in);
      } else if (accept("[")) {
        Set inner = bracket();
        set.members += inner.members;
        set.others.insert(set.others.end(), inner.others.begin(), inner.others.end());
      } else if (accept("\\")) {
        set_escape(set);
      } else {
        std::string c = take_char();
        if (c == "[" || c == "]" || c == "^" || c == "\\") set.members += '\\';
        set.members += c;
      }
    }
    --depth_;
    if (operands.size() == 1 && operands[0].is_plain()) return negated ? negation(operands[0]) : operands[0];
    Set result;
    if (operands.size() == 1) {
      result = operands[0];
    } else {
      std::string all = "(?:";
      for (size_t k = 0; k + 1 < operands.size(); ++k) all += text("(?=", operands[k].expression(), ")");
      result.others.push_back(text(all, operands.back().expression(), ")"));
    }
    return negated ? negation(result) : result;
  }

  static Set negation(const Set& set) {
    Set result;
    if (set.is_plain())
      result.others.push_back(set.members.empty() ? std::string(kAnyChar) : text("[^", set.members, "]"));
    else
      result.others.push_back(text("(?:(?!", set.expression(), ")", kAnyChar, ")"));
    return result;
  }

  std::string_view in_;
  bool rust_;
  size_t i_ = 0;
  std::string out_;
  size_t atom_ = 0;             // where the last atom begins in out_
  std::vector<size_t> groups_;  // where the open groups begin in out_
  int depth_ = 0;
  bool single_escape_ = false;  // the last set_escape wrote one escape that may stand outside brackets
};

}  // namespace

std::string pcre_from_oniguruma(std::string_view pattern) { return Translator(pattern, false).run(); }
std::string pcre_from_rust(std::string_view pattern) { return Translator(pattern, true).run(); }

}  // namespace sator
