// Text to tree: the subset of Python's grammar that TVMScript uses.
#pragma once

#include "ir/script/ast.h"

namespace sator::script {

/// The statements of a text. `name` is the file's, for messages.
/// Errors: what is not Python, or not in the subset (try, async, ...), with its place.
Program parse(std::string text, std::string name = "", int32_t indent = 0);

/// A text that is one expression, such as a shape written as a string ("n * 4"). `at` is where the text stands in
/// `around`, whose lines an error quotes.
Expression parse_expression(const Source& around, Place at, const std::string& text);

}  // namespace sator::script
