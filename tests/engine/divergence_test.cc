#include "engine/divergence.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/statistics.h"
#include "temp_folder.h"

namespace sator {
namespace {

/// KL(p || q) by its definition, in 64-bit mantissas.
double by_definition(const std::vector<float>& a, const std::vector<float>& b) {
  auto log_sum = [](const std::vector<float>& x) {
    long double sum = 0;
    for (float v : x) sum += std::exp(static_cast<long double>(v));
    return std::log(sum);
  };
  const long double of_a = log_sum(a), of_b = log_sum(b);
  long double kl = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const long double p = a[i] - of_a, q = b[i] - of_b;
    kl += std::exp(p) * (p - q);
  }
  return static_cast<double>(kl);
}

Divergence measured(const std::vector<float>& a, const std::vector<float>& b) {
  return DivergenceMeter().measure(a, softmax_of(a), b, softmax_of(b));
}

// Differences as small as those of rounding weights to 16 bits, and as large as of a broken model.
TEST(Divergence, FollowsTheDefinition) {
  for (size_t vocab : {2U, 7U, 1037U, 8192U})
    for (float by : {0.0f, 1e-4f, 1e-3f, 0.01f, 0.1f, 1.0f, 10.0f})
      for (float shift : {0.0f, 3.0f}) {  // of all logits: it changes no probability
        std::vector<float> a, b;
        for (size_t i = 0; i < vocab; ++i) {
          const auto x = static_cast<float>(i);
          a.push_back(8.0f * std::sin(x * x) - 3.0f);
          b.push_back(a.back() + by * std::cos(7 * x) + shift);
        }
        const double expected = by_definition(a, b), got = measured(a, b).kl;
        // Differences are rounded to 24 bits, which a divergence has in its first order.
        EXPECT_NEAR(got, expected, 2e-5 * expected + 0x1p-24 * static_cast<double>(by + shift) * 0.5 + 1e-12)
            << vocab << " tokens, " << by << ", shift " << shift;
      }
}

TEST(Divergence, OfTwoTokensByHand) {
  // p = (1/2, 1/2), q = (1/4, 3/4): ln(2) / 2 + ln(2/3) / 2.
  const std::vector<float> even = {0, 0}, odd = {0, std::log(3.0f)};
  EXPECT_NEAR(measured(even, odd).kl, 0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3.0), 1e-6);
  EXPECT_EQ(measured(odd, odd).kl, 0);
}

TEST(Divergence, OfExtremes) {
  // A token that the model rules out, with probability 1/2 in the reference.
  EXPECT_TRUE(std::isinf(measured({0, 0, -5}, {0, -INFINITY, -5}).kl));
  // One that the reference rules out changes nothing beside what it takes from the others.
  EXPECT_NEAR(measured({0, 0, -INFINITY}, {0, 0, -3}).kl, std::log1p(std::exp(-3.0) / 2), 1e-6);
  EXPECT_NEAR(measured({0, 0, -INFINITY}, {0, 0, -INFINITY}).kl, 0, 1e-12);
  // What the reference gives exp(-100) of, and the model 4 %.
  EXPECT_NEAR(measured({100, 0}, {0, -3.1f}).kl, std::log1p(std::exp(-3.1)), 1e-6);
  EXPECT_NEAR(measured({200, 0}, {0, 200}).kl, 200, 1e-4);
}

TEST(Divergence, TheMostLikelyTokenIsTheLowestOfEquals) {
  EXPECT_TRUE(measured({1, 3, 3}, {0, 5, 4}).same_top);
  EXPECT_FALSE(measured({1, 3, 3}, {0, 4, 5}).same_top);
  EXPECT_TRUE(measured({1, 3, 3}, {0, 4, 4}).same_top);
  EXPECT_NE(error_of([] { measured({1, 2}, {1, 2, 3}); }).find("one vocabulary"), std::string::npos);
}

// Means 1, 3, 2 and 1.5, 3.1, 2.6: each spreads by 1.0 and 0.82, the differences 0.5, 0.1, 0.6 by 0.265.
TEST(WindowMeans, PairedErrorsAreThoseOfTheDifferences) {
  const std::vector<double> a = {1.5, 3.1, 2.6}, b = {1, 3, 2};
  const WindowMean d = mean_difference(a, b);
  EXPECT_NEAR(d.value, 0.4, 1e-12);
  EXPECT_NEAR(*d.error, std::sqrt((0.01 + 0.09 + 0.04) / 2 / 3), 1e-12);
  EXPECT_NEAR(*mean_over(b).error, std::sqrt(1.0 / 3), 1e-12);
  EXPECT_FALSE(mean_over(std::vector<double>{4}).error);
  EXPECT_EQ(mean_difference(a, a), (WindowMean{0, 0}));
}

// exp is linear in the small: the difference of perplexities is P times that of nats, and so is its error.
TEST(WindowMeans, DifferenceOfPerplexities) {
  std::vector<double> b, a;
  for (int w = 0; w < 32; ++w) {
    b.push_back(3.5 + 0.4 * std::sin(w));
    a.push_back(b.back() + 1e-4 * (1 + std::cos(5 * w)));
  }
  const WindowMean nats = mean_difference(a, b), perplexity = perplexity_difference(a, b);
  const double p = std::exp(mean_over(b).value);
  EXPECT_NEAR(perplexity.value, p * nats.value, 1e-3 * p * nats.value);
  EXPECT_NEAR(*perplexity.error, p * *nats.error, 2e-2 * p * *nats.error);
  // As if they were independent, the error would be hundreds of times that.
  EXPECT_GT(p * *mean_over(b).error, 100 * *perplexity.error);
}

}  // namespace
}  // namespace sator
