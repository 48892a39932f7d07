// The shortest way to the end of a document.
#pragma once

#include "engine/json_schema/automaton.h"

namespace sator::json_schema {

/// The shortest text that completes the document of a place; empty where it is complete. Nothing where it has more than `most` bytes.
/// Cost: grows with the bytes of the text and what is open, not with lengths and counts that the schema asks for.
std::optional<std::string> completion_of(const Automaton& place, int64_t most = INT64_MAX);

}  // namespace sator::json_schema
