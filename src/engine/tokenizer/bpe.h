#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/flat_map.h"
#include "engine/tokenizer/token_model.h"

namespace sator {

/// Byte-pair encoding: a piece starts as its characters; as long as an adjacent pair stands in the list of
/// merges, the pair that stands there first (of several such the leftmost) becomes one token. Source:
/// Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units", 2016; the details (byte
/// fallback, unknown tokens, prefixes) as in Hugging Face's `tokenizers`.
class Bpe final : public TokenModel {
 public:
  /// The `model` of a tokenizer.json.
  /// Errors: dropout; an id that is negative or given twice; a merge that is malformed or whose parts or result are
  /// not in the vocabulary.
  static std::shared_ptr<const TokenModel> read(const JsonAt& at);

  /// Of tokens that are bytes, each with a rank that is also its id: two neighbours whose joint is a token may become
  /// it, the joint of the lowest rank first. Tokens are spelled in the byte alphabet; a piece that is one is taken as
  /// it is. Errors: none; ranks are to be given once each.
  static std::shared_ptr<const TokenModel> of_ranks(const std::vector<std::pair<std::string, int32_t>>& ranks);

  /// Characters that have no token become byte tokens (byte fallback), else the unknown token, else nothing.
  /// Cost: O(n log n) for n characters.
  void encode(std::string_view piece, std::vector<int32_t>& out) const override;
  void each_part(std::string_view piece, const std::function<void(std::string_view part)>& visit) const override;

 private:
  std::optional<int32_t> id_of(std::string_view token) const { return vocabulary_.id_of(token); }
  void finish();
  struct Merge {
    uint32_t rank;
    int32_t id;
  };
  using Symbols = std::vector<int32_t>;

  void read_merges(const JsonAt& merges);
  void add_merge(const JsonAt& merges, size_t rank, std::string_view left, std::string_view right);
  void symbols_of(std::string_view piece, Symbols& symbols) const;
  int32_t id_of_char(std::string_view c, bool first, bool last) const;
  void merge_short(Symbols& symbols) const;
  void merge_long(Symbols& symbols) const;
  const Merge* merge_of(int32_t left, int32_t right) const {
    return merges_.find(static_cast<uint32_t>(left), static_cast<uint32_t>(right));
  }

  PairMap<Merge> merges_;
  PairMap<char> joints_;              // (last character of the left, first of the right) of all merges
  std::vector<int32_t> small_chars_;  // id of the one-character token per code point below its size; -1: none
  std::vector<int32_t> byte_ids_;     // with byte fallback: id of <0xHH> per byte; -1: none
  std::optional<int32_t> unknown_;
  bool fuse_unknown_ = false, ignore_merges_ = false;
  std::string prefix_, suffix_;  // of characters inside a word, of its last one
};

}  // namespace sator
