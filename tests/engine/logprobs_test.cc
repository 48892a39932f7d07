#include "engine/logprobs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "temp_folder.h"

namespace sator {
namespace {

TEST(Logprobs, AreThoseOfTheSoftmax) {
  std::vector<float> logits;
  for (double p : {0.1, 0.4, 0.3, 0.2}) logits.push_back(static_cast<float>(std::log(p) + 7));
  const TokenLogprob third = logprob_of(logits, 3, 2);
  EXPECT_EQ(third.id, 3);
  EXPECT_NEAR(third.logprob, std::log(0.2), 1e-6);
  EXPECT_EQ(third.rank, 3);
  ASSERT_EQ(third.best.size(), 2u);
  EXPECT_EQ(third.best[0].id, 1);
  EXPECT_NEAR(third.best[0].logprob, std::log(0.4), 1e-6);
  EXPECT_EQ(third.best[1].id, 2);
  EXPECT_NEAR(third.best[1].logprob, std::log(0.3), 1e-6);
  EXPECT_TRUE(logprob_of(logits, 0, 0).best.empty());
  EXPECT_EQ(logprob_of(logits, 0, 9).best.size(), 4u);
}

TEST(Logprobs, OfEqualLogitsTheLowerIdComesFirst) {
  const std::vector<float> logits = {1, 2, 2, -INFINITY};
  EXPECT_EQ(logprob_of(logits, 1, 2).rank, 1);
  EXPECT_EQ(logprob_of(logits, 2, 2).rank, 2);
  EXPECT_EQ(logprob_of(logits, 2, 2).best[0].id, 1);
  EXPECT_EQ(logprob_of(logits, 3, 0).logprob, -INFINITY);
}

TEST(Logprobs, RefuseWhatIsNoDistribution) {
  EXPECT_NE(error_of([] { logprob_of(std::vector<float>{1, NAN}, 0, 1); }), "");
  EXPECT_NE(error_of([] { logprob_of(std::vector<float>{1, 2}, 2, 1); }), "");
}

}  // namespace
}  // namespace sator
