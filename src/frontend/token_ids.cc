#include "frontend/token_ids.h"

namespace sator {

std::vector<int64_t> read_token_ids(const JsonAt& config, std::string_view name) {
  std::vector<int64_t> ids;
  auto add = [&](const JsonAt& at) {
    if (int64_t id = at.integer(-1, INT32_MAX); id >= 0) ids.push_back(id);
  };
  auto member = config.find(name);
  if (!member) return ids;
  if (member->is_array())
    member->each(add);
  else
    add(*member);
  return ids;
}

std::optional<int64_t> read_token_id(const JsonAt& config, std::string_view name) {
  std::vector<int64_t> ids = read_token_ids(config, name);
  if (ids.empty()) return {};
  return ids[0];
}

}  // namespace sator
