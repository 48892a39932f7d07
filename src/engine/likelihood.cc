#include "engine/likelihood.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/lanes.h"

namespace sator {

float largest_logit(std::span<const float> logits) {
  lanes::Floats maxima = lanes::Floats{} - INFINITY;
  lanes::Ints nans = {};
  lanes::each(logits, [&](const lanes::Floats& x) {
    maxima = x > maxima ? x : maxima;
    nans |= x != x;
  });
  float max = -INFINITY;
  bool is_nan = false;
  for (size_t j = 0; j < lanes::kLanes; ++j) {
    max = std::max(max, maxima[j]);
    is_nan |= nans[j] != 0;
  }
  if (is_nan || !std::isfinite(max))
    fail({.what = is_nan ? "a logit is not a number" : text("the largest logit is ", max),
          .needs = "finite logits",
          .hint = "the model's arithmetic overflowed: check weights, dtype, scheme and the dtype of the KV cache"});
  return max;
}

Softmax softmax_of(std::span<const float> logits) {
  const float max = largest_logit(logits);
  lanes::Doubles sums = {};
  lanes::each(logits, [&](const lanes::Floats& x) {
    sums += __builtin_convertvector(lanes::exp_below(x, max), lanes::Doubles);
  });
  const auto top = std::ranges::find(logits, max) - logits.begin();
  return {.max = max, .log_sum = std::log(lanes::sum_of(sums)), .top = static_cast<int32_t>(top)};
}

double negative_log_likelihood(const Softmax& softmax, std::span<const float> logits, int32_t target) {
  if (target < 0 || static_cast<size_t>(target) >= logits.size())
    fail({.what = text("token ", target, " is outside the model's vocabulary of ", logits.size()),
          .needs = "a tokenizer that belongs to the model",
          .hint = "check that tokenizer and weights come from the same folder"});
  return softmax.log_sum +
         (static_cast<double>(softmax.max) - static_cast<double>(logits[static_cast<size_t>(target)]));
}

double negative_log_likelihood(std::span<const float> logits, int32_t target) {
  return negative_log_likelihood(softmax_of(logits), logits, target);
}

}  // namespace sator
