#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"

namespace sator {

/// Rewrites the tokens of a text; what is left at the end is joined without anything between.
using Decoder = std::function<void(std::vector<std::string>& tokens)>;

/// The `decoder` of a tokenizer.json.
/// Errors: a kind that is not supported, named with the place; malformed members.
Decoder read_decoder(const JsonAt& at);

}  // namespace sator
