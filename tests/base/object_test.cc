// Memory of objects.
#include "base/object.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/pooled.h"
#include "base/threads.h"

namespace sator {
namespace {

template <size_t kBytes>
struct Sized final : Object {
  explicit Sized(int n) { bytes.fill(static_cast<char>(n)); }
  bool holds(int n) const {
    return std::ranges::all_of(bytes, [&](char c) { return c == static_cast<char>(n); });
  }
  std::array<char, kBytes> bytes;
};

// What lives is never given out again, whatever sizes come and go.
template <size_t kBytes>
void take_and_give(int seed) {
  std::vector<Ref<Sized<kBytes>>> alive;
  std::vector<int> written;
  for (int n = 0; n < 20'000; ++n) {
    const int value = (n * 31 + seed) % 127;
    if (n % 3 == 2) {
      const size_t at = static_cast<size_t>(n) * 7919 % alive.size();
      ASSERT_TRUE(alive[at]->holds(written[at])) << kBytes;
      alive[at] = Ref<Sized<kBytes>>(new Sized<kBytes>(value));
      written[at] = value;
    } else {
      alive.emplace_back(new Sized<kBytes>(value));
      written.push_back(value);
    }
    if (n % 5'000 == 4'999) alive.resize(alive.size() / 4), written.resize(alive.size());
  }
  for (size_t i = 0; i < alive.size(); ++i) ASSERT_TRUE(alive[i]->holds(written[i])) << kBytes;
}

TEST(ObjectMemory, KeepsWhatLives) {
  take_and_give<1>(1);
  take_and_give<16>(2);
  take_and_give<40>(3);
  take_and_give<240>(4);
  take_and_give<241>(5);
  take_and_give<3000>(6);
}

struct alignas(128) Aligned final : Object {
  explicit Aligned(int n) : n(n) {}
  int n;
};

TEST(ObjectMemory, KeepsTheAlignmentOfAClass) {
  std::vector<Ref<Aligned>> alive;
  for (int n = 0; n < 100; ++n) {
    alive.emplace_back(new Aligned(n));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(alive.back().get()) % 128, 0u);
    if (n % 3 == 0) alive.erase(alive.begin());
  }
}

// Taken by one thread, given back by another, which ends.
TEST(ObjectMemory, MovesBetweenThreads) {
  for (int round = 0; round < 20; ++round) {
    std::vector<Ref<Sized<40>>> made;
    {
      const SharedObjects shared;
      std::thread maker([&] {
        for (int n = 0; n < 6'000; ++n) made.emplace_back(new Sized<40>(n % 127));
      });
      maker.join();
      std::thread taker([&] {
        for (int n = 0; n < 6'000; ++n) {
          ASSERT_TRUE(made[static_cast<size_t>(n)]->holds(n % 127));
          if (n % 2 == 0) made[static_cast<size_t>(n)] = nullptr;
        }
      });
      taker.join();
    }
    for (int n = 1; n < 6'000; n += 2) ASSERT_TRUE(made[static_cast<size_t>(n)]->holds(n % 127));
  }
}

// The same operations on the standard allocator's containers, at sizes on both sides of what the lists keep.
TEST(Pooled, ContainersHoldWhatTheStandardOnesHold) {
  std::mt19937 random(7);
  PooledVector<std::string> vector;
  std::vector<std::string> expected_vector;
  PooledMap<int, std::string> map;
  std::map<int, std::string> expected_map;
  PooledSet<int> set;
  std::set<int> expected_set;
  PooledVector<bool> bits;
  std::vector<bool> expected_bits;
  for (int n = 0; n < 20'000; ++n) {
    const int key = static_cast<int>(random() % 500);
    std::string word(random() % 60, static_cast<char>('a' + n % 26));
    if (random() % 3 == 0) {
      EXPECT_EQ(map.erase(key), expected_map.erase(key));
      EXPECT_EQ(set.erase(key), expected_set.erase(key));
    } else {
      map[key] = expected_map[key] = word;
      set.insert(key), expected_set.insert(key);
    }
    vector.push_back(word), expected_vector.push_back(std::move(word));
    bits.push_back(key % 2 == 0), expected_bits.push_back(key % 2 == 0);
    if (random() % 400 == 0) vector.clear(), expected_vector.clear(), bits = {}, expected_bits = {};
    if (random() % 400 == 0) map.clear(), expected_map.clear(), vector.shrink_to_fit();
  }
  EXPECT_TRUE(std::ranges::equal(vector, expected_vector));
  EXPECT_TRUE(std::ranges::equal(bits, expected_bits));
  EXPECT_EQ((std::map<int, std::string>(map.begin(), map.end())), expected_map);
  EXPECT_EQ((std::set<int>(set.begin(), set.end())), expected_set);
}

TEST(Pooled, RefusesMoreThanMemoryCanHold) {
  EXPECT_THROW(PooledAllocator<int64_t>().allocate(size_t{1} << 61), std::bad_array_new_length);
}

}  // namespace
}  // namespace sator
