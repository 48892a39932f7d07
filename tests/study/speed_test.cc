#include "study/speed.h"

#include <gtest/gtest.h>

#include <string>

#include "study/clock.h"

namespace sator::study {
namespace {

TEST(Speed, IsMeasuredInTurns) {
  std::string order;
  auto probe = [&](char name, double speed) {
    return SpeedProbe([&order, name, speed]() -> std::array<double, 2> {
      order += name;
      return {speed + static_cast<double>(order.size()) / 100, 2 * speed};
    });
  };
  const std::vector<SpeedProbe> probes = {probe('a', 10), probe('b', 20), probe('c', 30)};
  const auto speeds = measure_in_turns(probes);
  EXPECT_EQ(order, "abcabcabcabcabc");
  // b is second of each turn: 20.02, 20.05, 20.08, 20.11, 20.14.
  EXPECT_NEAR(speeds[1][0].least, 20.02, 1e-12);
  EXPECT_NEAR(speeds[1][0].median, 20.08, 1e-12);
  EXPECT_NEAR(speeds[1][0].most, 20.14, 1e-12);
  EXPECT_EQ(speeds[2][1], (HostSpeed{60, 60, 60}));
}

// c is disturbed in its first rounds: it runs once more, with the first probe, and those figures count.
TEST(Speed, WhatIsUnsteadyIsMeasuredAgain) {
  std::string order;
  auto probe = [&](char name, int disturbed) {
    return SpeedProbe([&order, name, disturbed]() -> std::array<double, 2> {
      order += name;
      const auto calls = std::count(order.begin(), order.end(), name);
      return {calls <= disturbed && calls % 2 ? 50.0 : 100.0, 7};
    });
  };
  std::vector<SpeedProbe> probes = {probe('a', 0), probe('b', 0), probe('c', 3)};
  auto speeds = measure_in_turns(probes);
  EXPECT_EQ(order,
            "abcabcabcabcabc"
            "acacacacac");
  EXPECT_EQ(speeds[2][0], (HostSpeed{100, 100, 100}));
  EXPECT_FALSE(speeds[2][0].is_unsteady());
  // One that stays so is measured three times in all, and is seen to be unsteady.
  order.clear();
  probes = {probe('a', 1000)};
  speeds = measure_in_turns(probes);
  EXPECT_EQ(order.size(), 15U);
  EXPECT_EQ(speeds[0][0].least, 50);
  EXPECT_EQ(speeds[0][0].most, 100);
  EXPECT_TRUE(speeds[0][0].is_unsteady());
}

TEST(Speed, TenPercentIsSteady) {
  EXPECT_FALSE((HostSpeed{100, 95, 105}.is_unsteady()));
  EXPECT_TRUE((HostSpeed{100, 94, 105}.is_unsteady()));
}

TEST(Clock, SaysWhen) {
  EXPECT_LE(std::abs(*seconds_since(utc_now())), 2);
  EXPECT_GT(*seconds_since("1970-01-01T00:00:10Z"), 1'700'000'000);
  EXPECT_FALSE(seconds_since("yesterday"));
  EXPECT_FALSE(seconds_since("2026-11-22T20:45:03Z and more"));
  EXPECT_FALSE(seconds_since(""));
  EXPECT_EQ(ago_words(1), "1 second ago");
  EXPECT_EQ(ago_words(119), "119 seconds ago");
  EXPECT_EQ(ago_words(720), "12 minutes ago");
}

}  // namespace
}  // namespace sator::study
