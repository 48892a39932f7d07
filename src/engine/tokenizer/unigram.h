#pragma once

#include <optional>

#include "engine/tokenizer/byte_trie.h"
#include "engine/tokenizer/token_model.h"

namespace sator {

/// Unigram language model: of all ways to cut a piece into tokens the one whose scores (logarithms of
/// probabilities) have the greatest sum; of equal ones that whose last token is longest. A character that no token
/// begins with counts as unknown, 10 below the lowest score.
/// Source: Kudo, "Subword Regularization", 2018; details (fused unknown characters, bytes) as in Hugging Face's
/// `tokenizers`, or as in SentencePiece.
class Unigram final : public TokenModel {
 public:
  /// The `model` of a tokenizer.json.
  /// Errors: `vocab` is no list of [token, score]; scores that are no numbers; `unk_id` beyond the vocabulary.
  static std::shared_ptr<const TokenModel> read(const JsonAt& at);

  /// A token of a SentencePiece model.
  struct Piece {
    std::string text;
    float score;
    enum class Kind { normal, user_defined, unused, reserved } kind;  // reserved: never found in a text
  };
  /// Sums are rounded to float32 after each step, as SentencePiece does, and user-defined pieces win over others.
  static std::shared_ptr<const TokenModel> of_sentencepiece(const std::vector<Piece>& pieces, int32_t unknown,
                                                            bool byte_fallback);

  void encode(std::string_view piece, std::vector<int32_t>& out) const override;

 private:
  struct Step;
  void add_unknown(std::string_view text, std::vector<int32_t>& out) const;

  ByteTrie trie_;
  std::vector<double> scores_;  // per id
  double unknown_score_ = 0;
  std::optional<int32_t> unknown_;
  std::vector<int32_t> byte_ids_;  // with byte fallback
  bool sentencepiece_ = false;
};

}  // namespace sator
