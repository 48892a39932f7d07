#include "engine/sampling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace sator {

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15ull;
    uint64_t z = seed;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    word = z ^ z >> 31;
  }
}

uint64_t Random::next() {
  uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

/// exp(x) for x <= 0 from additions and multiplications alone (relative error below 1e-15); 0 below -708.
static double exp_nonpositive(double x) {
  if (!(x > -708)) return 0;
  double n = (x * 1.4426950408889634 + 0x1.8p52) - 0x1.8p52;  // rounds to the nearest integer
  // ln 2 in two parts; the first has 32 bits, so n times it is exact.
  double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
  // Taylor's series by Horner's rule, |r| <= 0.35: 1/13! ... 1/2!, 1, 1.
  static constexpr double kInverseFactorials[] = {1.0 / 6227020800,
                                                  1.0 / 479001600,
                                                  1.0 / 39916800,
                                                  1.0 / 3628800,
                                                  1.0 / 362880,
                                                  1.0 / 40320,
                                                  1.0 / 5040,
                                                  1.0 / 720,
                                                  1.0 / 120,
                                                  1.0 / 24,
                                                  1.0 / 6,
                                                  1.0 / 2,
                                                  1.0,
                                                  1.0};
  double sum = 0;
  for (double c : kInverseFactorials) sum = sum * r + c;
  return sum * std::bit_cast<double>((static_cast<uint64_t>(static_cast<int64_t>(n) + 1023)) << 52);
}

int32_t most_likely(std::span<const float> logits) {
  size_t best = 0;
  bool is_nan = logits.empty();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > logits[best]) best = i;
    is_nan |= logits[i] != logits[i];
  }
  if (is_nan || !std::isfinite(logits[best]))
    fail({.what = is_nan ? "a logit is not a number" : text("the largest logit is ", logits[best]),
          .needs = "finite logits",
          .hint = "the model's arithmetic overflowed: check weights, dtype, scheme and the dtype of the KV cache"});
  return static_cast<int32_t>(best);
}

/// Larger numbers would carry a logit of float32 beyond all bounds, penalties once for each token of a long text.
static bool keeps_logits_finite(double added) { return std::fabs(added) <= kLargestBias; }

Sampler::Sampler(const SamplingParams& params) : params_(params), random_(params.seed) {
  if (!(params.temperature >= 0 && std::isfinite(params.temperature)))
    fail({.what = text("temperature is ", params.temperature),
          .needs = "a temperature >= 0",
          .hint = "0 is greedy, 0.7 is usual"});
  if (params.top_k < 0)
    fail({.what = text("top_k is ", params.top_k), .needs = "top_k >= 0", .hint = "0 takes all tokens"});
  if (!(params.top_p > 0 && params.top_p <= 1))
    fail({.what = text("top_p is ", params.top_p), .needs = "0 < top_p <= 1", .hint = "1 takes all tokens"});
  if (!(params.min_p >= 0 && params.min_p <= 1))
    fail({.what = text("min_p is ", params.min_p), .needs = "0 <= min_p <= 1", .hint = "0 takes all tokens"});
  if (!(params.repetition_penalty > 0 && std::isfinite(params.repetition_penalty)))
    fail({.what = text("repetition_penalty is ", params.repetition_penalty),
          .needs = "a positive number",
          .hint = "1 leaves repeated tokens as they are, 1.2 is usual"});
  for (const auto& [name, value] : {std::pair("frequency_penalty", params.frequency_penalty),
                                    std::pair("presence_penalty", params.presence_penalty)})
    if (!keeps_logits_finite(value))
      fail({.what = text(name, " is ", value),
            .needs = text("a number from ", -kLargestBias, " to ", kLargestBias),
            .hint = "0 leaves tokens as they are, 0.5 is usual"});
  for (const auto& [id, bias] : params.logit_bias)
    if ((!keeps_logits_finite(bias) && bias != -INFINITY) || id < 0)
      fail({.what = text("the logit of token ", id, " is given the bias ", bias),
            .needs = text("an id of the vocabulary and a number of at most ", kLargestBias, " in size, or -infinity")});
  for (const auto& [sequence, bias] : params.sequence_bias)
    if ((!keeps_logits_finite(bias) && bias != -INFINITY) || sequence.empty() || std::ranges::min(sequence) < 0)
      fail({.what = text("a sequence of ", sequence.size(), " tokens is given the bias ", bias),
            .needs = text("ids of the vocabulary, one or more, and a number of at most ",
                          kLargestBias,
                          " in size, or -infinity")});
  for (const std::vector<int32_t>& word : params.bad_words)
    if (word.empty() || std::ranges::min(word) < 0)
      fail({.what = "bad_words has a word without tokens, or a negative id",
            .needs = "ids of the vocabulary, one or more"});
  if (params.no_repeat_ngram_size < 0)
    fail({.what = text("no_repeat_ngram_size is ", params.no_repeat_ngram_size),
          .needs = "a size >= 0",
          .hint = "0 allows any repetition"});
}

