#include "study/svg_space_time.h"

#include <gtest/gtest.h>

#include "base/figures.h"
#include "base/text.h"
#include "dataflow/counts/relation.h"
#include "study/markup.h"

namespace sator::study {
namespace {

using namespace dataflow;

/// C[i,j] += A[i,k] * B[k,j] on 2 x 2 PEs that keep C; operands come from the left and from above.
Problem small() {
  Problem p;
  p.statement.domain = Domain::box({"i", "j", "k"}, {2, 2, 3});
  p.statement.accesses = {{"A", Role::read, {{variable(0), variable(2)}}},
                          {"B", Role::read, {{variable(2), variable(1)}}},
                          {"C", Role::write, {{variable(0), variable(1)}}}};
  p.mapping = {{variable(0), variable(1)}, {variable(0) + variable(1) + variable(2)}};
  p.array = {Domain::box({"x", "y"}, {2, 2}), {link::shift({-1, 0}), link::shift({0, -1})}};
  return p;
}

size_t count_of(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(SpaceTimePlot, LegendHasTheEnginesCounts) {
  const Counts counts = std::get<Counts>(count(small()));
  const std::string svg = space_time_plot(space_time(small()), counts, "diagram");
  EXPECT_EQ(nesting_error(svg), "");
  // 12 triples each: A and B come into one column or row of two, and from there to the other; C comes once into each PE.
  EXPECT_EQ(count_of(svg, ">from memory 50.0 %<"), 2U);
  EXPECT_EQ(count_of(svg, ">neighbour 50.0 %<"), 2U);
  EXPECT_EQ(count_of(svg, ">from memory 33.3 %<"), 1U);
  EXPECT_EQ(count_of(svg, ">kept 66.7 %<"), 1U);
  for (const TensorCounts& t : counts.tensors) {
    const SupplyShares s = shares_of(t);
    EXPECT_EQ(s.all(), t.assigned);
    EXPECT_EQ(s.memory, t.unique);
    EXPECT_EQ(s.kept, t.temporal_hits);
  }
  EXPECT_NE(svg.find("stamps 5 of 5, PEs 4 of 4"), std::string::npos);
}

// C's PE (0,0) has its element at stamp 0 and keeps it for two more: one square, one line of two cells.
TEST(SpaceTimePlot, CellsAreWhereTheyHappen) {
  const SpaceTime shown = space_time(small());
  const std::string svg = space_time_plot(shown, std::get<Counts>(count(small())), "diagram");
  ASSERT_EQ(shown.stamps.size(), 5U);
  const double cell = 12;  // as wide as it gets: 5 stamps fit easily
  EXPECT_EQ(count_of(svg, text("width=\"", coordinate(5 * cell), "\" height=\"", coordinate(4 * cell), "\"")), 3U);
  EXPECT_EQ(count_of(svg, text("h", fixed(2 * cell, 1), "v")), 4U);  // a line of two cells in each of four PEs
}

TEST(SpaceTimePlot, AFileStandsAlone) {
  const std::string file = svg_file(space_time_plot(space_time(small()), std::get<Counts>(count(small())), "a \"b\""));
  EXPECT_TRUE(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox="));
  EXPECT_EQ(nesting_error(file), "");
  EXPECT_NE(file.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(space_time_plot({}, {}, "none").find("nothing to show"), std::string::npos);
}

}  // namespace
}  // namespace sator::study
