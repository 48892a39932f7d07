#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json.h"

namespace sator {

/// The `config.json` of the text part of a model of texts and pictures: its `text_config`, with the sizes that published files leave
/// out, and what the file says of the whole. Any other configuration as it is.
/// Errors: `text_config` is missing, no object, or of another model than the family's text part.
Json config_of_text_part(const Json& config, std::string_view source);

/// Why a model type is not among those that are read, where the model has a text part that is. Empty: it has none.
std::string hint_of_text_part(const Json& config);

}  // namespace sator