/// Forbids the tokens that would complete n tokens that the sequence has already.
static void forbid_repeated(std::span<float> logits, std::span<const int32_t> sequence, size_t n) {
  if (sequence.size() + 1 < n) return;
  const std::span<const int32_t> last = sequence.last(n - 1);
  for (size_t i = 0; i + n <= sequence.size(); ++i)
    if (std::ranges::equal(sequence.subspan(i, n - 1), last))
      logits[static_cast<size_t>(sequence[i + n - 1])] = -INFINITY;
}

/// Adds to the logit of a sequence's last token, if those before it are the last of the text.
static void bias_completion(std::span<float> logits, std::span<const int32_t> sequence, std::span<const int32_t> biased,
                            float bias) {
  const auto last = static_cast<size_t>(biased.back());
  const std::span<const int32_t> before = biased.first(biased.size() - 1);
  if (last < logits.size() && before.size() <= sequence.size() &&
      std::ranges::equal(sequence.last(before.size()), before))
    logits[last] += bias;
}

std::span<const float> Sampler::changed(std::span<const float> logits, std::span<const int32_t> sequence, size_t prompt,
                                        std::span<const uint64_t> allowed) {
  if (!params_.changes_logits() && allowed.empty()) return logits;
  most_likely(logits);  // refuses what is no number
  changed_.assign(logits.begin(), logits.end());
  for (int32_t id : params_.excluded)
    if (id >= 0 && static_cast<size_t>(id) < changed_.size()) changed_[static_cast<size_t>(id)] = -INFINITY;
  for (const auto& [id, bias] : params_.logit_bias)
    if (static_cast<size_t>(id) < changed_.size()) changed_[static_cast<size_t>(id)] += static_cast<float>(bias);
  for (const auto& [biased, bias] : params_.sequence_bias)
    bias_completion(changed_, sequence, biased, static_cast<float>(bias));
  if (params_.repetition_penalty != 1) {
    const auto penalty = static_cast<float>(params_.repetition_penalty);
    order_.assign(sequence.begin(), sequence.end());  // each token once, however often it occurs
    std::sort(order_.begin(), order_.end());
    order_.erase(std::unique(order_.begin(), order_.end()), order_.end());
    for (int32_t id : order_) {
      float& x = changed_[static_cast<size_t>(id)];
      x = x < 0 ? x * penalty : x / penalty;
    }
  }
  if (params_.frequency_penalty != 0 || params_.presence_penalty != 0) {
    const std::span<const int32_t> generated = sequence.subspan(std::min(prompt, sequence.size()));
    order_.assign(generated.begin(), generated.end());
    std::sort(order_.begin(), order_.end());
    for (size_t i = 0, next = 0; i < order_.size(); i = next) {
      while (next < order_.size() && order_[next] == order_[i]) ++next;
      changed_[static_cast<size_t>(order_[i])] -=
          static_cast<float>(params_.frequency_penalty * static_cast<double>(next - i) + params_.presence_penalty);
    }
  }
  if (params_.no_repeat_ngram_size > 0)
    forbid_repeated(changed_, sequence, static_cast<size_t>(params_.no_repeat_ngram_size));
  for (const std::vector<int32_t>& word : params_.bad_words) bias_completion(changed_, sequence, word, -INFINITY);
  const auto read = static_cast<int64_t>(prompt);
  if (std::ssize(sequence) - read < params_.least_tokens(read))
    for (int32_t id : params_.ends)
      if (id >= 0 && static_cast<size_t>(id) < changed_.size()) changed_[static_cast<size_t>(id)] = -INFINITY;
  for (size_t id = 0; id < (allowed.empty() ? 0 : changed_.size()); ++id)
    if ((allowed[id / 64] >> (id % 64) & 1) == 0) changed_[id] = -INFINITY;
  if (std::ranges::all_of(changed_, [](float x) { return x == -INFINITY; }))
    fail({.what = "every token of the vocabulary is forbidden",
          .needs = "a token that may follow",
          .hint = params_.no_repeat_ngram_size > 0
                      ? text("no_repeat_ngram_size is ", params_.no_repeat_ngram_size, ": a larger one forbids less")
                      : "a lower --min-tokens, fewer biases and bad words, or a schema that allows more"});
  return changed_;
}

