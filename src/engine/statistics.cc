#include "engine/statistics.h"

#include <cmath>
#include <vector>

#include "base/error.h"

namespace sator {

namespace {

std::vector<double> combined(double factor_a, std::span<const double> a, double factor_b, std::span<const double> b) {
  if (a.size() != b.size()) internal_error("paired figures are not of the same windows");
  std::vector<double> out;
  for (size_t w = 0; w < a.size(); ++w) out.push_back(factor_a * a[w] - factor_b * b[w]);
  return out;
}

}  // namespace

WindowMean mean_over(std::span<const double> windows) {
  if (windows.empty()) internal_error("a mean over no windows");
  const auto n = static_cast<double>(windows.size());
  WindowMean mean;
  for (double w : windows) mean.value += w / n;
  if (windows.size() < 2) return mean;
  double squares = 0;
  for (double w : windows) squares += (w - mean.value) * (w - mean.value);
  mean.error = std::sqrt(squares / (n - 1) / n);
  return mean;
}

WindowMean mean_difference(std::span<const double> a, std::span<const double> b) {
  return mean_over(combined(1, a, 1, b));
}

WindowMean perplexity_difference(std::span<const double> a, std::span<const double> b) {
  const double of_a = std::exp(mean_over(a).value), of_b = std::exp(mean_over(b).value);
  return {of_a - of_b, mean_over(combined(of_a, a, of_b, b)).error};
}

}  // namespace sator
