#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"

namespace sator {

/// Hashes strings and views alike, so that a map of strings is searched without a copy.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
};
template <class V>
using TextMap = std::unordered_map<std::string, V, TextHash, std::equal_to<>>;

/// The tokens of a model and their ids.
class Vocabulary {
 public:
  static constexpr int64_t kMaxId = (int64_t{1} << 24) - 1;

  Vocabulary() = default;
  // Tokens point into the map of ids, which a move leaves where it is and a copy does not.
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  /// {token: id} of a tokenizer.json.
  /// Errors: an id that is negative, beyond kMaxId, or given twice.
  static Vocabulary read(const JsonAt& at);

  void reserve(size_t count);
  /// Adds a token under a new id; a token given again is found by its last id, and either id is that token.
  void add(std::string_view token, int32_t id);

  std::optional<int32_t> id_of(std::string_view token) const;
  const std::string* token_of(int32_t id) const;
  size_t size() const { return tokens_.size(); }

 private:
  TextMap<int32_t> ids_;
  std::unordered_map<int32_t, const std::string*> tokens_;
};

/// The name of a byte's token where characters fall back to bytes: <0x0A>.
std::string byte_token(int byte);

/// The ids of the 256 byte tokens; -1: the vocabulary lacks it.
std::vector<int32_t> byte_token_ids(const Vocabulary& vocabulary);

}  // namespace sator
