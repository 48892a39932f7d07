#include "study/words.h"

#include <gtest/gtest.h>

#include <limits>

namespace sator::study {
namespace {

TEST(Words, Perplexities) {
  EXPECT_EQ(perplexity_text(32.46789), "32.468");
  EXPECT_EQ(perplexity_text(1234.5), "1234");  // ties to even, as printf rounds
  EXPECT_EQ(perplexity_text(7.7e12), "7.7e+12");
  EXPECT_EQ(perplexity_text(std::nullopt), "-");
  EXPECT_EQ(perplexity_text(std::numeric_limits<double>::infinity()), "inf");
}

}  // namespace
}  // namespace sator::study
