#include "engine/tokenizer/vocabulary.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace sator {

Vocabulary Vocabulary::read(const JsonAt& at) {
  if (!at.is_object()) at.fail("is no object", "{token: id}");
  // Not through JsonAt: a vocabulary has hundreds of thousands of members.
  const auto& members = at.json().get_ref<const Json::object_t&>();
  Vocabulary out;
  out.reserve(members.size());
  for (const auto& [token, value] : members) {
    bool is_id = value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(kMaxId);
    if (!is_id)
      at.fail(text("gives ", string_literal(token.substr(0, 60)), " the id ", value.dump().substr(0, 40)),
              text("ids from 0 to ", kMaxId));
    auto id = value.get<int32_t>();
    if (const std::string* other = out.token_of(id))
      at.fail(text("gives ",
                   string_literal(token.substr(0, 60)),
                   " and ",
                   string_literal(other->substr(0, 60)),
                   " the same id ",
                   id),
              "one token per id");
    out.add(token, id);
  }
  return out;
}

void Vocabulary::reserve(size_t count) {
  ids_.reserve(count);
  tokens_.reserve(count);
}

void Vocabulary::add(std::string_view token, int32_t id) {
  auto entry = ids_.insert_or_assign(std::string(token), id).first;
  tokens_.emplace(id, &entry->first);
}

std::optional<int32_t> Vocabulary::id_of(std::string_view token) const {
  auto found = ids_.find(token);
  if (found == ids_.end()) return {};
  return found->second;
}

const std::string* Vocabulary::token_of(int32_t id) const {
  auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : found->second;
}

std::string byte_token(int byte) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  return text("<0x", kDigits[byte >> 4], kDigits[byte & 15], ">");
}

std::vector<int32_t> byte_token_ids(const Vocabulary& vocabulary) {
  std::vector<int32_t> ids;
  for (int b = 0; b < 256; ++b) ids.push_back(vocabulary.id_of(byte_token(b)).value_or(-1));
  return ids;
}

}  // namespace sator
