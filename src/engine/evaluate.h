#pragma once

#include "engine/corpus.h"
#include "engine/session.h"

namespace sator {

/// Perplexity of a model over windows of tokens (see corpus.h for the protocol): each window is run alone from position
/// 0, and its tokens from the second on are predicted. `progress` is told after each window how many are done.
/// Errors: as of Session::append; logits that are no numbers.
Perplexity evaluate_perplexity(Session& session, std::span<const std::span<const int32_t>> windows,
                               FunctionRef<void(int64_t done)> progress);

/// Speed as llama-bench measures it: random ids, a warm-up, then the median of `repeats` runs, in tokens per second.
struct SpeedOptions {
  int repeats = 3;
  uint64_t seed = 0;
};
/// A prompt of `tokens` processed at once (in the model's chunks); the logits of the last token are computed.
double measure_prefill(Session& session, int64_t tokens, const SpeedOptions& options);
/// One token at a time, `steps` of them, from a context of `context` tokens on.
double measure_decode(Session& session, int64_t context, int64_t steps, const SpeedOptions& options);

}  // namespace sator
