// The shortest way to the end of a document.
#pragma once

#include "engine/json_schema/automaton.h"

namespace sator::json_schema {

/// A text that completes the document of a place, one of the shortest; empty where it is complete. Nothing where names of members would have to
/// be made up that only patterns tell.
std::optional<std::string> completion_of(const Automaton& place);

}  // namespace sator::json_schema
