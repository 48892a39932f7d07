#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"

namespace sator {

/// The tokens of a tiktoken file: lines of a token's bytes in base64, a space, and its rank, which is its id.
/// Source: openai/tiktoken, tiktoken/load.py.
/// Errors: lines of another form; a token or a rank given twice, or beyond 2^24; a byte without a token of its own;
/// tokens longer than 1024 bytes.
std::vector<std::pair<std::string, int32_t>> read_tiktoken(std::string_view text, const std::string& where);

/// Whether a file's text begins as a tiktoken file does.
bool looks_like_tiktoken(std::string_view text);

/// What is known of an encoding by its name: how it cuts text, and its special tokens.
struct TiktokenEncoding {
  std::string pattern;
  std::vector<std::pair<std::string, int32_t>> special;  // id -1: the next after the ranks
};
/// The encoding that a file's name (cl100k_base.tiktoken) or a tokenizer's class (QWenTokenizer) names, if it is known.
/// Source: openai/tiktoken, tiktoken_ext/openai_public.py; Qwen's published tokenizer.
std::optional<TiktokenEncoding> tiktoken_encoding(std::string_view name);
std::vector<std::string_view> tiktoken_encodings();

}  // namespace sator
