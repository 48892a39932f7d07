#include "ir/script/lexer.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>

namespace sator::script {

namespace {

constexpr size_t kMaxIndents = 100;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80); }
bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }

// Longer ones first: the lexer takes the first that fits.
constexpr std::string_view kOperators[] = {
    "**=", "//=", "<<=", ">>=", "...", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "->", "+=", "-=",
    "*=",  "/=",  "%=",  "&=",  "|=",  "^=", "@=", ":=", "+",  "-",  "*",  "/",  "%",  "@",  "&",  "|",
    "^",   "~",   "<",   ">",   "(",   ")",  "[",  "]",  "{",  "}",  ",",  ":",  ".",  ";",  "="};

class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), text_(source.text()) {}

  std::vector<Token> run() {
    if (text_.starts_with("\xef\xbb\xbf")) pos_ = 3;  // byte order mark
    while (true) {
      if (at_line_start_ && brackets_.empty() && !indentation()) continue;
      skip_blanks();
      if (pos_ >= text_.size()) break;
      char c = text_[pos_];
      if (c == '\n') {
        ++pos_;
        if (brackets_.empty()) {
          add(TokenKind::newline, pos_ - 1, pos_);
          at_line_start_ = true;
        }
      } else if (is_digit(c) || (c == '.' && pos_ + 1 < text_.size() && is_digit(text_[pos_ + 1]))) {
        number();
      } else if (c == '"' || c == '\'') {
        string(pos_, false);
      } else if (is_name_start(c)) {
        name();
      } else {
        operation();
      }
    }
    if (!brackets_.empty())
      source_.fail(
          brackets_.back(),
          {.what = "this bracket is never closed", .needs = "a closing bracket", .hint = "close it, or remove it"});
    auto end = static_cast<uint32_t>(text_.size());
    if (!tokens_.empty() && tokens_.back().kind != TokenKind::newline) add(TokenKind::newline, end, end);
    for (; indents_.size() > 1; indents_.pop_back()) add(TokenKind::dedent, end, end);
    add(TokenKind::end, end, end);
    return std::move(tokens_);
  }

 private:
  Token& add(TokenKind kind, size_t begin, size_t end) {
    Token token;
    token.kind = kind;
    token.place = {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
    token.text = text_.substr(begin, end - begin);
    tokens_.push_back(std::move(token));
    return tokens_.back();
  }
  [[noreturn]] void fail(size_t begin, size_t end, Reason reason) {
    source_.fail({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}, std::move(reason));
  }

  /// The character of UTF-8 at this place.
  std::string_view letter() const {
    size_t end = pos_ + 1;
    while (end < text_.size() && (text_[end] & 0xc0) == 0x80) ++end;
    return text_.substr(pos_, end - pos_);
  }

  /// Reads the blanks of a new line. False if the line holds nothing, and was skipped.
  bool indentation() {
    size_t begin = pos_, column = 0;
    for (; pos_ < text_.size(); ++pos_) {
      char c = text_[pos_];
      if (c == ' ')
        ++column;
      else if (c == '\t')
        column = (column / 8 + 1) * 8;
      else if (c == '\f')
        column = 0;
      else
        break;
    }
    if (pos_ < text_.size() && (text_[pos_] == '#' || text_[pos_] == '\n' || text_[pos_] == '\r')) {
      skip_blanks();
      if (pos_ < text_.size() && text_[pos_] == '\n') ++pos_;
      return pos_ >= text_.size();
    }
    at_line_start_ = false;
    if (pos_ >= text_.size()) return true;
    if (indents_.empty()) indents_.push_back(column);
    if (column > indents_.back()) {
      if (indents_.size() > kMaxIndents)
        fail(begin,
             pos_,
             {.what = text(kMaxIndents, " levels of indentation are open"),
              .needs = text("at most ", kMaxIndents, " levels"),
              .hint = "flatten the program"});
      indents_.push_back(column);
      add(TokenKind::indent, begin, pos_);
    }
    while (column < indents_.back()) {
      indents_.pop_back();
      if (indents_.empty() || column > indents_.back())
        fail(pos_,
             pos_ + 1,
             {.what = "the indentation fits no enclosing block",
              .needs = "the indentation of a line above that is still open",
              .hint = "align the line"});
      add(TokenKind::dedent, pos_, pos_);
    }
    return true;
  }

  void skip_blanks() {
    while (pos_ < text_.size()) {
      char c = text_[pos_];
      if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
        ++pos_;
      } else if (c == '#') {
        while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
      } else if (c == '\\' && text_.substr(pos_ + 1).starts_with('\n')) {
        pos_ += 2;
      } else if (c == '\\' && text_.substr(pos_ + 1).starts_with("\r\n")) {
        pos_ += 3;
      } else {
        return;
      }
    }
  }

  void name() {
    size_t begin = pos_;
    while (pos_ < text_.size() && is_name_char(text_[pos_])) ++pos_;
    std::string_view s = text_.substr(begin, pos_ - begin);
    if (pos_ < text_.size() && (text_[pos_] == '"' || text_[pos_] == '\'') && s.size() <= 2) {
      if (s == "r" || s == "R") return string(begin, true);
      if (s == "u" || s == "U") return string(begin, false);
      if (s == "f" || s == "F") {
        string(begin, false);
        tokens_.back().is_formatted = true;
        return;
      }
      if (s.find_first_not_of("rRbBfF") == s.npos)
        fail(begin,
             pos_ + 1,
             {.what = text("strings with the prefix ", s, " are not part of TVMScript"),
              .needs = "a plain string",
              .hint = "write the text itself"});
    }
    add(TokenKind::name, begin, pos_);
  }

  void number() {
    size_t begin = pos_;
    int base = 10;
    bool real = false;
    if (text_[pos_] == '0' && pos_ + 1 < text_.size()) {
      char x = static_cast<char>(text_[pos_ + 1] | 0x20);
      base = x == 'x' ? 16 : x == 'o' ? 8 : x == 'b' ? 2 : 10;
      if (base != 10) pos_ += 2;
    }
    std::string digits;
    for (; pos_ < text_.size(); ++pos_) {
      char c = text_[pos_];
      if (c == '_') continue;
      if (is_digit(c) || (base == 16 && std::string_view("abcdefABCDEF").find(c) != std::string_view::npos)) {
        digits += c;
      } else if (base == 10 && c == '.') {
        if (real) break;
        real = true;
        digits += c;
      } else if (base == 10 && (c == 'e' || c == 'E') && exponent_follows()) {
        real = true;
        digits += c;
        if (text_[pos_ + 1] == '+' || text_[pos_ + 1] == '-') digits += text_[++pos_];
        while (pos_ + 1 < text_.size() && is_digit(text_[pos_ + 1])) digits += text_[++pos_];
        ++pos_;
        break;
      } else {
        break;
      }
    }
    if (pos_ < text_.size() && is_name_char(text_[pos_]))
      fail(begin,
           pos_ + 1,
           {.what = text("the number ", text_.substr(begin, pos_ - begin), " runs into '", letter(), "'"),
            .needs = "an integer or a real literal",
            .hint = "separate the number from what follows"});
    Token& token = add(real ? TokenKind::real : TokenKind::integer, begin, pos_);
    if (real) {
      token.real = std::strtod(digits.c_str(), nullptr);
      return;
    }
    uint64_t value = 0;
    auto [end, err] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (digits.empty() || err != std::errc() || end != digits.data() + digits.size())
      fail(begin,
           pos_,
           {.what = text(text_.substr(begin, pos_ - begin), " is not an integer of at most 64 bits"),
            .needs = "a value below 2^64",
            .hint = "no dtype holds a larger one"});
    token.integer = static_cast<int64_t>(value);
    token.is_unsigned = value > static_cast<uint64_t>(INT64_MAX);
  }

  bool exponent_follows() const {
    size_t next = pos_ + 1;
    if (next < text_.size() && (text_[next] == '+' || text_[next] == '-')) ++next;
    return next < text_.size() && is_digit(text_[next]);
  }

  void string(size_t begin, bool raw) {
    char quote = text_[pos_];
    bool triple = text_.substr(pos_).starts_with(std::string(3, quote));
    pos_ += triple ? 3 : 1;
    std::string value;
    while (true) {
      if (pos_ >= text_.size() || (!triple && text_[pos_] == '\n'))
        fail(begin,
             begin + 1,
             {.what = "this string is never closed",
              .needs = text("a closing ", quote),
              .hint = "close it on its line, or use three quotes"});
      char c = text_[pos_];
      if (c == quote && (!triple || text_.substr(pos_).starts_with(std::string(3, quote)))) {
        pos_ += triple ? 3 : 1;
        break;
      }
      if (c == '\\' && pos_ + 1 < text_.size()) {
        if (raw) {
          value += c;
          value += text_[pos_ + 1];
          pos_ += 2;
        } else {
          escape(value);
        }
      } else {
        value += c;
        ++pos_;
      }
    }
    add(TokenKind::string, begin, pos_).text = std::move(value);
  }

  void escape(std::string& value) {
    size_t begin = pos_;
    char c = text_[pos_ + 1];
    pos_ += 2;
    static constexpr std::string_view kLetters = "abfnrtv\\'\"", kValues = "\a\b\f\n\r\t\v\\'\"";
    if (size_t at = kLetters.find(c); at != kLetters.npos) {
      value += kValues[at];
    } else if (c == '\n') {
    } else if (c >= '0' && c <= '7') {
      int code = c - '0';
      for (int i = 0; i < 2 && pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '7'; ++i)
        code = code * 8 + (text_[pos_++] - '0');
      append_code_point(value, code);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      uint32_t code = 0;
      std::string_view s = text_.substr(pos_, digits);
      auto [end, err] = std::from_chars(s.data(), s.data() + s.size(), code, 16);
      if (s.size() != digits || err != std::errc() || end != s.data() + s.size() || code > 0x10ffff)
        fail(begin,
             pos_,
             {.what = text("\\", c, " without ", digits, " hexadecimal digits of a character"),
              .needs = text(digits, " digits"),
              .hint = "write \\\\ for a backslash"});
      pos_ += digits;
      append_code_point(value, code);
    } else {  // Python keeps unknown escapes
      value += '\\';
      value += c;
    }
  }

  static void append_code_point(std::string& out, uint32_t c) {
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += {static_cast<char>(0xc0 | (c >> 6)), static_cast<char>(0x80 | (c & 63))};
    } else if (c < 0x10000) {
      out += {static_cast<char>(0xe0 | (c >> 12)),
              static_cast<char>(0x80 | ((c >> 6) & 63)),
              static_cast<char>(0x80 | (c & 63))};
    } else {
      out += {static_cast<char>(0xf0 | (c >> 18)),
              static_cast<char>(0x80 | ((c >> 12) & 63)),
              static_cast<char>(0x80 | ((c >> 6) & 63)),
              static_cast<char>(0x80 | (c & 63))};
    }
  }

  void operation() {
    std::string_view rest = text_.substr(pos_);
    for (std::string_view op : kOperators) {
      if (!rest.starts_with(op)) continue;
      size_t begin = pos_;
      pos_ += op.size();
      Token& token = add(TokenKind::op, begin, pos_);
      if (op == "(" || op == "[" || op == "{") {
        brackets_.push_back(token.place);
      } else if (op == ")" || op == "]" || op == "}") {
        char open = op == ")" ? '(' : op == "]" ? '[' : '{';
        if (brackets_.empty() || text_[brackets_.back().begin] != open)
          fail(begin,
               pos_,
               {.what = text("'", op, "' closes no bracket"),
                .needs = text("an open '", open, "' before it"),
                .hint = "check the brackets of this line"});
        brackets_.pop_back();
      }
      return;
    }
    fail(pos_,
         pos_ + 1,
         {.what = text("unexpected character '", letter(), "'"), .needs = "a token of Python", .hint = "remove it"});
  }

  const Source& source_;
  std::string_view text_;
  size_t pos_ = 0;
  bool at_line_start_ = true;
  std::vector<size_t> indents_;
  std::vector<Place> brackets_;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(const Source& source) { return Lexer(source).run(); }

}  // namespace sator::script
