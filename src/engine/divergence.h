// How a model's predictions differ from a reference's, token by token.
#pragma once

#include <span>
#include <vector>

#include "engine/likelihood.h"

namespace sator {

/// Of one prediction.
///   kl        KL(p || q) = sum over the vocabulary of p ln(p / q), in nats: p of the reference, q of the model
///   same_top  whether both have the same most likely token (of equal logits the lowest id counts)
struct Divergence {
  double kl = 0;
  bool same_top = false;
};

/// Computes divergences; it keeps scratch memory between calls.
/// With d = logits - reference and m = sum(p d) it is KL = ln(1 + sum(p (exp(d - m) - 1))). The term of first order is zero
/// in this form, so that a small divergence has f32's relative precision: the plain difference of two logarithms would have
/// its absolute one, 1e-6, which is what f16 weights change.
class DivergenceMeter {
 public:
  ///   reference, logits  [vocab] f32, each with its softmax_of
  /// Errors: another number of logits.
  Divergence measure(std::span<const float> reference, const Softmax& reference_softmax, std::span<const float> logits,
                     const Softmax& softmax);

 private:
  std::vector<float> p_, d_;  // [vocab]
};

}  // namespace sator
