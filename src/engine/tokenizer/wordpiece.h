#pragma once

#include "engine/tokenizer/token_model.h"

namespace sator {

/// WordPiece: the longest token that a word begins with, then the longest, with a prefix ("##"), that the rest
/// begins with, and so on; a word of which some part is no token is unknown as a whole.
/// Source: Devlin et al., "BERT", 2019; details as in Hugging Face's `tokenizers`.
class WordPiece final : public TokenModel {
 public:
  /// The `model` of a tokenizer.json. Errors: those of Vocabulary::read; members of another type.
  static std::shared_ptr<const TokenModel> read(const JsonAt& at);
  void encode(std::string_view word, std::vector<int32_t>& out) const override;

 private:
  bool encode_known(std::string_view word, std::vector<int32_t>& out) const;

  std::string prefix_, unknown_;
  size_t max_chars_ = 0;  // longer words are unknown
  size_t longest_ = 0;    // bytes of the longest token
};

/// Each piece is one token, or the unknown one.
class WordLevel final : public TokenModel {
 public:
  static std::shared_ptr<const TokenModel> read(const JsonAt& at);
  void encode(std::string_view word, std::vector<int32_t>& out) const override;

 private:
  std::string unknown_;
};

}  // namespace sator
