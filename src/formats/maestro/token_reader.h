#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_line.h"
#include "formats/maestro/network.h"

namespace sator::formats::maestro {

/// The words and marks { } ( ) , ; : of a text, without comments (// to the end of the line), each with its place.
class TokenReader {
 public:
  TokenReader(std::string_view text, std::string_view file);

  bool at_end() const { return next_ == tokens_.size(); }
  /// The next token, or nothing at the end.
  std::string_view peek() const { return at_end() ? std::string_view() : tokens_[next_].text; }
  std::string_view take() { return tokens_[next_++].text; }
  /// Takes the token if it is the next one.
  bool accept(std::string_view text);
  /// Errors: another token is next.
  void expect(std::string_view text, std::string_view where);
  /// A word, not a mark. Errors: a mark or the end is next.
  std::string_view word(std::string_view what);
  /// A decimal integer in [least, 2^31 - 1], the range of MAESTRO's sizes. Errors: anything else.
  int64_t integer(std::string_view what, int64_t least);
  static int64_t to_integer(std::string_view digits);  // -1: none; INT64_MAX: beyond 2^31 - 1

  Place place() const;
  /// Throws an Error at the next token, or at the one taken last.
  [[noreturn]] void fail_next(std::string what, std::string needs, std::string hint) const;
  [[noreturn]] void fail_last(std::string what, std::string needs, std::string hint) const;
  /// What messages call the next token.
  std::string next_shown() const { return at_end() ? "the end of the text" : shown(peek()); }

 private:
  struct Token {
    std::string_view text;
    size_t line = 0, column = 0;  // from 0
  };
  std::vector<TextLine> lines_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
};

}  // namespace sator::formats::maestro
