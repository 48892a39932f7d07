#pragma once

#include <string>
#include <vector>

#include "formats/timeloop/yaml.h"

namespace sator::formats::timeloop {

/// Errors: a map's key that is none of `known`, at the key.
void only_known(const Value& map, const std::vector<std::string>& known);

/// For maps that may hold keys of the user's own. Errors: a key that was meant to be one of `known`, at the key, where
/// the map lacks the one that was meant.
void no_misspelt(const Value& map, const std::vector<std::string>& known);

}  // namespace sator::formats::timeloop
