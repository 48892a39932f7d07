// Log-probabilities of tokens as they are shown.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "engine/logprobs.h"
#include "engine/tokenizer/tokenizer.h"

namespace sator::cli {

/// Beyond this a table is no longer read; `sator logits` writes all of them.
inline constexpr int64_t kMostLogprobs = 1000;

/// A line for each token: its text, ln p, p, its place among all tokens, and the likeliest ones with their p.
std::string logprob_table(std::string_view head, std::span<const TokenLogprob> tokens, const Tokenizer& tokenizer);

/// [{"id", "token", "logprob", "rank", "best": [{"id", "token", "logprob"}]}]; a token that is no whole characters has its "bytes" too.
nlohmann::json logprobs_as_json(std::span<const TokenLogprob> tokens, const Tokenizer& tokenizer);

}  // namespace sator::cli
