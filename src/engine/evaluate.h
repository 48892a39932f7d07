#pragma once

#include "engine/corpus.h"
#include "engine/session.h"

namespace sator {

/// Perplexity of a model over windows of tokens (see corpus.h for the protocol). `progress` is told after each window how
/// many are done. Errors: as of Session::append; logits that are no numbers.
Perplexity evaluate_perplexity(Session& session, std::span<const Window> windows,
                               FunctionRef<void(int64_t done)> progress);

/// What a model's predictions are, beside those of a reference: one figure per window.
struct ComparedQuality {
  Perplexity perplexity;
  std::vector<double> window_kl;  ///< nats per prediction (divergence.h); none for the reference itself
  int64_t same_top = 0;           ///< predictions whose most likely token is the reference's
};

/// The models over the same windows, each window of each model run once: the reference's logits of one window are kept while
/// the others are compared with them, and there are never more.
///   sessions    the first is the reference
///   progress    told after each window how many are done
///   failed      told what was thrown by which session; that one takes no further part. Of the reference: it is thrown.
///   →           one per session
std::vector<ComparedQuality> compare_quality(std::span<Session> sessions, std::span<const Window> windows,
                                             FunctionRef<void(int64_t done)> progress,
                                             FunctionRef<void(size_t session)> failed);

/// Speed as llama-bench measures it: random ids, a warm-up, then the median of `repeats` runs, in tokens per second.
struct SpeedOptions {
  int repeats = 3;
  uint64_t seed = 0;
  bool warm_up = true;
};
/// A prompt of `tokens` processed at once (in the model's chunks); the logits of the last token are computed.
double measure_prefill(Session& session, int64_t tokens, const SpeedOptions& options);
/// One token at a time, `steps` of them, from a context of `context` tokens on.
double measure_decode(Session& session, int64_t context, int64_t steps, const SpeedOptions& options);

}  // namespace sator
