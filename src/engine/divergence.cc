#include "engine/divergence.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/lanes.h"

namespace sator {

using lanes::Doubles;
using lanes::Floats;

Divergence DivergenceMeter::measure(std::span<const float> reference, const Softmax& reference_softmax,
                                    std::span<const float> logits, const Softmax& softmax) {
  if (reference.size() != logits.size())
    fail({.what = text("predictions of ", logits.size(), " tokens beside ", reference.size(), " of the reference"),
          .needs = "models of one vocabulary",
          .hint = "compare schemes of one model"});
  Divergence out{.same_top = reference_softmax.top == softmax.top};
  const size_t padded = (logits.size() + lanes::kLanes - 1) / lanes::kLanes * lanes::kLanes;
  p_.resize(padded);  // exp(reference - max), not normalized; 0 behind the last token
  d_.resize(padded);  // logits - reference; 0 where p is
  Doubles p_sums = {}, pd_sums = {};
  for (size_t i = 0; i < logits.size(); i += lanes::kLanes) {
    const Floats a = lanes::at(reference, i, -INFINITY), b = lanes::at(logits, i, -INFINITY);
    const Floats p = lanes::exp_below(a, reference_softmax.max), d = p > 0.0f ? b - a : Floats{};
    std::memcpy(&p_[i], &p, sizeof p);
    std::memcpy(&d_[i], &d, sizeof d);
    const Doubles wide = __builtin_convertvector(p, Doubles);
    p_sums += wide;
    pd_sums += wide * __builtin_convertvector(d, Doubles);
  }
  const double p_sum = lanes::sum_of(p_sums), mean = lanes::sum_of(pd_sums) / p_sum;
  // The two logarithms are good to some 1e-6; where that is not seen, and exp(d - m) could overflow, they are taken.
  constexpr double kLarge = 0.1, kAgree = 1e-5;
  const double plain = (static_cast<double>(softmax.max) - static_cast<double>(reference_softmax.max)) +
                       (softmax.log_sum - reference_softmax.log_sum) - mean;
  out.kl = plain;
  if (!(plain < kLarge)) return out;
  const auto shift = static_cast<float>(mean);
  Doubles sums = {};
  for (size_t i = 0; i < padded; i += lanes::kLanes) {
    constexpr float kMost = 80;
    Floats p, x;
    std::memcpy(&p, &p_[i], sizeof p);
    std::memcpy(&x, &d_[i], sizeof x);
    x = x - shift;
    x = x < -kMost ? Floats{} - kMost : x;
    x = x > kMost ? Floats{} + kMost : x;
    const Floats less_one = lanes::exponential(x).minus_one();
    sums += __builtin_convertvector(p, Doubles) * __builtin_convertvector(less_one, Doubles);
  }
  // Behind log1p: what rounding the shift to a float left out.
  const double precise = std::log1p(lanes::sum_of(sums) / p_sum) - (mean - static_cast<double>(shift));
  // They differ where the model believes in tokens that the reference gives less than exp(-87).
  if (std::abs(precise - plain) < kAgree) out.kl = std::max(0.0, precise);
  return out;
}

}  // namespace sator
