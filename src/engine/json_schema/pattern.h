// `pattern` of a schema: regular expressions of ECMA-262, as far as their languages are regular.
#pragma once

#include "engine/json_schema/dfa.h"

namespace sator::json_schema {

/// The texts of UTF-8 in which the pattern is found somewhere, as JSON Schema means it: `^` and `$` tie it to the ends.
/// Read: alternatives, groups, classes with \d \w \s and their opposites, escapes (\n, \x41, é, \u{1f600}), `.`, counts (greedy or not, it
/// is the same), ends. \p{...} knows L, Lu, Ll, N, Nd, P, Letter, digit and their like.
/// Errors, by offset: lookaround, back references, \b, other properties; a count beyond 1,000; malformed patterns; too many states.
///   where  names the pattern's place in errors
Dfa pattern_dfa(const std::string& pattern, const std::string& where);

}  // namespace sator::json_schema
