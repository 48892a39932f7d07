#pragma once

#include <string_view>

namespace sator {

/// Whether generation_config.json may have a member of that name. Older files have them in config.json, where Transformers 5
/// does not heed them.
bool is_generation_key(std::string_view name);

}  // namespace sator