/// Fills order_ and probabilities_ with what may be drawn; returns the sum of the probabilities.
double Sampler::weigh(std::span<const float> logits, int32_t best) {
  const auto max = static_cast<double>(logits[static_cast<size_t>(best)]);
  auto likelier = [&](int32_t a, int32_t b) {
    float la = logits[static_cast<size_t>(a)], lb = logits[static_cast<size_t>(b)];
    return la > lb || (la == lb && a < b);
  };
  auto probability = [&](int32_t id) {
    return exp_nonpositive((static_cast<double>(logits[static_cast<size_t>(id)]) - max) / params_.temperature);
  };
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0);
  if (params_.top_k > 0 && static_cast<size_t>(params_.top_k) < order_.size()) {
    std::nth_element(order_.begin(), order_.begin() + (params_.top_k - 1), order_.end(), likelier);
    order_.resize(static_cast<size_t>(params_.top_k));
    std::sort(order_.begin(), order_.end());  // sums run in the order of ids
  }
  double total = 0;
  probabilities_.clear();
  for (int32_t id : order_) {
    probabilities_.push_back(probability(id));
    total += probabilities_.back();
  }
  if (params_.top_p < 1) {
    // The likeliest come to the front in growing runs: a nucleus is a small part of the vocabulary as a rule.
    double wanted = params_.top_p * total, reached = 0;
    size_t kept = 0;
    for (size_t run = 64, sorted = 0; reached < wanted && sorted < order_.size(); run *= 4) {
      size_t end = std::min(order_.size(), sorted + run);
      auto at = [&](size_t i) { return order_.begin() + static_cast<ptrdiff_t>(i); };
      if (end < order_.size()) std::nth_element(at(sorted), at(end), order_.end(), likelier);
      std::sort(at(sorted), at(end), likelier);
      for (sorted = end; kept < end && reached < wanted; ++kept) {
        probabilities_[kept] = probability(order_[kept]);
        reached += probabilities_[kept];
      }
    }
    order_.resize(kept);
    probabilities_.resize(kept);
    total = reached;
  }
  if (params_.min_p > 0) {  // the largest probability is 1
    size_t kept = 0;
    total = 0;
    for (size_t i = 0; i < order_.size(); ++i) {
      if (probabilities_[i] < params_.min_p) continue;
      order_[kept] = order_[i];
      probabilities_[kept] = probabilities_[i];
      total += probabilities_[kept++];
    }
    order_.resize(kept);
    probabilities_.resize(kept);
  }
  return total;
}

int32_t Sampler::sample(std::span<const float> given, std::span<const int32_t> sequence, size_t prompt,
                        std::span<const uint64_t> allowed) {
  const std::span<const float> logits = changed(given, sequence, prompt, allowed);
  int32_t best = most_likely(logits);
  if (params_.temperature == 0) return best;
  const double total = weigh(logits, best);
  double at = random_.uniform() * total;
  int32_t last = best;
  for (size_t i = 0; i < order_.size(); ++i) {
    if (probabilities_[i] == 0) continue;
    last = order_[i];
    if (at < probabilities_[i]) return last;
    at -= probabilities_[i];
  }
  return last;  // rounding left a little over
}

std::vector<Drawable> Sampler::distribution(std::span<const float> given, std::span<const int32_t> sequence,
                                            size_t prompt) {
  const std::span<const float> logits = changed(given, sequence, prompt);
  const int32_t best = most_likely(logits);
  if (params_.temperature == 0) return {{best, 1}};
  const double total = weigh(logits, best);
  std::vector<Drawable> out;
  for (size_t i = 0; i < order_.size(); ++i)
    if (probabilities_[i] > 0) out.push_back({order_[i], probabilities_[i] / total});
  return out;
}

}  // namespace sator
