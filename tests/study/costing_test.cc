#include "study/costing.h"

#include <gtest/gtest.h>

#include "dataflow/programs/matmul.h"
#include "study/sample.h"

namespace sator::study {
namespace {

PhaseKernel kernel(const dataflow::Kernel& k, const std::string& layer, int64_t count) {
  return {.calls = {k.name, layer, count, {}}, .work = {k, {}, {}}, .func = {}, .facts = {}, .refused = {}};
}

TEST(ChipCoster, CostsAndChecksEachKernel) {
  ChipCoster coster(shipped("edge_npu32"));
  const dataflow::Kernel small = linear("small", 1, 256, 64, 8, false, 8),
                         large = linear("large", 128, 768, 256, 8, false, 8);
  std::vector<PhaseKernel> kernels = {kernel(small, "h.0", 2), kernel(large, "h.1", 1)};
  kernels[0].work.notes = {"rows are taken as distinct"};
  const PhaseResult phase = coster.cost(kernels);
  EXPECT_EQ(phase.kernels, 2);
  EXPECT_EQ(phase.kernels_costed, 2);
  EXPECT_EQ(phase.kernels_checked, 1);  // 16384 instances are listed, 25 million are not
  EXPECT_EQ(phase.cost.macs, 2 * 256 * 64 + 128 * 768 * 256);
  EXPECT_EQ(phase.notes, std::vector<std::string>{"rows are taken as distinct"});
  dataflow::CostEngine engine(shipped("edge_npu32"));
  EXPECT_EQ(phase.cost.latency_cycles, 2 * engine.cost(small).latency_cycles + engine.cost(large).latency_cycles);
}

TEST(ChipCoster, ARefusedKernelIsNamed) {
  ChipCoster coster(shipped("edge_npu32"));
  dataflow::Kernel broken = linear("broken", 4, 4, 4, 8, false, 8);
  broken.work[0].operands.pop_back();
  const PhaseResult phase = coster.cost(
      std::vector<PhaseKernel>{kernel(broken, "", 1), kernel(linear("whole", 4, 4, 4, 8, false, 8), "", 1)});
  EXPECT_EQ(phase.kernels, 2);
  EXPECT_EQ(phase.kernels_costed, 1);
  EXPECT_EQ(phase.cost.macs, 64);
  ASSERT_EQ(phase.notes.size(), 1U);
  EXPECT_TRUE(phase.notes[0].starts_with("broken has no cost: ")) << phase.notes[0];
}

// What the goal asks for is had by no other goal: 512 x 512 x 512 on gemmini16 has quicker and more frugal mappings.
TEST(ChipCoster, TheGoalChoosesMappings) {
  const dataflow::Kernel product = dataflow::matmul_kernel(
      {.i = 512, .j = 512, .k = 512, .scale = dataflow::ScalePer::channel, .weight_bits = 8, .activation_bits = 8});
  auto cost_for = [&](const dataflow::Goal& goal) {
    return ChipCoster(shipped("gemmini16"), goal).cost(std::vector<PhaseKernel>{kernel(product, "", 1)}).cost;
  };
  const Cost quick = cost_for({}), frugal = cost_for({.objective = dataflow::Objective::energy}),
             within = cost_for({.energy_within = 0.02});
  EXPECT_LT(frugal.energy_j, 0.9 * quick.energy_j);
  EXPECT_LT(quick.latency_cycles, frugal.latency_cycles);
  EXPECT_LT(within.energy_j, quick.energy_j);
  EXPECT_LE(static_cast<double>(within.latency_cycles), 1.02 * static_cast<double>(quick.latency_cycles));
}

TEST(ChipCoster, AKernelThatCouldNotBeReadIsNamedToo) {
  ChipCoster coster(shipped("edge_npu32"));
  const PhaseKernel odd{.calls = {"odd", "h.0", 3, {}},
                        .work = {},
                        .func = {},
                        .facts = {},
                        .refused = "index vi * vi is no quasi-affine function of the loops"};
  const PhaseResult phase = coster.cost(std::vector<PhaseKernel>{odd});
  EXPECT_EQ(phase.kernels, 1);
  EXPECT_EQ(phase.kernels_costed, 0);
  EXPECT_EQ(phase.launches, 3);
  EXPECT_EQ(phase.notes,
            std::vector<std::string>{"odd has no cost: index vi * vi is no quasi-affine function of the loops"});
}

}  // namespace
}  // namespace sator::study
