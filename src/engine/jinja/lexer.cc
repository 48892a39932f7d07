#include "engine/jinja/lexer.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "engine/jinja/python_text.h"
#include "engine/tokenizer/unicode.h"

namespace sator::jinja {

void fail_at(const std::string& name, Place place, std::string what, std::string needs, std::string hint) {
  fail({.what = text(name, " line ", place.line, ", column ", place.column, ": ", what),
        .needs = std::move(needs),
        .hint = std::move(hint)});
}

namespace {

/// The bytes of the white space that begins at byte i; 0 if another character does.
size_t blank_bytes(std::string_view s, size_t i) {
  size_t end = i;
  return i < s.size() && is_blank(next_char(s, end)) ? end - i : 0;
}
/// Without the white space at its end.
std::string_view without_blank_end(std::string_view s) {
  while (!s.empty()) {
    size_t last = s.size() - 1;
    while ((static_cast<unsigned char>(s[last]) & 0xc0) == 0x80) --last;
    if (blank_bytes(s, last) == 0) break;
    s = s.substr(0, last);
  }
  return s;
}
bool begins_name(char c) {
  const char lower = static_cast<char>(c | 0x20);
  return (lower >= 'a' && lower <= 'z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

/// Line ends as \n, the last one left out.
std::string normalized_lines(const std::string& source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    out += source[i] == '\r' ? '\n' : source[i];
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

constexpr std::string_view kMarks[] = {"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<",
                                       ">",  "=",  "(",  ")",  "[",  "]",  "{", "}", ",", ".", ":", "|"};

class Lexer {
 public:
  Lexer(const std::string& source, const std::string& name) : s_(normalized_lines(source)), name_(name) {}

  std::vector<Token> run() {
    while (at_ < s_.size()) {
      const size_t mark = next_mark();
      const char kind = mark == s_.npos ? '\0' : s_[mark + 1];
      const char sign = mark == s_.npos || mark + 2 >= s_.size() ? '\0' : s_[mark + 2];
      add_text(std::min(mark, s_.size()), kind, sign);
      if (mark == s_.npos) break;
      begun_ = place();
      move(2 + (sign == '-' || sign == '+' ? 1 : 0));
      if (kind == '#')
        comment();
      else if (kind == '{')
        inside(TokenKind::output_begin, TokenKind::output_end, '}');
      else if (!raw())
        inside(TokenKind::statement_begin, TokenKind::statement_end, '%');
    }
    out_.push_back({.kind = TokenKind::end, .place = place()});
    return std::move(out_);
  }

 private:
  size_t next_mark() const {
    for (size_t i = s_.find('{', at_); i != s_.npos && i + 1 < s_.size(); i = s_.find('{', i + 1))
      if (s_[i + 1] == '{' || s_[i + 1] == '%' || s_[i + 1] == '#') return i;
    return s_.npos;
  }

  Place place() const { return place_; }
  void move(size_t bytes) {
    for (const size_t end = std::min(at_ + bytes, s_.size()); at_ < end; ++at_) {
      if (s_[at_] == '\n')
        ++place_.line, place_.column = 1;
      else if ((static_cast<unsigned char>(s_[at_]) & 0xc0) != 0x80)
        ++place_.column;
    }
  }
  void skip_spaces() {
    while (const size_t bytes = blank_bytes(s_, at_)) move(bytes);
  }

  /// The text up to a mark of that kind and sign, without the white space that these leave out.
  void add_text(size_t end, char kind, char sign) {
    std::string_view piece(s_.data() + at_, end - at_);
    if (sign == '-') {
      piece = without_blank_end(piece);
    } else if (sign != '+' && (kind == '%' || kind == '#')) {
      const size_t line = piece.rfind('\n') + 1;  // 0 where the piece has no line's beginning of its own
      const bool begins_line = line > 0 || at_ == 0 || s_[at_ - 1] == '\n';
      if (begins_line && without_blank_end(piece.substr(line)).empty()) piece = piece.substr(0, line);
    }
    if (!piece.empty()) out_.push_back({.kind = TokenKind::text, .text = std::string(piece), .place = place()});
    move(end - at_);
  }

  /// Behind the end of a statement or comment: what its sign, '-', '+' or none, leaves out.
  void after(char sign) {
    if (sign == '-')
      skip_spaces();
    else if (sign != '+' && at_ < s_.size() && s_[at_] == '\n')
      move(1);
  }

  void comment() {
    const size_t end = s_.find("#}", at_);
    if (end == s_.npos) fail_at(name_, begun_, "the comment has no end", "#}");
    const char sign = end > at_ ? s_[end - 1] : '\0';
    move(end + 2 - at_);
    after(sign);
  }

  /// `{% raw %}` to `{% endraw %}`, whose text is none of ours; false where the statement is another.
  bool raw() {
    size_t i = at_;
    auto spaces = [&] {
      while (const size_t bytes = blank_bytes(s_, i)) i += bytes;
    };
    /// Behind "word %}", or npos; the sign before the end.
    auto behind = [&](std::string_view word, char& sign) {
      spaces();
      if (s_.compare(i, word.size(), word) != 0) return s_.npos;
      i += word.size();
      spaces();
      sign = i < s_.size() && (s_[i] == '-' || s_[i] == '+') ? s_[i++] : '\0';
      return s_.compare(i, 2, "%}") == 0 ? i + 2 : s_.npos;
    };
    char sign = '\0';
    const size_t from = behind("raw", sign);
    if (from == s_.npos) return false;
    move(from - at_);
    if (sign == '-') skip_spaces();
    for (size_t end = s_.find("{%", at_); end != s_.npos; end = s_.find("{%", end + 2)) {
      i = end + 2;
      const char open = i < s_.size() && (s_[i] == '-' || s_[i] == '+') ? s_[i++] : '\0';
      const size_t to = behind("endraw", sign);
      if (to == s_.npos) continue;
      add_text(end, '%', open);
      move(to - at_);
      after(sign);
      return true;
    }
    fail_at(name_, begun_, "raw text has no end", "{% endraw %}");
  }

  void inside(TokenKind begin, TokenKind end, char close) {
    out_.push_back({.kind = begin, .place = begun_});
    std::string open;  // brackets
    while (true) {
      skip_spaces();
      if (at_ >= s_.size()) fail_at(name_, begun_, "what begins here has no end", close == '}' ? "}}" : "%}");
      if (open.empty()) {
        const size_t sign = (s_[at_] == '-' || (s_[at_] == '+' && close == '%')) ? 1 : 0;
        if (at_ + sign + 1 < s_.size() && s_[at_ + sign] == close && s_[at_ + sign + 1] == '}') {
          const char how = sign ? s_[at_] : '\0';
          out_.push_back({.kind = end, .place = place()});
          move(sign + 2);
          if (how == '-')
            skip_spaces();
          else if (close == '%')
            after(how);
          return;
        }
      }
      token(open);
    }
  }

  void token(std::string& open) {
    const Place from = place();
    const char c = s_[at_];
    if (c == '"' || c == '\'') return string(c);
    if (is_ascii_digit(c)) return number();
    if (begins_name(c)) {
      const size_t begin = at_;
      size_t end = at_;
      while (end < s_.size() && (begins_name(s_[end]) || is_ascii_digit(s_[end]))) ++end;
      move(end - begin);
      out_.push_back({.kind = TokenKind::name, .text = s_.substr(begin, end - begin), .place = from});
      return;
    }
    for (std::string_view mark : kMarks) {
      if (s_.compare(at_, mark.size(), mark) != 0) continue;
      if (mark == "(" || mark == "[" || mark == "{") open += mark;
      if ((mark == ")" || mark == "]" || mark == "}") && !open.empty()) open.pop_back();
      out_.push_back({.kind = TokenKind::mark, .text = std::string(mark), .place = from});
      return move(mark.size());
    }
    fail_at(name_,
            from,
            text("unexpected ", string_literal(s_.substr(at_, char_bytes(c)))),
            "names, numbers, texts and operators");
  }

  void string(char quote) {
    const Place from = place();
    const size_t begin = at_;
    std::string value;
    size_t i = at_ + 1;
    auto hex = [&](size_t digits) {
      uint32_t code = 0;
      const char* first = s_.data() + i + 1;
      const auto end = std::from_chars(first, std::min(first + digits, s_.data() + s_.size()), code, 16);
      if (end.ptr != first + digits || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        fail_at(name_, from, "the text has an escape that is no character", text(digits, " hexadecimal digits"));
      append_char(value, code);
      i += digits;
    };
    auto octal = [&] {  // up to three digits
      const size_t last = std::min(i + 3, s_.size());
      uint32_t code = 0;
      for (; i < last && s_[i] >= '0' && s_[i] <= '7'; ++i) code = code * 8 + static_cast<uint32_t>(s_[i] - '0');
      append_char(value, code);
      --i;
    };
    for (; i < s_.size() && s_[i] != quote; ++i) {
      if (s_[i] != '\\' || i + 1 >= s_.size()) {
        value += s_[i];
        continue;
      }
      switch (s_[++i]) {
        case 'n': value += '\n'; break;
        case 't': value += '\t'; break;
        case 'r': value += '\r'; break;
        case 'b': value += '\b'; break;
        case 'f': value += '\f'; break;
        case 'v': value += '\v'; break;
        case 'a': value += '\a'; break;
        case '\n': break;
        case '\\':
        case '\'':
        case '"': value += s_[i]; break;
        case 'x': hex(2); break;
        case 'u': hex(4); break;
        case 'U': hex(8); break;
        case 'N': fail_at(name_, from, "the text has a character by its name", "\\u and four hexadecimal digits");
        case '0':
        case '1':
        case '2':
        case '3':
        case '4':
        case '5':
        case '6':
        case '7': octal(); break;
        default: value += {'\\', s_[i]};
      }
    }
    if (i >= s_.size()) fail_at(name_, from, "the text has no end", text("a closing ", quote));
    move(i + 1 - begin);
    out_.push_back(
        {.kind = TokenKind::literal, .text = s_.substr(begin, i + 1 - begin), .value = value, .place = from});
  }

  /// 0x1F, 0o17, 0b1: whether one stands here.
  bool number_of_base() {
    if (s_[at_] != '0' || at_ + 1 >= s_.size()) return false;
    const char letter = static_cast<char>(s_[at_ + 1] | 0x20);
    const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (base == 0) return false;
    const Place from = place();
    std::string digits;
    size_t end = at_ + 2;
    for (; end < s_.size() && (std::isalnum(static_cast<unsigned char>(s_[end])) || s_[end] == '_'); ++end)
      if (s_[end] != '_') digits += s_[end];
    int64_t whole = 0;
    const char* last = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), last, whole, base);
    if (read.ec != std::errc() || read.ptr != last)
      fail_at(name_, from, text(s_.substr(at_, end - at_), " is no number of 64 bits"), text("digits of base ", base));
    out_.push_back(
        {.kind = TokenKind::literal, .text = s_.substr(at_, end - at_), .value = Value(whole), .place = from});
    move(end - at_);
    return true;
  }

  void number() {
    if (number_of_base()) return;
    const Place from = place();
    std::string digits;
    size_t end = at_;
    bool is_float = false;
    auto take = [&] {
      for (; end < s_.size() && (is_ascii_digit(s_[end]) || s_[end] == '_'); ++end)
        if (s_[end] != '_') digits += s_[end];
    };
    take();
    const bool begins_with_zero = digits.starts_with('0') && digits.find_first_not_of('0') != digits.npos;
    if (end + 1 < s_.size() && s_[end] == '.' && is_ascii_digit(s_[end + 1])) {
      is_float = true;
      digits += s_[end++];
      take();
    }
    if (end < s_.size() && (s_[end] | 0x20) == 'e') {
      size_t after_e = end + 1;
      if (after_e < s_.size() && (s_[after_e] == '+' || s_[after_e] == '-')) ++after_e;
      if (after_e < s_.size() && is_ascii_digit(s_[after_e])) {
        is_float = true;
        digits += s_.substr(end, after_e - end);
        end = after_e;
        take();
      }
    }
    if (begins_with_zero && !is_float)
      fail_at(name_, from, text("the number ", digits, " begins with 0"), "digits without it, or 0o for octal ones");
    Value value;
    int64_t whole = 0;
    if (is_float)
      value = Value(*float_of(digits));  // beyond the range of a double: infinity or 0, as in Python
    else if (std::from_chars(digits.data(), digits.data() + digits.size(), whole).ec == std::errc())
      value = Value(whole);
    else
      fail_at(name_, from, text("the number ", digits, " is too large"), "integers of 64 bits");
    out_.push_back({.kind = TokenKind::literal, .text = s_.substr(at_, end - at_), .value = value, .place = from});
    move(end - at_);
  }

  const std::string s_;
  const std::string& name_;
  size_t at_ = 0;
  Place place_, begun_;
  std::vector<Token> out_;
};

}  // namespace

std::vector<Token> tokens_of(const std::string& source, const std::string& name) { return Lexer(source, name).run(); }

}  // namespace sator::jinja
