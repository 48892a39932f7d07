// Logits as probabilities: likelihoods of tokens.
#pragma once

#include <cstdint>
#include <span>

namespace sator {

/// What probabilities of logits are made of: p = exp(logit - max - log_sum).
struct Softmax {
  float max = 0;       ///< the largest logit
  double log_sum = 0;  ///< ln(sum(exp(logit - max)))
  int32_t top = 0;     ///< the most likely token, of several the lowest
};

/// The largest of logits. Errors: one is NaN, or the largest is infinite (an overflow of the model).
float largest_logit(std::span<const float> logits);

/// The exponentials have f32's precision, their sum is kept in f64 in an order that depends on the vocabulary alone.
///   logits  [vocab] f32
/// Errors: as of largest_logit.
Softmax softmax_of(std::span<const float> logits);

/// -ln softmax(logits)[target]. Errors: target is outside the vocabulary.
double negative_log_likelihood(const Softmax& softmax, std::span<const float> logits, int32_t target);
/// The same of logits alone. Errors: as of softmax_of too.
double negative_log_likelihood(std::span<const float> logits, int32_t target);

}  // namespace sator
