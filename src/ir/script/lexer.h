#pragma once

#include <string>
#include <vector>

#include "ir/script/source.h"

namespace sator::script {

enum class TokenKind : uint8_t { name, integer, real, string, op, newline, indent, dedent, end };

struct Token {
  TokenKind kind = TokenKind::end;
  Place place;
  std::string text;  ///< as written; of a string, its value
  int64_t integer = 0;
  bool is_unsigned = false;
  bool is_formatted = false;  ///< f"...": the fields are still in the text
  double real = 0;

  bool is_op(std::string_view s) const { return kind == TokenKind::op && text == s; }
  bool is_name(std::string_view s) const { return kind == TokenKind::name && text == s; }
};

/// The tokens of Python's lexical grammar: indentation, brackets that join lines, comments dropped. A text that is
/// indented as a whole is read as if it were not.
/// Errors: characters and literals that Python (or the subset) does not have; more than 100 levels of indentation.
std::vector<Token> tokenize(const Source& source);

}  // namespace sator::script
