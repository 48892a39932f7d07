// Means over the windows of a text, with their errors.
#pragma once

#include <optional>
#include <span>

namespace sator {

/// A mean over windows of one size, and its standard error sd / sqrt(W): nothing for one window, whose spread nobody knows.
struct WindowMean {
  double value = 0;
  std::optional<double> error;
  bool operator==(const WindowMean&) const = default;
};

/// Of one figure per window. Windows, not tokens: tokens of one window are not independent.
WindowMean mean_over(std::span<const double> windows);

/// Of a[w] - b[w]: two models on the same windows. A window that is hard for one is hard for the other, so that their
/// difference spreads far less than either.
WindowMean mean_difference(std::span<const double> a, std::span<const double> b);

/// exp(mean a) - exp(mean b) of two models' nats per token, with the paired error of first order: that of the mean over
/// windows of exp(mean a) * a[w] - exp(mean b) * b[w].
WindowMean perplexity_difference(std::span<const double> a, std::span<const double> b);

}  // namespace sator
