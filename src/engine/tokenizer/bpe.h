#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "engine/tokenizer/flat_map.h"

namespace sator {

/// Hashes strings and views alike, so that a map of strings is searched without a copy.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
};
template <class V>
using TextMap = std::unordered_map<std::string, V, TextHash, std::equal_to<>>;

/// Byte-pair encoding: a piece starts as its characters; as long as an adjacent pair stands in the list of
/// merges, the pair that stands there first (of several such the leftmost) becomes one token. Source:
/// Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units", 2016; the details (byte
/// fallback, unknown tokens, prefixes) as in Hugging Face's `tokenizers`.
class Bpe {
 public:
  /// The `model` of a tokenizer.json.
  /// Errors: another kind of model (named); dropout; an id that is negative or given twice; a merge that is
  /// malformed or whose parts or result are not in the vocabulary.
  static Bpe read(const JsonAt& at);

  /// Appends the ids of one piece. Characters that have no token become byte tokens (byte fallback), else the
  /// unknown token, else nothing. Cost: O(n log n) for n characters.
  void encode(std::string_view piece, std::vector<int32_t>& out) const;

  /// Cuts a piece where no merge can ever join the two characters, and visits the parts in order: encoding
  /// them one by one gives what encoding the piece gives. (Text that no pre-tokenizer cut falls into its
  /// words.)
  void each_part(std::string_view piece, const std::function<void(std::string_view part)>& visit) const;

  std::optional<int32_t> id_of(std::string_view token) const;
  const std::string* token_of(int32_t id) const;
  size_t size() const { return ids_.size(); }

 private:
  struct Merge {
    uint32_t rank;
    int32_t id;
  };
  using Symbols = std::vector<int32_t>;

  void read_vocab(const JsonAt& vocab);
  void read_merges(const JsonAt& merges);
  void add_merge(const JsonAt& merges, size_t rank, std::string_view left, std::string_view right);
  void symbols_of(std::string_view piece, Symbols& symbols) const;
  int32_t id_of_char(std::string_view c, bool first, bool last) const;
  void merge_short(Symbols& symbols) const;
  void merge_long(Symbols& symbols) const;
  const Merge* merge_of(int32_t left, int32_t right) const {
    return merges_.find(static_cast<uint32_t>(left), static_cast<uint32_t>(right));
  }

  TextMap<int32_t> ids_;
  std::unordered_map<int32_t, const std::string*> tokens_;
  PairMap<Merge> merges_;
  PairMap<char> joints_;              // (last character of the left, first of the right) of all merges
  std::vector<int32_t> small_chars_;  // id of the one-character token per code point below its size; -1: none
  std::vector<int32_t> byte_ids_;     // with byte fallback: id of <0xHH> per byte; -1: none
  std::optional<int32_t> unknown_;
  bool fuse_unknown_ = false, ignore_merges_ = false;
  std::string prefix_, suffix_;  // of characters inside a word, of its last one
};

}  // namespace sator
