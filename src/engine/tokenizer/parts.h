#pragma once

#include <memory>

#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/decoders.h"
#include "engine/tokenizer/normalizers.h"
#include "engine/tokenizer/pre_tokenizers.h"
#include "engine/tokenizer/token_model.h"
#include "engine/tokenizer/tokenizer.h"

namespace sator {

/// A tokenizer taken apart; the functions may be empty.
struct Tokenizer::Parts {
  AddedTokens added;
  Normalizer normalize;
  PreTokenizer pre_tokenize;
  std::shared_ptr<const TokenModel> model;
  Decoder decode;
  TokenBytes bytes;
  std::vector<int32_t> before, after;
  std::optional<int32_t> bos, eos;
};

/// An entry of `added_tokens` or `added_tokens_decoder`.
AddedToken read_added_token(const JsonAt& at);

/// The parts that a tokenizer.json describes.
std::shared_ptr<Tokenizer::Parts> read_tokenizer_parts(const Json& tree, std::string_view source);

}  // namespace sator
