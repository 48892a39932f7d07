#pragma once

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

/// How the next token is drawn.
///   temperature  logits are divided by it; 0 takes the most likely token
///   top_k        only the k most likely tokens; 0: all
///   top_p        of these only the most likely ones whose probabilities first reach top_p together; 1: all
struct SamplingParams {
  double temperature = 0;
  int64_t top_k = 0;
  double top_p = 1;
  uint64_t seed = 0;
};

/// Draws tokens. The same logits, parameters and seed give the same tokens on every machine: the exponentials
/// are computed by basic f64 arithmetic in a fixed order, not by the system's library.
class Sampler {
 public:
  /// Errors: temperature is negative or not finite; top_k is negative; top_p is outside (0, 1].
  explicit Sampler(const SamplingParams& params);

  /// The next token. Of equal logits the lower id counts as more likely.
  ///   logits  [vocab] f32
  /// Errors: a logit is NaN or +infinity, or all are -infinity.
  int32_t sample(std::span<const float> logits);

 private:
  SamplingParams params_;
  Random random_;
  std::vector<int32_t> order_;         // candidates, kept between calls so that none of them allocates
  std::vector<double> probabilities_;  // of order_, not normalized
};

/// The token with the largest logit, of several the lowest. Errors: as Sampler::sample.
int32_t most_likely(std::span<const float> logits);

}  // namespace sator
