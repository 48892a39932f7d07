#include "engine/prompt_lookup.h"

#include <gtest/gtest.h>

namespace sator {
namespace {

using Ids = std::vector<int32_t>;

TEST(PromptLookup, ProposesWhatFollowedBefore) {
  EXPECT_EQ(looked_up(Ids{1, 2, 3, 4, 5, 1, 2, 3}, 2), (Ids{4, 5}));
  EXPECT_EQ(looked_up(Ids{1, 2, 3, 4, 5, 1, 2, 3}, 9), (Ids{4, 5, 1, 2, 3}));
  // Three tokens before two; of several places the latest.
  EXPECT_EQ(looked_up(Ids{1, 2, 3, 7, 9, 2, 3, 8, 1, 2, 3}, 1), Ids{7});
  EXPECT_EQ(looked_up(Ids{2, 3, 7, 2, 3, 8, 2, 3}, 1), Ids{8});
  EXPECT_EQ(looked_up(Ids{5, 5, 5}, 4), Ids{5});
  EXPECT_EQ(looked_up(Ids{1, 2, 3}, 4), Ids{});
  EXPECT_EQ(looked_up(Ids{1, 2, 1, 2}, 0), Ids{});
  EXPECT_EQ(looked_up(Ids{}, 4), Ids{});
}

}  // namespace
}  // namespace sator
