// Expected numbers: transformers 5.23, `ROPE_INIT_FUNCTIONS` and BLOOM's `build_alibi_tensor`, in float32.
#include <gtest/gtest.h>

#include "llm/blocks.h"

namespace sator::llm {
namespace {

void expect_near(const std::vector<float>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 3e-7 * want[i]) << i;
}

using Kind = RopeScaling::Kind;
Rope rope(RopeScaling scaling, double theta = 10000) { return {.theta = theta, .dims = 8, .scaling = scaling}; }

TEST(Rope, Linear) {
  expect_near(rope_frequencies(rope({.kind = Kind::linear, .factor = 4}), 64), {0.25, 0.025, 0.0025, 0.00025});
}

TEST(Rope, DynamicFollowsTheBoundOfTheContext) {
  const Rope r = rope({.kind = Kind::dynamic, .factor = 2, .original_positions = 64});
  expect_near(rope_frequencies(r, 64), {1, 0.1, 0.01, 0.001});
  expect_near(rope_frequencies(r, 200), {1, 0.0575369596, 0.00331050158, 0.000190476188});
}

TEST(Rope, LongropeTakesItsLongFactorsBeyondTheOriginalPositions) {
  const Rope r = rope(
      {.kind = Kind::longrope, .original_positions = 64, .short_factor = {1, 1.5, 2, 4}, .long_factor = {2, 3, 8, 16}});
  expect_near(rope_frequencies(r, 64), {1, 0.0666666701, 0.005, 0.00025});
  expect_near(rope_frequencies(r, 65), {0.5, 0.0333333351, 0.00125, 6.25e-05});
}

TEST(Rope, Llama3) {
  const RopeScaling s = {.kind = Kind::llama3, .factor = 8, .original_positions = 64};
  expect_near(rope_frequencies(rope(s, 500000), 256), {1, 0.00470075384, 0.000176776681, 6.64786967e-06});
}

TEST(Rope, Yarn) {
  const RopeScaling s = {.kind = Kind::yarn, .factor = 4, .original_positions = 64};
  expect_near(rope_frequencies(rope(s), 256), {1, 0.0625, 0.0025, 0.00025});
}

TEST(Alibi, SlopesWhereTheHeadsAreNoPowerOfTwo) {
  expect_near(alibi_slopes(6), {0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125});
  expect_near(alibi_slopes(12),
              {0.5,
               0.25,
               0.125,
               0.0625,
               0.03125,
               0.015625,
               0.0078125,
               0.00390625,
               0.707106769,
               0.353553385,
               0.176776677,
               0.0883883387});
}

}  // namespace
}  // namespace sator::llm
