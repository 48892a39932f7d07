#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/tokenizer/byte_trie.h"
#include "engine/tokenizer/normalizers.h"
#include "engine/tokenizer/vocabulary.h"

namespace sator {

/// A token that is found in the text itself, before the model sees it.
///   special      left out by decode(skip_special_tokens)
///   single_word  found only where no word character touches it
///   lstrip       takes the whitespace before it, rstrip that behind it
///   normalized   looked for in the normalized text, by its normalized content; else in the text as given
struct AddedToken {
  std::string content;
  /// The id it gets if the model's vocabulary lacks it; -1: the next free one.
  int32_t id = -1;
  bool special = false, single_word = false, lstrip = false, rstrip = false, normalized = false;
  /// What the id decodes to: the content, for a normalized token its normalized form. Filled by AddedTokens.
  std::string shown = {};
};

/// A stretch of text: one added token, or (id < 0) text for the model.
struct TokenSplit {
  std::string_view text;
  int32_t id;
  size_t begin;  // in the searched text
};

/// The added tokens of a tokenizer and the search for them: leftmost, of several the longest.
class AddedTokens {
 public:
  /// Adds one, as Hugging Face's `tokenizers` does: what the model's vocabulary has keeps that id, anything
  /// else gets the one it asks for, or the next free one. An empty content is ignored; a content given again
  /// gets the new flags. Errors: the id it asks for is another token's.
  void add(const AddedToken& token, const Vocabulary& model);
  /// Builds the search. To be called once, when all are added.
  void finish(const Normalizer& normalize);

  /// Splits text as given by the tokens that are not `normalized`; normalized text by those that are.
  void split_raw(std::string_view text, std::vector<TokenSplit>& out) const { split(raw_, text, out); }
  void split_normalized(std::string_view text, std::vector<TokenSplit>& out) const { split(normalized_, text, out); }

  std::optional<int32_t> id_of(std::string_view content) const;
  const AddedToken* find(int32_t id) const;
  /// The id decodes to the content of a special token. (A special token whose shown form is another is not
  /// skipped: so does the reference.)
  bool is_special(int32_t id) const;
  /// How many are not in the model's vocabulary.
  size_t beyond_model() const { return beyond_model_; }

 private:
  void split(const ByteTrie& trie, std::string_view text, std::vector<TokenSplit>& out) const;

  TextMap<int32_t> ids_;
  std::unordered_map<int32_t, AddedToken> tokens_;
  std::vector<int32_t> order_;
  int32_t highest_ = -1;
  size_t beyond_model_ = 0;
  ByteTrie raw_, normalized_;
};

}  // namespace sator
