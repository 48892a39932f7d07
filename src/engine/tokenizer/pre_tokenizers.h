#pragma once

#include <functional>

#include "base/json.h"
#include "engine/tokenizer/pieces.h"

namespace sator {

/// Cuts text into pieces that the model tokenizes one by one, and may rewrite them.
using PreTokenizer = std::function<void(Pieces&)>;

/// The `pre_tokenizer` of a tokenizer.json.
/// Errors: a kind that is not supported, named with the place; malformed members.
PreTokenizer read_pre_tokenizer(const JsonAt& at);

/// The pattern's matches, each spelled in the byte alphabet; what lies between them is left out, as by tiktoken.
PreTokenizer matches_as_bytes(const Pattern& pattern);

/// GPT-2's pattern: contractions, words, numbers, other runs, each with one space before it; whitespace.
/// Source: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, the published
/// encoder.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// How a Metaspace marks the begin of words: before each text, before the first, never.
enum class PrependScheme { always, first, never };
/// The members of a Metaspace, of pre-tokenizer and decoder alike.
struct Metaspace {
  std::string replacement;
  PrependScheme scheme;
  bool split;
};
Metaspace read_metaspace(const JsonAt& at);

}  // namespace sator
