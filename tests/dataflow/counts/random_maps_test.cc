// The two counters against each other on random small problems: boxes must equal the list of all points, or
// refuse.
#include <gtest/gtest.h>

#include <map>

#include "dataflow/counts/counts.h"
#include "dataflow/counts/enumerate.h"
#include "dataflow/counts/random_problem.h"

namespace sator::dataflow {
namespace {

void expect_equal(const Counts& got, const Counts& want) {
  EXPECT_EQ(got.macs, want.macs);
  EXPECT_EQ(got.pe_array, want.pe_array);
  EXPECT_EQ(got.space, want.space);
  EXPECT_EQ(got.time, want.time);
  EXPECT_EQ(got.spacetime, want.spacetime);
  EXPECT_EQ(got.outside_array, want.outside_array);
  if (got.work_cycles) {
    EXPECT_EQ(got.work_cycles, want.work_cycles);
  }
  ASSERT_EQ(got.tensors.size(), want.tensors.size());
  for (size_t i = 0; i < got.tensors.size(); ++i) {
    const TensorCounts &g = got.tensors[i], &w = want.tensors[i];
    SCOPED_TRACE(g.tensor);
    EXPECT_EQ(g.total, w.total);
    EXPECT_EQ(g.assigned, w.assigned);
    EXPECT_EQ(g.unique, w.unique);
    EXPECT_EQ(g.temporal_hits, w.temporal_hits);
    EXPECT_EQ(g.spatial_hits, w.spatial_hits);
    EXPECT_EQ(g.footprint, w.footprint);
  }
}

// A loop cut by 12, whose halves together pick a group of 32: neither divides the other, and the two are one iterator.
TEST(RandomMaps, DigitsOfOneIteratorPickAGroup) {
  const QuasiAffine j = variable(0), k = variable(1) * 12 + variable(2);
  Problem p;
  p.statement.name = "S";
  p.statement.domain = Domain::box({"j", "k_0", "k_1"}, {14, 64, 12});
  p.statement.accesses = {{"A", Role::read, {{k}}},
                          {"W", Role::read, {{j, k}}},
                          {"scale", Role::read, {{j, floor_div(k, 32)}}},
                          {"C", Role::write, {{j}}}};
  p.mapping.space = {variable(2), j};
  p.mapping.time = {variable(1)};
  p.array.pes = Domain::box({"row", "column"}, {12, 14});
  const auto boxes = count_by_boxes(p), points = enumerate(p, 1 << 16);
  ASSERT_TRUE(std::holds_alternative<Counts>(boxes)) << std::get<Reason>(boxes).render();
  expect_equal(std::get<Counts>(boxes), std::get<Counts>(points));
}

TEST(RandomMaps, BoxesEqualEnumeration) {
  constexpr int kProblems = 6000;
  int refused = 0;
  std::map<std::string, int> reasons;
  for (int seed = 0; seed < kProblems; ++seed) {
    Problem p = RandomProblem(static_cast<uint64_t>(seed)).draw();
    auto boxes = count_by_boxes(p);
    if (auto* reason = std::get_if<Reason>(&boxes)) {
      ++refused;
      ++reasons[reason->needs];
      continue;
    }
    auto points = enumerate(p, 1 << 16);
    ASSERT_TRUE(std::holds_alternative<Counts>(points)) << std::get<Reason>(points).render();
    expect_equal(std::get<Counts>(boxes), std::get<Counts>(points));
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << show(p);
  }
  for (const auto& [needs, times] : reasons) printf("refused %d: needs %s\n", times, needs.c_str());
  // The class is wide: a refusal is the exception.
  EXPECT_LT(refused, kProblems / 20);
}

TEST(RandomMaps, InvariantsHold) {
  int checked = 0;
  for (uint64_t seed = 100000; seed < 102000; ++seed) {
    Problem p = RandomProblem(seed).draw();
    auto counted = count_by_boxes(p);
    if (std::holds_alternative<Reason>(counted)) continue;
    const Counts& c = std::get<Counts>(counted);
    SCOPED_TRACE(show(p));
    EXPECT_LE(c.spacetime, c.macs);
    EXPECT_LE(c.spacetime, c.time * c.space);
    if (c.work_cycles) {
      EXPECT_GE(*c.work_cycles, c.time);
      EXPECT_GE(*c.work_cycles * c.space, c.macs);
    }
    // Wires that all lead towards smaller coordinates form no cycle.
    bool acyclic = true;
    for (const Link& l : p.array.interconnect) {
      std::vector<int64_t> from(l.source.size() + static_cast<size_t>(l.free_variables), 1);
      acyclic &= l.free_variables == 0 && l.guards.empty() &&
                 evaluate(l.source, from) < std::vector<int64_t>(l.source.size(), 1);
      for (const QuasiAffine& e : l.source) acyclic &= e.terms.size() == 1 && !e.terms[0].division;
    }
    for (const TensorCounts& t : c.tensors) {
      EXPECT_LE(t.assigned, t.total);
      EXPECT_LE(t.unique, t.assigned);
      EXPECT_GE(t.unique, t.assigned - t.temporal_hits - t.spatial_hits);
      EXPECT_LE(t.temporal_hits, t.assigned);
      EXPECT_LE(t.spatial_hits, t.assigned);
      EXPECT_LE(t.footprint, t.assigned);
      if (acyclic && !c.outside_array) {
        EXPECT_LE(t.footprint, t.unique);
      }
    }
    // One more wire never raises what must come from outside.
    Problem wired = p;
    wired.array.interconnect.push_back(link::shift(std::vector<int64_t>(p.mapping.space.size(), -1)));
    auto more = count_by_boxes(wired);
    ASSERT_TRUE(std::holds_alternative<Counts>(more));
    for (size_t i = 0; i < c.tensors.size(); ++i)
      EXPECT_LE(std::get<Counts>(more).tensors[i].unique, c.tensors[i].unique);
    ASSERT_FALSE(HasFailure());
    ++checked;
  }
  EXPECT_GT(checked, 1900);
}

// What a general scan of the array must find, the catalogue's shortcuts must find too.
TEST(RandomMaps, BusAndLeaderAreWhatTheirPairsSay) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Problem p = RandomProblem(seed).draw();
    const int rank = static_cast<int>(p.mapping.space.size());
    Problem bus = p, pairs = p;
    bus.array.interconnect = {link::bus(rank, 0)};
    pairs.array.interconnect.clear();
    for (int64_t d = 1; d < p.array.pes.extent[0] + 16; ++d) {
      std::vector<int64_t> offset(static_cast<size_t>(rank), 0);
      offset[0] = -d;
      pairs.array.interconnect.push_back(link::shift(offset));
    }
    auto a = count_by_boxes(bus), b = count_by_boxes(pairs);
    ASSERT_EQ(a.index(), b.index());
    if (a.index() != 0) continue;
    expect_equal(std::get<Counts>(a), std::get<Counts>(b));
    ASSERT_FALSE(HasFailure()) << show(p);
  }
}

}  // namespace
}  // namespace sator::dataflow
