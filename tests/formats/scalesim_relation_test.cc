// SCALE-Sim's closed forms against exact counts of the same array written as relations.
#include <gtest/gtest.h>

#include <random>

#include "dataflow/counts/counts.h"
#include "formats/scalesim/relation.h"

namespace sator::formats {
namespace {

using namespace dataflow;

ScalesimConfig config_of(Stationary dataflow, int64_t rows, int64_t cols) {
  return {.run_name = "r", .rows = rows, .cols = cols, .dataflow = dataflow};
}

ScalesimLayer product(int64_t m, int64_t n, int64_t k) {
  return parse_scalesim_topology(text("Layer, M, N, K,\nl, ", m, ", ", n, ", ", k, ",\n"), true).at(0);
}

/// The closed form counts whole folds; the relations have no stamp for the preload and for rows and columns left unused.
int64_t stamps_of(const SystolicShape& shape, const ScalesimCompute& compute) {
  const int64_t preload = shape.preload ? compute.folds * shape.rows : 0;
  const int64_t unused_rows = (shape.row_folds() * shape.rows - shape.along_rows) * shape.col_folds();
  const int64_t unused_cols = (shape.col_folds() * shape.cols - shape.along_cols) * shape.row_folds();
  return compute.cycles + 1 - preload - unused_rows - unused_cols;
}

void check(const ScalesimConfig& config, const ScalesimLayer& layer) {
  SCOPED_TRACE(text(
      to_string(config.dataflow), " ", config.rows, "x", config.cols, " M ", layer.m, " N ", layer.n, " K ", layer.k));
  const auto counted = count(scalesim_problem(config, layer));
  ASSERT_TRUE(std::holds_alternative<Counts>(counted)) << std::get<Reason>(counted).render();
  const Counts& counts = std::get<Counts>(counted);
  const ScalesimCompute compute = scalesim_compute(config, layer);
  const SystolicShape shape = systolic_shape(config, layer);
  EXPECT_EQ(counts.macs, compute.macs);
  EXPECT_EQ(counts.spacetime, compute.macs);  // one product a PE and stamp
  EXPECT_EQ(counts.pe_array, config.rows * config.cols);
  EXPECT_EQ(counts.space, std::min(config.rows, shape.along_rows) * std::min(config.cols, shape.along_cols));
  EXPECT_EQ(counts.time, stamps_of(shape, compute));
  ASSERT_EQ(counts.tensors.size(), 3u);
  EXPECT_EQ(counts.tensors[0].unique, compute.ifmap_sram_reads);
  EXPECT_EQ(counts.tensors[1].unique, compute.filter_sram_reads);
  EXPECT_EQ(counts.tensors[2].unique, compute.ofmap_sram_writes);
  EXPECT_EQ(counts.tensors[0].footprint, layer.m * layer.k);
  EXPECT_EQ(counts.tensors[1].footprint, layer.k * layer.n);
}

// Extents of two and more along the array and in time: with one there is reuse from fold to fold that SCALE-Sim does not count.
TEST(ScalesimRelation, RandomShapesCountAsTheClosedForms) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t from, int64_t to) { return std::uniform_int_distribution<int64_t>(from, to)(random); };
  for (int round = 0; round < 200; ++round) {
    const auto dataflow = static_cast<Stationary>(round % 3);
    check(config_of(dataflow, draw(2, 6), draw(2, 6)), product(draw(2, 14), draw(2, 14), draw(2, 14)));
  }
}

TEST(ScalesimRelation, LayersOfARealModel) {
  for (Stationary dataflow : {Stationary::output, Stationary::weight, Stationary::input}) {
    check(config_of(dataflow, 8, 8), product(64, 64, 64));
    check(config_of(dataflow, 16, 16), product(64, 48, 96));
  }
}

}  // namespace
}  // namespace sator::formats
