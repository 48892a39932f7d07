#include "dataflow/counts/space_time.h"

#include <gtest/gtest.h>

#include "dataflow/counts/gemm.h"
#include "dataflow/counts/random_problem.h"

namespace sator::dataflow {
namespace {

constexpr SpaceTimeLimits kAll{.stamps = 1 << 20, .pes = 1 << 12};

/// A diagram of everything has the counts of the whole, tensor by tensor.
void expect_counts(const Problem& problem, const Counts& counts) {
  const SpaceTime all = space_time(problem, kAll);
  EXPECT_EQ(static_cast<int64_t>(all.stamps.size()), counts.time);
  EXPECT_TRUE(std::is_sorted(all.stamps.begin(), all.stamps.end()));
  ASSERT_EQ(all.tensors.size(), counts.tensors.size());
  for (size_t t = 0; t < counts.tensors.size(); ++t) {
    int64_t kept = 0, neighbour = 0, memory = 0;
    for (const SpaceTimeCell& c : all.tensors[t].cells) kept += c.kept, neighbour += c.neighbour, memory += c.memory;
    EXPECT_EQ(all.tensors[t].tensor, counts.tensors[t].tensor);
    EXPECT_EQ(memory, counts.tensors[t].unique);
    EXPECT_EQ(kept + neighbour + memory, counts.tensors[t].assigned);
    if (!counts.outside_array) EXPECT_EQ(kept, counts.tensors[t].temporal_hits);
  }
}

TEST(SpaceTime, AllOfItHasTheCountsOfTheWhole) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Problem p = RandomProblem(seed).draw();
    auto counted = enumerate(p, 1 << 20);
    ASSERT_TRUE(std::holds_alternative<Counts>(counted)) << seed;
    SCOPED_TRACE(show(p));
    expect_counts(p, std::get<Counts>(counted));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(SpaceTime, BusesAndLeadersSupply) {
  for (const Link& link : {link::bus(2, 1), link::leader(2, 0), link::wrap(2, 1, 1, 3)}) {
    const Problem p{gemm(6, 6, 4), stationary(Flow::os, 3, 3, false), {Domain::box({"x", "y"}, {3, 3}), {link}}};
    auto counted = enumerate(p, 1 << 20);
    ASSERT_TRUE(std::holds_alternative<Counts>(counted));
    expect_counts(p, std::get<Counts>(counted));
  }
}

// Output-stationary, skewed, 4 x 4 PEs: at stamp t the PE (r, c) works on k = t - r - c. Column 0 has A from memory, the others
// from the left one stamp ago; C comes once and stays.
TEST(SpaceTime, ASystolicArrayByHand) {
  const int64_t kDepth = 1 << 20;
  const Problem p{gemm(1 << 12, 1 << 12, kDepth), stationary(Flow::os, 4, 4, true), systolic(4, 4)};
  const SpaceTime first = space_time(p, {.stamps = 12, .pes = 16});
  ASSERT_EQ(first.stamps.size(), 12U);
  EXPECT_EQ(first.stamps[11], (std::vector<int64_t>{0, 0, 11}));
  ASSERT_EQ(first.pes.size(), 16U);
  for (const SpaceTimeTensor& tensor : first.tensors) {
    size_t cells = 0;
    for (const SpaceTimeCell& c : tensor.cells) {
      const int64_t row = first.pes[c.pe][0], column = first.pes[c.pe][1], t = static_cast<int64_t>(c.stamp);
      ASSERT_GE(t, row + column);
      ++cells;
      const Supply expected = tensor.tensor == "A"   ? (column == 0 ? Supply::memory : Supply::neighbour)
                              : tensor.tensor == "B" ? (row == 0 ? Supply::memory : Supply::neighbour)
                              : t == row + column    ? Supply::memory
                                                     : Supply::kept;
      EXPECT_EQ(c.supply(), expected) << tensor.tensor << " at " << row << ", " << column << ", stamp " << t;
    }
    EXPECT_EQ(cells, 16U * 12 - 16 * 3);  // each PE begins row + column stamps late, 3 on average
  }
}

TEST(SpaceTime, ShowsACornerOfALargeArray) {
  const Problem p{gemm(1 << 12, 1 << 12, 1 << 12), stationary(Flow::ws, 256, 256, true), systolic(256, 256)};
  const SpaceTime first = space_time(p, {.stamps = 8, .pes = 32});
  EXPECT_LE(first.pes.size(), 32U);
  EXPECT_GE(first.pes.size(), 25U);
  EXPECT_EQ(first.stamps.size(), 8U);
  EXPECT_THROW(space_time(p, {.stamps = 8, .pes = 32, .boxes = 100}), Error);
}

TEST(SpaceTime, NothingRuns) {
  Problem p{gemm(0, 4, 4), stationary(Flow::os, 2, 2, false), systolic(2, 2)};
  EXPECT_TRUE(space_time(p).pes.empty());
  EXPECT_TRUE(space_time(p).stamps.empty());
}

}  // namespace
}  // namespace sator::dataflow
