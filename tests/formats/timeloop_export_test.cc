// A mapping of the engine written as Timeloop's files, and read again by Timeloop's model.
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "dataflow/cost/cost.h"
#include "dataflow/programs/matmul.h"
#include "formats/timeloop/evaluate.h"
#include "formats/timeloop/of_product.h"
#include "shipped_chips.h"

namespace sator::formats {
namespace {

using namespace dataflow;

struct Written {
  std::string architecture, problem, mapping;
};

Written written(const timeloop::Input& input) {
  return {architecture_text(input.architecture),
          problem_text(input.workload),
          mapping_text(input.mapping, input.workload, input.architecture)};
}

const StatementCost& product_of(const KernelCost& cost) {
  for (const StatementCost& s : cost.statements)
    if (s.on_array()) return s;
  throw std::logic_error("no product");
}

/// Tiles within ragged tiles, and cores with unequal shares, are what Timeloop cannot say of a product.
bool is_ragged(const Reason& why_not) {
  return why_not.what.find("have tiles of") != std::string::npos ||
         why_not.what.find("shared by cores") != std::string::npos;
}

/// Elements that the outermost memory hands over and takes in, per tensor.
using Moves = std::map<std::string, std::pair<int64_t, int64_t>>;

Moves outside(const StatementCost& s) {
  Moves moves;
  for (const Traffic& t : s.traffic)
    if (t.memory == 0)  // all tensors have 16 bits
      moves[t.tensor].first += t.read_bits / 16, moves[t.tensor].second += t.write_bits / 16;
  return moves;
}

Moves outside(const timeloop::Input& input) {
  timeloop::Model model(input.workload, input.architecture);
  timeloop::Figures figures;
  if (auto refused = model.evaluate(input.mapping, figures)) throw Error(*refused);
  Moves moves;
  for (size_t s = 0; s < input.workload.spaces.size(); ++s) {
    const auto& counts = figures.levels.back().spaces.at(s);
    moves[input.workload.spaces[s].name] = {counts.reads, counts.updates};
  }
  return moves;
}

class TimeloopExport : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Chips, TimeloopExport,
                         testing::Values("gemmini16", "edge_npu32", "tpuv1", "scalesim_default", "tpuv4_like"));

// Where tiles divide and sums are complete before they leave, both count the same words outside.
TEST_P(TimeloopExport, MovesTheSameWords) {
  const Chip chip = shipped(GetParam());
  int compared = 0;
  for (const auto& [i, j, k] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {64, 64, 64}, {128, 256, 512}, {1, 512, 512}, {32, 1024, 256}, {256, 768, 768}, {16, 2048, 64}}) {
    const KernelCost cost = CostEngine(chip).cost(matmul_kernel({.i = i, .j = j, .k = k}));
    const StatementCost& s = product_of(cost);
    const auto stated = timeloop::input_of(s, chip);
    if (const Reason* why_not = std::get_if<Reason>(&stated)) {
      EXPECT_TRUE(is_ragged(*why_not)) << why_not->what;
      continue;
    }
    const auto& input = std::get<timeloop::Input>(stated);
    const Written texts = written(input);
    timeloop::Input again;
    try {
      again = timeloop::parse({texts.architecture, texts.problem, texts.mapping, {}});
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("smaller last tile"), std::string::npos) << e.what() << texts.mapping;
      continue;
    }
    EXPECT_EQ(again.mapping, input.mapping) << texts.mapping;
    EXPECT_EQ(outside(again), outside(s)) << s.placement->words << "\n" << texts.mapping;
    ++compared;
  }
  EXPECT_GE(compared, 2);
}

// The loops of all levels together run over each dimension exactly once, smaller last tiles included.
TEST_P(TimeloopExport, LoopsCoverTheProblem) {
  const Chip chip = shipped(GetParam());
  for (const auto& [i, j, k] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {1, 1, 1}, {7, 7, 100}, {33, 33, 1}, {100, 769, 65}, {128, 768, 3072}}) {
    const KernelCost cost = CostEngine(chip).cost(matmul_kernel({.i = i, .j = j, .k = k}));
    const auto stated = timeloop::input_of(product_of(cost), chip);
    if (const Reason* why_not = std::get_if<Reason>(&stated)) {
      EXPECT_TRUE(is_ragged(*why_not)) << why_not->what;
      continue;
    }
    const auto& input = std::get<timeloop::Input>(stated);
    for (size_t d = 0; d < input.workload.dimensions.size(); ++d) {
      // Outermost first: whole tiles of the loops inside, and what the last pass of each leaves.
      std::vector<timeloop::Loop> loops;
      for (size_t l = input.mapping.levels.size(); l-- > 0;)
        for (const auto* list : {&input.mapping.levels[l].temporal, &input.mapping.levels[l].spatial})
          for (const timeloop::Loop& loop : *list)
            if (loop.dimension == static_cast<int>(d)) loops.push_back(loop);
      int64_t whole = 1, last = 1;
      for (size_t l = loops.size(); l-- > 0;) {
        const int64_t passes = loops[l].last > 0 ? loops[l].last : loops[l].bound;
        last = (passes - 1) * whole + last;
        whole *= loops[l].bound;
      }
      EXPECT_EQ(last, input.workload.bounds[d]) << input.workload.dimensions[d] << " of " << i << " " << j << " " << k;
    }
  }
}

TEST(TimeloopExportRefuses, ScalesOfGroups) {
  const Chip chip = shipped("edge_npu32");
  const KernelCost cost = CostEngine(chip).cost(
      matmul_kernel({.i = 16, .j = 64, .k = 64, .scale = ScalePer::group, .weight_bits = 4, .group = 32}));
  const auto stated = timeloop::input_of(product_of(cost), chip);
  ASSERT_TRUE(std::holds_alternative<Reason>(stated));
  EXPECT_NE(std::get<Reason>(stated).what.find("no sum of loops"), std::string::npos);
}

}  // namespace
}  // namespace sator::formats
