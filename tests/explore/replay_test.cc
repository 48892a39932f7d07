// A mapping that was found is a schedule: replayed on the product's program it has the counts of the mapping.
#include <gtest/gtest.h>

#include "dataflow/cost/scheduled.h"
#include "dataflow/programs/from_tir.h"
#include "dataflow/programs/matmul_program.h"
#include "explore/explore.h"
#include "schedule/script.h"
#include "temp_folder.h"
#include "tir/parse.h"

namespace sator::explore {
namespace {

using namespace dataflow;

TEST(Replay, AFoundMappingIsAScheduleOfEqualCost) {
  const Chip base = find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/gemmini16.toml");
  const Matmul matmuls[] = {
      {.i = 64, .j = 96, .k = 128},
      {.i = 64, .j = 100, .k = 130, .float_bits = 32},
      {.i = 48, .j = 64, .k = 256, .scale = ScalePer::channel, .weight_bits = 8, .activation_bits = 8}};
  for (const Matmul& m : matmuls) {
    const KernelSpace space(
        ChipSpace(
            base,
            {.arrays = {{8, 16}, {16, 16}}, .dataflows = {Stationary::output, Stationary::weight}, .cores = {1, 3}}),
        {{matmul_kernel(m)}},
        3,
        {});
    const tir::PrimFuncRef program = tir::parse_function(matmul_program(m));
    const SearchResult r =
        search(space.choices(), [&](const Point& p, int) { return space.evaluate(p); }, {.budget = 24});
    ASSERT_FALSE(r.front.empty());
    for (size_t i : r.front) {
      const Chip chip = space.chips().at(r.evaluated[i].point);
      const KernelCost cost = space.costs(r.evaluated[i].point)[0];
      const ScheduledFunction scheduled = schedule_as_costed(program, "matmul", cost);
      // From the trace alone: the steps replayed on the program as it was.
      schedule::Schedule s(program, "matmul");
      schedule::Script(s).run(scheduled.trace);
      const TirWork again = work_of(*s.func(), facts_of(m), &chip);
      ASSERT_EQ(again.placements.size(), 1u);
      ASSERT_TRUE(again.placements[0].has_value());
      const KernelCost replayed = CostEngine(chip).cost(again.kernel, again.placements);
      const StatementCost* found = nullptr;
      for (const StatementCost& statement : cost.statements)
        if (statement.on_array()) found = &statement;
      ASSERT_EQ(replayed.statements.size(), 1u);
      const StatementCost& other = replayed.statements[0];
      EXPECT_EQ(found->array_cycles(), other.array_cycles());
      EXPECT_EQ(found->macs, other.macs);
      EXPECT_EQ(found->counts->space, other.counts->space);
      EXPECT_EQ(found->counts->time, other.counts->time);
      for (size_t t = 0; t < 3; ++t) {
        EXPECT_EQ(found->counts->tensors[t].unique, other.counts->tensors[t].unique);
        EXPECT_EQ(found->counts->tensors[t].spatial_hits, other.counts->tensors[t].spatial_hits);
      }
      // Without work beside the product the whole cost is equal.
      if (m.scale == ScalePer::none) EXPECT_EQ(difference(cost, replayed), "");
    }
  }
}

}  // namespace
}  // namespace sator::explore
