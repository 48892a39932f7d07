// Threads that share work, and objects that threads share.
#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "base/object.h"

namespace sator {
namespace {

struct Counted final : Object {
  explicit Counted(std::atomic<int>& alive) : alive(alive) { ++alive; }
  ~Counted() override { --alive; }
  std::atomic<int>& alive;
};

TEST(Threads, CallEachNumberOnceAndReturnWhenAllHave) {
  for (int threads : {-1, 0, 1, 2, 7}) {
    std::vector<std::atomic<int>> calls(8);
    run_on_threads(threads, [&](int t) { ++calls.at(static_cast<size_t>(t)); });
    for (int t = 0; t < 8; ++t)
      EXPECT_EQ(calls[static_cast<size_t>(t)], t < std::max(threads, 1) ? 1 : 0) << threads << ", " << t;
    EXPECT_FALSE(SharedObjects::any());
  }
}

// Counts of objects that several threads take and give back neither lose one nor keep one.
TEST(Threads, ShareObjects) {
  std::atomic<int> alive = 0;
  {
    std::vector<Ref<Counted>> objects;
    for (int i = 0; i < 4; ++i) objects.emplace_back(new Counted(alive));
    run_on_threads(4, [&](int t) {
      EXPECT_TRUE(SharedObjects::any());
      for (int n = 0; n < 200'000; ++n) {
        Ref<Counted> mine = objects[static_cast<size_t>((n + t) % 4)], other = mine;
        mine = nullptr;
        EXPECT_EQ(&other->alive, &alive);
      }
    });
    EXPECT_EQ(alive, 4);
    std::vector<Ref<Counted>> copies = objects;
    objects.clear();
    EXPECT_EQ(alive, 4);
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace sator
