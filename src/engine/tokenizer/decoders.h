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

/// The bytes that a token adds within a text: what a Decoder does to it when other tokens stand before it, without repairing bytes that are no
/// whole character.
using TokenBytes = std::function<std::string(std::string_view token)>;

/// Those of the same `decoder`. Errors: as of read_decoder.
TokenBytes read_token_bytes(const JsonAt& at);

}  // namespace sator
