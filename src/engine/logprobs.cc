#include "engine/logprobs.h"

#include <algorithm>
#include <numeric>

#include "engine/likelihood.h"

namespace sator {

TokenLogprob logprob_of(std::span<const float> logits, int32_t id, int64_t best) {
  const Softmax softmax = softmax_of(logits);
  auto logit = [&](int32_t i) { return logits[static_cast<size_t>(i)]; };
  auto likelier = [&](int32_t a, int32_t b) { return logit(a) > logit(b) || (logit(a) == logit(b) && a < b); };
  TokenLogprob out{.id = id, .logprob = -negative_log_likelihood(softmax, logits, id)};
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  out.rank = 1 + std::ranges::count_if(order, [&](int32_t other) { return likelier(other, id); });
  const auto wanted = static_cast<ptrdiff_t>(std::clamp<int64_t>(best, 0, std::ssize(logits)));
  std::partial_sort(order.begin(), order.begin() + wanted, order.end(), likelier);
  for (ptrdiff_t i = 0; i < wanted; ++i) {
    const int32_t other = order[static_cast<size_t>(i)];
    out.best.push_back({other, -negative_log_likelihood(softmax, logits, other)});
  }
  return out;
}

}  // namespace sator
