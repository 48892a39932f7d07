// Closed forms of GEMMs against the general engine and against the list of points, for every kind of nest.
#include "dataflow/counts/gemm_forms.h"

#include <gtest/gtest.h>

#include <random>

#include "dataflow/counts/enumerate.h"

namespace sator::dataflow {
namespace {

GemmNest draw(std::mt19937_64& random, int64_t extent, int64_t side) {
  auto pick = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
  // Ones, sizes around the array's, and any: raggedness and tiles of one PE.
  auto size = [&] { return pick(0, 4) == 0 ? 1 : pick(0, 2) == 0 ? side + pick(-1, 1) : pick(1, extent); };
  auto at_least_one = [](int64_t v) { return std::max<int64_t>(v, 1); };
  return {.i = at_least_one(size()),
          .j = at_least_one(size()),
          .k = at_least_one(size()),
          .rows = pick(1, side),
          .columns = pick(1, side),
          .stays = static_cast<GemmNest::Stays>(pick(0, 2)),
          .skewed = pick(0, 1) == 1,
          .wired = pick(0, 3) > 0,
          .lanes = pick(0, 2) == 0 ? pick(2, 5) : 1,
          .row_tiles_inside = pick(0, 1) == 1};
}

std::string words(const GemmNest& n) {
  return testing::PrintToString(std::vector<int64_t>{
      n.i, n.j, n.k, n.rows, n.columns, static_cast<int64_t>(n.stays), n.skewed, n.wired, n.lanes, n.row_tiles_inside});
}

void expect_equal(const GemmTensor& form, const TensorCounts& counted) {
  SCOPED_TRACE(counted.tensor);
  EXPECT_EQ(form.total, counted.total);
  EXPECT_EQ(form.assigned, counted.assigned);
  EXPECT_EQ(form.unique, counted.unique);
  EXPECT_EQ(form.temporal_hits, counted.temporal_hits);
  EXPECT_EQ(form.spatial_hits, counted.spatial_hits);
  EXPECT_EQ(form.footprint, counted.footprint);
}

void expect_equal(const GemmCounts& form, const Counts& counted) {
  EXPECT_EQ(form.macs, counted.macs);
  EXPECT_EQ(form.space, counted.space);
  EXPECT_EQ(form.time, counted.time);
  EXPECT_EQ(form.spacetime, counted.spacetime);
  if (counted.work_cycles) {
    EXPECT_EQ(form.work_cycles, *counted.work_cycles);
  }
  expect_equal(form.a, counted.tensors[0]);
  expect_equal(form.b, counted.tensors[1]);
  expect_equal(form.c, counted.tensors[2]);
}

TEST(GemmForms, EqualTheEngine) {
  std::mt19937_64 random(3);
  int formed = 0;
  constexpr int kNests = 3000;
  for (int round = 0; round < kNests; ++round) {
    const GemmNest nest = draw(random, 5000, 256);
    SCOPED_TRACE(words(nest));
    const std::optional<GemmCounts> form = gemm_counts(nest);
    if (!form) continue;
    ++formed;
    auto counted = count_by_boxes(problem_of(nest));
    ASSERT_TRUE(std::holds_alternative<Counts>(counted)) << std::get<Reason>(counted).render();
    expect_equal(*form, std::get<Counts>(counted));
    ASSERT_FALSE(HasFailure());
  }
  // Only nests of single PEs have no form.
  EXPECT_GT(formed, kNests * 95 / 100);
}

TEST(GemmForms, EqualTheListOfPoints) {
  std::mt19937_64 random(4);
  int formed = 0;
  constexpr int kNests = 1500;
  for (int round = 0; round < kNests; ++round) {
    const GemmNest nest = draw(random, 11, 4);
    SCOPED_TRACE(words(nest));
    const std::optional<GemmCounts> form = gemm_counts(nest);
    if (!form) continue;
    ++formed;
    auto counted = enumerate(problem_of(nest), 1 << 16);
    ASSERT_TRUE(std::holds_alternative<Counts>(counted)) << std::get<Reason>(counted).render();
    expect_equal(*form, std::get<Counts>(counted));
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(formed, kNests * 85 / 100);
}

TEST(GemmForms, RefuseWhatTheyDoNotHold) {
  EXPECT_FALSE(gemm_counts({.i = 0}));
  EXPECT_FALSE(gemm_counts({.i = 4, .j = 4, .k = 1, .rows = 1, .columns = 1}));  // each tile is one PE at one stamp
  EXPECT_FALSE(gemm_counts({.i = 1 << 21, .j = 1 << 21, .k = 1 << 21, .rows = 8, .columns = 8}));
}

}  // namespace
}  // namespace sator::dataflow
