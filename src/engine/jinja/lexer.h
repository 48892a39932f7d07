// Templates as tokens: text, the marks of statements and outputs, and what stands between them.
#pragma once

#include "engine/jinja/value.h"

namespace sator::jinja {

/// From 1 on.
struct Place {
  int line = 1, column = 1;
};

enum class TokenKind { text, output_begin, output_end, statement_begin, statement_end, name, literal, mark, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;  ///< as the template spells it
  Value value;       ///< of literals
  Place place;
};

/// White space is treated as by Transformers: the newline behind a statement, and blanks before one that begins a line, are left
/// out (trim_blocks, lstrip_blocks); `-` leaves out all white space on its side, `+` none. One newline at the end is left out.
/// Source: the Jinja 3.1 template designer documentation, "Whitespace Control".
/// Errors: a mark or a string without an end; a character that begins no token.
std::vector<Token> tokens_of(const std::string& source, const std::string& name);

/// Fails at a place of a template.
[[noreturn]] void fail_at(const std::string& name, Place place, std::string what, std::string needs,
                          std::string hint = "");

}  // namespace sator::jinja
