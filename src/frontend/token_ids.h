// Ids of tokens in the configurations of a model.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace sator {

/// An id or a list of ids; -1 is some writers' "none". Errors: no id.
std::vector<int64_t> read_token_ids(const JsonAt& config, std::string_view name);
/// The first of them.
std::optional<int64_t> read_token_id(const JsonAt& config, std::string_view name);

}  // namespace sator
