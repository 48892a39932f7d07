#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/byte_trie.h"
#include "engine/tokenizer/charsmap.h"
#include "engine/tokenizer/decoders.h"
#include "engine/tokenizer/normalizers.h"
#include "engine/tokenizer/token_model.h"
#include "engine/tokenizer/unigram.h"

namespace sator {

/// A SentencePiece model file (`tokenizer.model`): a protocol buffer of the message ModelProto.
/// Source: google/sentencepiece, src/sentencepiece_model.proto (the fields' numbers and defaults).
struct SentencePieceFile {
  enum class Type { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::normal;
  };
  enum class Algorithm { unigram = 1, bpe = 2, word = 3, character = 4 };

  std::vector<Piece> pieces;
  Algorithm algorithm = Algorithm::unigram;
  bool byte_fallback = false, whitespace_as_suffix = false;
  std::string unknown_surface = " \u2047 ";
  int32_t unknown = -1;        // the piece of that type
  int32_t bos = -1, eos = -1;  // the control pieces that the trainer's settings name; -1: none

  Charsmap charsmap;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;

  /// Errors: bytes that are no such message; pieces that are empty, no UTF-8 or given twice; no unknown piece or
  /// several; byte fallback without 256 bytes; the algorithms word and character; a denormalizer.
  static SentencePieceFile read(std::string_view bytes, const std::string& where);
};

/// The text as SentencePiece's own normalizer leaves it: replaced by the table, its spaces collapsed and marked.
/// User-defined pieces stay as they are. `prefix_inside`: also a text that does not begin the whole input gets the
/// dummy prefix.
Normalizer normalizer_of(const SentencePieceFile& file, bool prefix_inside);

std::shared_ptr<const TokenModel> model_of(const SentencePieceFile& file);

/// Pieces back to text: marks to spaces, bytes to characters, the unknown piece to its surface, control pieces to
/// nothing, but those that are `shown`.
Decoder decoder_of(const SentencePieceFile& file, const std::vector<std::string>& shown);

}  // namespace sator
