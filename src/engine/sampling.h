#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace sator {

/// Random numbers that are the same on every machine: xoshiro256**, its state filled from the seed by
/// SplitMix64. Source: Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", 2021.
class Random {
 public:
  explicit Random(uint64_t seed);
  uint64_t next();
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_[4];
};

/// What is added to a logit is no larger, of either sign.
inline constexpr double kLargestBias = 1e30;

/// How the next token is drawn. In this order, as Hugging Face's transformers does (generation/logits_process.py):
///   excluded              ids that are never drawn: those that no token has, where a vocabulary is padded
///   logit_bias            what is added to the logits of some tokens; -infinity forbids one
///   sequence_bias         what is added to the logit of a sequence's last token where the others end the text; of one token: always
///   repetition_penalty    logits of tokens that the sequence has, prompt included: x / penalty, below 0 x * penalty; 1: as they are
///   frequency_penalty     what is taken from a token's logit for each time that it was generated: the prompt does not count
///   presence_penalty      what is taken once from those that were
///   no_repeat_ngram_size  no token that would repeat n consecutive tokens of the sequence; 0: any
///   bad_words             sequences that are never completed
///   min_new_tokens        none of `ends` before so many tokens are generated
///   min_length            none of `ends` before the sequence has so many, prompt included
///   temperature           logits are divided by it; 0 takes the most likely token
///   top_k                 only the k most likely tokens; 0: all
///   top_p                 of these only the most likely ones whose probabilities first reach top_p together; 1: all
///   min_p                 of these only tokens with at least min_p times the largest probability; 0: all
struct SamplingParams {
  double temperature = 0;
  int64_t top_k = 0;
  double top_p = 1;
  uint64_t seed = 0;
  double min_p = 0;
  double repetition_penalty = 1;
  int64_t no_repeat_ngram_size = 0;
  std::vector<int32_t> excluded = {};
  double frequency_penalty = 0, presence_penalty = 0;
  std::vector<std::pair<int32_t, double>> logit_bias = {};
  std::vector<std::pair<std::vector<int32_t>, double>> sequence_bias = {};
  std::vector<std::vector<int32_t>> bad_words = {};
  int64_t min_new_tokens = 0, min_length = 0;
  std::vector<int32_t> ends = {};

  /// Whether logits are changed before anything is drawn.
  bool changes_logits() const {
    return repetition_penalty != 1 || no_repeat_ngram_size > 0 || !excluded.empty() || frequency_penalty != 0 ||
           presence_penalty != 0 || !logit_bias.empty() || !sequence_bias.empty() || !bad_words.empty() ||
           ((min_new_tokens > 0 || min_length > 0) && !ends.empty());
  }
  /// Tokens before which a text may not end, behind a prompt of so many.
  int64_t least_tokens(int64_t prompt) const { return std::max(min_length - prompt, min_new_tokens); }
};

/// A token that may be drawn, with its probability.
struct Drawable {
  int32_t id = 0;
  double probability = 0;
};

/// Draws tokens. The same logits, parameters and seed give the same tokens on every machine: the exponentials
/// are computed by basic f64 arithmetic in a fixed order, not by the system's library.
class Sampler {
 public:
  /// Errors: temperature is negative or not finite; top_k or no_repeat_ngram_size is negative; top_p is outside (0, 1], min_p
  /// outside [0, 1]; repetition_penalty is not positive; another penalty or a bias is no number; a sequence is empty.
  explicit Sampler(const SamplingParams& params);

  /// The next token. Of equal logits the lower id counts as more likely.
  ///   logits    [vocab] f32
  ///   sequence  what stands before it, prompt included: for penalties and no_repeat_ngram_size
  ///   prompt    how many of these are the prompt's
  ///   allowed   a bit for each token that may be drawn; empty: all
  /// Errors: a logit is NaN or +infinity, or all are -infinity; every token is forbidden.
  int32_t sample(std::span<const float> logits, std::span<const int32_t> sequence = {}, size_t prompt = 0,
                 std::span<const uint64_t> allowed = {});

  /// What `sample` would draw from, in no order. Errors: as of sample.
  std::vector<Drawable> distribution(std::span<const float> logits, std::span<const int32_t> sequence = {},
                                     size_t prompt = 0);

 private:
  std::span<const float> changed(std::span<const float> logits, std::span<const int32_t> sequence, size_t prompt,
                                 std::span<const uint64_t> allowed = {});
  double weigh(std::span<const float> logits, int32_t best);

  SamplingParams params_;
  Random random_;
  std::vector<float> changed_;         // [vocab], where the parameters change logits
  std::vector<int32_t> order_;         // candidates, kept between calls so that none of them allocates
  std::vector<double> probabilities_;  // of order_, not normalized
};

/// The token with the largest logit, of several the lowest. Errors: as Sampler::sample.
int32_t most_likely(std::span<const float> logits);

}  // namespace sator
