// The table of `sator run --chip`.
#include "study/program_cost.h"

#include <gtest/gtest.h>

#include "shipped_chips.h"

namespace sator::study {
namespace {

TEST(RunCostTable, NamesOfMemoriesStandApartFromTheFigures) {
  PhaseResult cost;
  KernelRow row;
  row.function = "main";
  row.count = 1;
  row.costed = true;
  row.cost.bound = "activation_buffer";
  cost.rows = {row};
  const std::string table = run_cost_table(cost, shipped("edge_npu32"));
  EXPECT_NE(table.find("  activation_buffer\n"), std::string::npos) << table;
  EXPECT_NE(table.find("           bound by\n"), std::string::npos) << table;
}

}  // namespace
}  // namespace sator::study
