// The shortest way to the end of a document.
#pragma once

#include "engine/json_schema/long_tokens.h"

namespace sator::json_schema {

/// The shortest text that completes the document of a place; empty where it is complete. Nothing where it has more than `most` bytes.
///   tokens  of several texts with as few bytes one that these write in few tokens, as far as the texts of strings go; null: any
/// Cost: grows with the bytes of the text and what is open, not with lengths and counts that the schema asks for.
std::optional<std::string> completion_of(const Automaton& place, int64_t most = INT64_MAX,
                                         LongTokens* tokens = nullptr);

}  // namespace sator::json_schema
