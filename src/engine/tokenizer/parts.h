#pragma once

#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/decoders.h"
#include "engine/tokenizer/normalizers.h"
#include "engine/tokenizer/pre_tokenizers.h"
#include "engine/tokenizer/tokenizer.h"

namespace sator {

/// A tokenizer taken apart; the functions may be empty.
struct Tokenizer::Parts {
  AddedTokens added;
  Normalizer normalize;
  PreTokenizer pre_tokenize;
  Bpe model;
  Decoder decode;
  std::vector<int32_t> before, after;
  std::optional<int32_t> bos, eos;
};

}  // namespace sator
