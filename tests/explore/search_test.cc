// Search over spaces whose best points are known without it.
#include "explore/search.h"

#include <gtest/gtest.h>

#include "temp_folder.h"

namespace sator::explore {
namespace {

/// Latency falls and area rises with each choice, with a valley that a step away from the best does not show.
Evaluated landscape(const Point& p, int) {
  double work = 1000, area = 1;
  for (size_t d = 0; d < p.size(); ++d) {
    work /= 1 + static_cast<double>(p[d]) * static_cast<double>(d + 1);
    area += static_cast<double>(p[d] * p[d]) * (d % 2 == 0 ? 1.0 : 3.0);
  }
  if ((p[0] + p[1]) % 3 == 1) work *= 1.5;
  return {.point = p, .objectives = {work, area}, .violation = area > 400 ? area - 400 : 0, .refused = {}};
}

/// Every point by a loop of its own, and those that none of the others dominates by comparing each with each.
std::set<Point> front_by_force(const std::vector<size_t>& choices) {
  std::vector<Evaluated> all;
  size_t count = 1;
  for (size_t n : choices) count *= n;
  for (size_t number = 0; number < count; ++number) {
    Point p;
    size_t rest = number;
    for (size_t n : choices) p.push_back(rest % n), rest /= n;
    all.push_back(landscape(p, 0));
  }
  std::set<Point> front;
  for (const Evaluated& a : all) {
    bool beaten = a.violation > 0;
    for (const Evaluated& b : all) {
      if (b.violation > 0) continue;
      const bool no_worse = b.objectives[0] <= a.objectives[0] && b.objectives[1] <= a.objectives[1];
      beaten |= no_worse && b.objectives != a.objectives;
    }
    if (!beaten) front.insert(a.point);
  }
  return front;
}

std::set<std::vector<double>> objectives_of(const std::set<Point>& points) {
  std::set<std::vector<double>> all;
  for (const Point& p : points) all.insert(landscape(p, 0).objectives);
  return all;
}

std::set<std::vector<double>> front_of(const SearchResult& r) {
  std::set<std::vector<double>> all;
  for (size_t i : r.front) all.insert(r.evaluated[i].objectives);
  return all;
}

TEST(Search, SmallSpacesAreEvaluatedWhole) {
  const std::vector<size_t> choices = {5, 4, 3};
  const SearchResult r = search(choices, landscape, {.budget = 60});
  EXPECT_TRUE(r.exhaustive);
  EXPECT_EQ(r.evaluated.size(), 60u);
  EXPECT_EQ(front_of(r), objectives_of(front_by_force(choices)));
}

TEST(Search, AFrontHasNoDominatedPointAndKeepsLimits) {
  const SearchResult r = search({12, 12, 12, 12}, landscape, {.budget = 300, .seed = 3});
  EXPECT_FALSE(r.exhaustive);
  EXPECT_EQ(r.evaluated.size(), 300u);
  ASSERT_FALSE(r.front.empty());
  for (size_t i : r.front) {
    EXPECT_EQ(r.evaluated[i].violation, 0);
    for (const Evaluated& other : r.evaluated)
      EXPECT_FALSE(other.allowed() && dominates(other.objectives, r.evaluated[i].objectives));
  }
  std::set<Point> seen;
  for (const Evaluated& e : r.evaluated) EXPECT_TRUE(seen.insert(e.point).second) << "evaluated twice";
}

// The quickest allowed point of 4,096, by evaluating a tenth of them: for seven of ten seeds (at random: one), and for
// all of them one on this side of the valley around the best.
TEST(Search, GuidedFindsTheBestOfAMediumSpace) {
  const std::vector<size_t> choices = {8, 8, 8, 8};
  double best = 1e300;
  for (const std::vector<double>& o : objectives_of(front_by_force(choices))) best = std::min(best, o[0]);
  int found = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const SearchResult r = search(choices, landscape, {.budget = 410, .seed = seed});
    ASSERT_FALSE(r.exhaustive);
    found += r.evaluated[r.front[0]].objectives[0] <= best * (1 + 1e-12);
    EXPECT_LE(r.evaluated[r.front[0]].objectives[0], best * 1.4) << seed;
  }
  EXPECT_GE(found, 7);
}

TEST(Search, ASeedGivesTheSameForAnyNumberOfThreads) {
  auto run = [](uint64_t seed, int threads) {
    std::vector<Point> points;
    for (const Evaluated& e :
         search({9, 9, 9, 9}, landscape, {.budget = 200, .seed = seed, .threads = threads}).evaluated)
      points.push_back(e.point);
    return points;
  };
  EXPECT_EQ(run(5, 1), run(5, 4));
  EXPECT_NE(run(5, 1), run(6, 1));
}

TEST(Search, RefusedPointsAreNeverOnTheFront) {
  const SearchResult r = search({6, 6},
                                [](const Point& p, int) {
                                  if (p[0] == 5) return Evaluated{.point = p, .objectives = {}, .refused = "no"};
                                  return landscape(p, 0);
                                },
                                {.budget = 100});
  for (size_t i : r.front) EXPECT_NE(r.evaluated[i].point[0], 5u);
}

TEST(Search, WhatCannotBeSearchedIsRefused) {
  EXPECT_NE(error_of([] { search({2, 0}, landscape, {}); }).find("no choices"), std::string::npos);
  EXPECT_NE(error_of([] { search({2}, landscape, {.budget = 0}); }).find("a search of 0 points"), std::string::npos);
}

}  // namespace
}  // namespace sator::explore
