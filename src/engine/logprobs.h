// Log-probabilities of tokens, as they are shown beside a text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sator {

/// A token of a text and what the model believed when it came. Probabilities are those of the softmax of the model's own logits: penalties,
/// biases, forbidden tokens, temperature and the cuts of top-k, top-p and min-p come after it and do not show.
struct TokenLogprob {
  struct Candidate {
    int32_t id = 0;
    double logprob = 0;  ///< ln p
    bool operator==(const Candidate&) const = default;
  };
  int32_t id = 0;
  double logprob = 0;
  int64_t rank = 0;             ///< 1 for the most likely token; of equal logits the lower id comes first
  std::vector<Candidate> best;  ///< the likeliest tokens, in this order
};

/// Of one position.
///   logits  [vocab] f32
///   best    how many of the likeliest tokens are wanted
/// Errors: logits that are no numbers; an id outside of the vocabulary.
TokenLogprob logprob_of(std::span<const float> logits, int32_t id, int64_t best);

}  // namespace sator
