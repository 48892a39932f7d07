#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"

namespace sator {

/// Text to token ids and back, exactly as the `tokenizer.json` of a Hugging Face folder says, or a file of
/// SentencePiece or of tiktoken.
///
/// Added tokens are found first (special ones too: `<|endoftext|>` in a text becomes its id), then text is
/// normalized, cut by the pre-tokenizer and turned into tokens by the model (BPE, Unigram, WordPiece, WordLevel). Truncation and padding of the file are not
/// applied. Bytes that are no UTF-8 are read as U+FFFD, one for each maximal ill-formed part. Copies share
/// everything; all members may be called from several threads.
class Tokenizer {
 public:
  /// Reads `tokenizer.json`; where there is none, `vocab.json` and `merges.txt` (GPT-2's cutting, or Qwen2's if the
  /// tokenizer's class says so), `tokenizer.model` (SentencePiece, or ranks of tiktoken), or a file `*.tiktoken`, each
  /// with `added_tokens.json` and `tokenizer_config.json`.
  /// Errors: no such files; malformed files; a component that is not supported (CTC, ...), by its name; ranks whose
  /// pattern is neither stated nor known.
  static Tokenizer load(const fs::path& folder);
  /// The same from the text of a tokenizer.json; `source` names it in errors.
  static Tokenizer from_json(std::string_view json, std::string_view source = "tokenizer.json");
  /// The same of its tree, with the tokens that begin and end texts.
  static Tokenizer from_tree(const Json& tree, std::string_view source, std::optional<int32_t> bos,
                             std::optional<int32_t> eos);

  /// The ids of a text; with `add_special_tokens` also those that the post-processor puts around it.
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens = false) const;

  /// The text of ids; ids that are no token's are left out. The result is valid UTF-8: bytes of tokens that
  /// form no character become U+FFFD.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens = false) const;

  /// How many tokens there are, added ones included.
  int64_t vocab_size() const;
  std::optional<int32_t> id_of(std::string_view token) const;
  /// The token as the file spells it, nothing if no token has that id; e.g. "Ġthe".
  std::optional<std::string_view> token_of(int32_t id) const;
  /// The bytes that the token adds to a text which has begun, perhaps no whole character; empty if no token has that id.
  std::string bytes_of(int32_t id) const;
  bool is_special(int32_t id) const;

  /// What `encode(..., add_special_tokens)` puts before and after the text.
  const std::vector<int32_t>& ids_before() const;
  const std::vector<int32_t>& ids_after() const;
  /// `bos_token` and `eos_token` of tokenizer_config.json or special_tokens_map.json, if they name a token.
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;

  struct Parts;

 private:
  explicit Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

/// Decodes ids as they are generated, in pieces that are whole characters: what a token leaves incomplete is
/// held back until the tokens that complete it have come.
class StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer, bool skip_special_tokens = true)
      : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens) {}

  /// Begins behind these ids, whose text is known: what follows is the text that further ids add to it. Before any push.
  void begin_after(std::span<const int32_t> ids);
  /// The text that this id completes; empty while a character is incomplete.
  std::string push(int32_t id);
  /// What was held back, as U+FFFD where it is no character. To be called once, at the end.
  std::string finish();

 private:
  std::string advance(bool at_end);

  Tokenizer tokenizer_;
  bool skip_special_tokens_;
  // A window of ids: decoders look at a token's neighbours, so the text of new ids is what decoding the
  // window with them adds to decoding it without.
  std::vector<int32_t> window_;
  size_t shown_ = 0;  // ids of the window whose text is out
  std::string shown_text_;
};

}  // namespace sator
