#include "study/phase.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "study/sample.h"

namespace sator::study {
namespace {

using dataflow::CostEngine;
using dataflow::Kernel;
using dataflow::KernelCost;

void expect_parts_sum(const Cost& cost) {
  int64_t cycles = 0;
  for (const ComponentCost& c : cost.components) cycles += c.latency_cycles;
  EXPECT_EQ(cycles, cost.latency_cycles);
  for (const LevelCost& l : cost.levels) EXPECT_EQ(l.by_kind.total(), l.read_bits + l.write_bits) << l.name;
  double joules = 0;
  for (const EnergyShare& e : cost.energy) joules += e.joules;
  EXPECT_DOUBLE_EQ(joules, cost.energy_j);
}

class EveryChip : public testing::TestWithParam<const char*> {};

TEST_P(EveryChip, PartsOfEachKernelSumToTheEnginesTotals) {
  CostEngine engine(shipped(GetParam()));
  for (const Kernel& kernel : {linear("f32", 128, 768, 256, 32, true, 32),
                               linear("int8", 1, 768, 256, 8, false, 8),
                               linear("int4 group 32", 1, 768, 256, 4, true, 32, 32),
                               linear("int4 group 32", 61, 100, 96, 4, true, 32, 32),
                               vector_kernel("norm", 37, 256, VectorWork::reduce),
                               vector_kernel("quantize", 37, 256, VectorWork::quantize),
                               vector_kernel("rescale", 37, 256, VectorWork::rescale),
                               vector_kernel("attention", 37, 256, VectorWork::reduce, dataflow::OperandKind::kv)}) {
    const KernelCost cost = engine.cost(kernel);
    const KernelRow row = kernel_row({kernel.name, "layer", 1, {}}, kernel, cost, engine.chip());
    SCOPED_TRACE(kernel.name);
    expect_parts_sum(row.cost);
    EXPECT_EQ(row.cost.latency_cycles, cost.latency_cycles);
    EXPECT_EQ(row.cost.energy_j, cost.energy_j);
    EXPECT_EQ(row.cost.latency_interval, cost.latency_interval);
    double shares = 0;
    for (const Elasticity& e : row.cost.elasticities) shares += e.value;
    EXPECT_NEAR(shares, 1, 1e-9);
    EXPECT_LE(row.cost.clock_elasticity, 1 + 1e-9);
    ASSERT_EQ(row.cost.levels.size(), cost.memories.size());
    for (size_t m = 0; m < cost.memories.size(); ++m) {  // the engine rounds bits up to bytes
      EXPECT_EQ((row.cost.levels[m].read_bits + 7) / 8, cost.memories[m].read_bytes);
      EXPECT_EQ((row.cost.levels[m].write_bits + 7) / 8, cost.memories[m].write_bytes);
    }
    int64_t whole = 0;
    for (const ResourceCycles& part : row.cost.latency_parts) whole += part.cycles;
    EXPECT_EQ(whole, row.cost.latency_cycles);
    EXPECT_FALSE(row.counts.checked);  // nobody listed anything
    int64_t ops = 0, cycles = 0, engine_ops = 0, precision_macs = 0;
    for (const ComponentCost& c : row.cost.components) ops += c.vector_ops, cycles += c.vector_cycles;
    for (const dataflow::StatementCost& s : cost.statements) engine_ops += s.vector_ops;
    for (const PrecisionUse& p : row.cost.precisions) precision_macs += p.macs;
    EXPECT_EQ(ops, engine_ops);
    EXPECT_EQ(cycles, cost.resources[1].cycles);
    EXPECT_EQ(precision_macs, cost.macs);
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, EveryChip, testing::Values("tpuv1", "gemmini16", "edge_npu32"));

// One token reads each code and each scale once: 256 * 768 codes of 4 bits, one f32 scale for 32 of them.
TEST(KernelRow, KnowsSizesWidthsAndWhatMoves) {
  CostEngine engine(shipped("edge_npu32"));
  const Kernel kernel = linear("qkv", 1, 768, 256, 4, true, 32, 32);
  const KernelRow row = kernel_row({"qkv", "h.0", 3, 4.5}, kernel, engine.cost(kernel), engine.chip());
  EXPECT_EQ(row.batch, 1);
  EXPECT_EQ(row.i, 1);
  EXPECT_EQ(row.j, 768);
  EXPECT_EQ(row.k, 256);
  EXPECT_EQ(row.cost.macs, 768 * 256);
  EXPECT_EQ(row.weight_bits, 4);
  EXPECT_EQ(row.scale_bits, 32);
  EXPECT_EQ(row.activation_bits, 32);
  EXPECT_EQ(row.cost.levels[0].name, "dram");
  EXPECT_EQ(row.cost.levels[0].by_kind.weight, 768 * 256 * 4);
  EXPECT_EQ(row.cost.levels[0].by_kind.scale, 768 * 256 / 32 * 32);
  EXPECT_EQ(row.cost.levels[0].by_kind.activation, (256 + 768) * 32);
  ASSERT_EQ(row.cost.precisions.size(), 1U);
  EXPECT_EQ(row.cost.precisions[0].asked, "float32 x float32");
  EXPECT_EQ(row.cost.precisions[0].ran, "int16 x int16");  // the widest that the chip has
  EXPECT_EQ(row.cost.precisions[0].passes, 4);             // 32 bits by 32 bits in pieces of 16
  EXPECT_FALSE(row.cost.precisions[0].exact());
  EXPECT_EQ(at(row.cost.components, Component::dequantize).vector_ops, 3 * 768 * 256);
  EXPECT_GT(row.counts.unique, 0);
  EXPECT_LE(row.counts.unique, row.counts.total);
}

// A batched product has its batch in all three tensors.
TEST(KernelRow, BatchIsNeitherRowNorColumn) {
  using namespace dataflow;
  Work work;
  work.statement.domain = Domain::box({"h", "q", "t", "d"}, {4, 7, 33, 64});
  work.statement.accesses = {{"Q", Role::read, {{variable(0), variable(1), variable(3)}}},
                             {"K", Role::read, {{variable(0), variable(2), variable(3)}}},
                             {"S", Role::write, {{variable(0), variable(1), variable(2)}}}};
  work.operands = {{.bits = 8}, {.bits = 8, .kind = OperandKind::kv}, {.bits = 32}};
  work.multiply_accumulate = true;
  const Kernel kernel{"scores", {work}};
  CostEngine engine(shipped("edge_npu32"));
  const KernelRow row = kernel_row({"scores", "h.0", 1, {}}, kernel, engine.cost(kernel), engine.chip());
  EXPECT_EQ(row.batch, 4);
  EXPECT_EQ(row.i, 7);
  EXPECT_EQ(row.j, 33);
  EXPECT_EQ(row.k, 64);
  // It touches the KV cache: all of it is attention, and the array's component is empty.
  EXPECT_EQ(at(row.cost.components, Component::attention).latency_cycles, row.cost.latency_cycles);
  EXPECT_EQ(at(row.cost.components, Component::array).latency_cycles, 0);
}

TEST(KernelRow, WorkOfTheVectorUnitIsNamed) {
  CostEngine engine(shipped("edge_npu32"));
  for (auto [work, component] : {std::pair{VectorWork::rescale, Component::rescale},
                                 std::pair{VectorWork::quantize, Component::quantize},
                                 std::pair{VectorWork::reduce, Component::vector}}) {
    const Kernel kernel = vector_kernel("x", 8, 64, work);
    const KernelRow row = kernel_row({"x", "", 1, {}}, kernel, engine.cost(kernel), engine.chip());
    EXPECT_EQ(at(row.cost.components, component).vector_ops, 8 * 64 * 4);
  }
}

/// A kernel by its figures: on edge_npu32 at 1 GHz with 1024 PEs.
KernelRow by_hand(int64_t count, int64_t cycles, int64_t macs, const std::string& bound, int64_t weight_bits) {
  KernelRow row{.function = "f", .count = count};
  row.cost.latency_cycles = cycles;
  row.cost.macs = macs;
  row.cost.bound = bound;
  row.cost.utilization = static_cast<double>(macs) / (1024.0 * static_cast<double>(cycles));
  row.cost.mac_units_used = 512;
  row.stream_cycles = cycles / 2;
  at(row.cost.components, Component::array).latency_cycles = cycles;
  row.cost.levels = {{.name = "dram", .read_bits = weight_bits, .by_kind = {.weight = weight_bits}}};
  row.cost.resources = {{"array", cycles / 2}, {"vector", cycles / 4}, {"dram", cycles}};
  row.cost.energy = {{"mac", 1e-9, "somewhere"}};
  row.cost.energy_j = 1e-9;
  row.cost.precisions = {{"int8 x int8", "int8 x int8", 1, macs}};
  return row;
}

TEST(Phase, SumsItsKernelsByTheirCalls) {
  KernelRow second = by_hand(3, 2000, 64000, "array", 800);
  second.cost.mac_units_used = 1024;
  second.counts.checked = true;
  PhaseResult phase = sum_of({by_hand(2, 1000, 1000, "dram", 80004), second}, shipped("edge_npu32"));
  const Cost& sum = phase.cost;
  expect_parts_sum(sum);
  EXPECT_EQ(sum.latency_cycles, 2 * 1000 + 3 * 2000);
  EXPECT_DOUBLE_EQ(sum.latency_s, 8000 / 1e9);
  EXPECT_EQ(sum.macs, 2 * 1000 + 3 * 64000);
  EXPECT_DOUBLE_EQ(sum.utilization, 194000.0 / (8000.0 * 1024));
  // 512 units during 2 * 500 stamps, 1024 during 3 * 1000.
  EXPECT_DOUBLE_EQ(sum.mac_units_used, (512.0 * 1000 + 1024.0 * 3000) / 4000);
  EXPECT_EQ(sum.bound, "array");  // 6000 of 8000 cycles
  EXPECT_EQ(sum.levels[0].read_bits, 2 * 80004 + 3 * 800);
  EXPECT_DOUBLE_EQ(sum.levels[0].achieved_bytes_per_s, (2 * 80004 + 3 * 800) / 8.0 / 8e-6);
  EXPECT_DOUBLE_EQ(sum.levels[0].required_bytes_per_s, (2 * 80004 + 3 * 800) / 8.0 / (2 * 500e-9 + 3 * 1000e-9));
  EXPECT_DOUBLE_EQ(sum.levels[0].available_bytes_per_s, 25.6e9);
  EXPECT_DOUBLE_EQ(sum.energy_j, 5e-9);
  ASSERT_EQ(sum.precisions.size(), 1U);
  EXPECT_EQ(sum.precisions[0].macs, 194000);
  EXPECT_EQ(phase.launches, 5);
  EXPECT_EQ(phase.kernels, 2);
  EXPECT_EQ(phase.kernels_costed, 2);
  EXPECT_EQ(phase.kernels_checked, 1);
}

TEST(Phase, KernelsWithoutCostAreCountedAndSaid) {
  PhaseResult phase = sum_of({by_hand(1, 1000, 1000, "dram", 80), uncosted_row({"odd", "h.0", 2, {}}, "counts of odd")},
                             shipped("edge_npu32"));
  EXPECT_EQ(phase.kernels, 2);
  EXPECT_EQ(phase.kernels_costed, 1);
  EXPECT_EQ(phase.launches, 3);
  EXPECT_EQ(phase.notes, std::vector<std::string>{"counts of odd"});
  EXPECT_EQ(phase.cost.latency_cycles, 1000);
}

TEST(Durations, BelongToKernelsInOrder) {
  std::vector<KernelRow> rows = {{.function = "f", .layer = "h.0", .count = 2},
                                 {.function = "g", .layer = "h.0"},
                                 {.function = "f", .layer = "h.1", .count = 1},
                                 {.function = "other", .layer = "h.1", .count = 2}};
  add_durations({{"decode", "f", 2},
                 {"decode", "f", 4},
                 {"prefill", "g", 99},
                 {"decode", "other", 7},
                 {"decode", "f", 10},
                 {"decode", "g", 5}},
                "decode",
                rows);
  EXPECT_EQ(rows[0].duration_us, 3);
  EXPECT_EQ(rows[1].duration_us, 5);
  EXPECT_EQ(rows[2].duration_us, 10);
  EXPECT_EQ(rows[3].duration_us, std::nullopt);  // it ran once, not twice
}

TEST(Phase, NothingCostsNothing) {
  PhaseResult phase = sum_of({}, shipped("tpuv1"));
  EXPECT_EQ(phase.cost.latency_cycles, 0);
  EXPECT_EQ(phase.cost.utilization, 0);
  EXPECT_EQ(phase.cost.levels.size(), shipped("tpuv1").memories.size());
  expect_parts_sum(phase.cost);
}

// The weights of the sample's linear layers by the shapes of the model: eight layers of 768 x 256, 256 x 256, 1024 x 256
// and 256 x 1024, and the head at 16 bits. Each scale is read once at least; those of wide groups where a tile ends
// inside of the group, again.
TEST(Phase, WeightBytesOfADecodeStepAreTheModels) {
  for (const SampleScheme& s : default_samples()) {
    CostEngine engine(shipped("edge_npu32"));
    PhaseResult phase = sample_phase(s, engine, 1, 144);
    expect_parts_sum(phase.cost);
    const int64_t weights = 8 * 256 * (768 + 256 + 1024 + 1024);
    EXPECT_EQ(phase.cost.levels[0].by_kind.weight, weights * s.bits + 8192 * 256 * 16) << s.name;
    const int64_t moved = phase.cost.levels[0].by_kind.scale;
    if (s.group == 0) {
      EXPECT_EQ(moved, 0) << s.name;
    } else {
      const int64_t scales =
          8 * ((768 + 256 + 1024) * (256 / std::min<int64_t>(s.group, 256)) + 256 * (1024 / s.group));
      EXPECT_GE(moved, scales * 32) << s.name;
      if (s.group == 32) {
        EXPECT_EQ(moved, scales * 32) << s.name;
      }
    }
    EXPECT_EQ(phase.cost.macs, weights + 8192 * 256);
  }
}

/// The kernel's latency on a chip of another clock whose outermost memory moves as many bytes per second as before.
double latency_at_clock(Chip chip, double factor, const Kernel& kernel) {
  chip.clock_hz *= factor;
  chip.memories.front().read_bytes_per_cycle /= factor;
  chip.memories.front().write_bytes_per_cycle /= factor;
  const KernelCost cost = CostEngine(chip).cost(kernel);
  return cost.unrounded_cycles / chip.clock_hz;
}

// What the chip gains by a clock that is faster by a millionth, against the derivative.
TEST(KernelRow, ClockElasticityIsWhatAFasterClockGives) {
  const Chip chip = shipped("edge_npu32");
  for (const Kernel& kernel :
       {linear("compute", 512, 768, 256, 8, false, 8), linear("bytes", 1, 768, 256, 8, false, 8)}) {
    const KernelRow row = kernel_row({kernel.name, "", 1, {}}, kernel, CostEngine(chip).cost(kernel), chip);
    const double step = 1e-6;
    const double gain = std::log(latency_at_clock(chip, 1, kernel) / latency_at_clock(chip, 1 + step, kernel)) / step;
    EXPECT_NEAR(row.cost.clock_elasticity, gain, 1e-4) << kernel.name;
  }
}

TEST(Phase, ElasticitiesAreWeightedByLatency) {
  CostEngine engine(shipped("edge_npu32"));
  const Kernel a = linear("a", 512, 768, 256, 8, false, 8), b = linear("b", 1, 768, 256, 8, false, 8);
  const KernelRow first = kernel_row({"a", "", 1, {}}, a, engine.cost(a), engine.chip());
  const KernelRow second = kernel_row({"b", "", 3, {}}, b, engine.cost(b), engine.chip());
  const PhaseResult phase = sum_of({first, second}, engine.chip());
  const auto la = static_cast<double>(first.cost.latency_cycles),
             lb = 3 * static_cast<double>(second.cost.latency_cycles);
  for (size_t e = 0; e < phase.cost.elasticities.size(); ++e)
    EXPECT_NEAR(phase.cost.elasticities[e].value,
                (first.cost.elasticities[e].value * la + second.cost.elasticities[e].value * lb) / (la + lb),
                1e-12);
}

// What measurements are expected within adds up over calls, and is not there on a chip that was not calibrated.
TEST(Phase, IntervalsAddUp) {
  const Kernel a = linear("a", 512, 768, 256, 8, false, 8), b = linear("b", 1, 768, 256, 8, false, 8);
  auto sum_on = [&](const Chip& chip) {
    CostEngine engine(chip);
    return sum_of({kernel_row({"a", "", 1, {}}, a, engine.cost(a), chip),
                   kernel_row({"b", "", 3, {}}, b, engine.cost(b), chip)},
                  chip)
        .cost;
  };
  Chip chip = shipped("edge_npu32");
  EXPECT_FALSE(sum_on(chip).latency_interval);
  chip.calibration.emplace();
  chip.calibration->low = 0.8, chip.calibration->high = 1.25;
  const Cost sum = sum_on(chip);
  ASSERT_TRUE(sum.latency_interval);
  EXPECT_NEAR(sum.latency_interval->low_s, 0.8 * sum.latency_s, 1e-15);
  EXPECT_NEAR(sum.latency_interval->high_s, 1.25 * sum.latency_s, 1e-15);
}

// Bytes that no mapping avoids, by hand, three times those of one call for three calls; beside what was moved.
TEST(Phase, CompulsoryTrafficStandsBesideWhatWasMoved) {
  const Chip chip = shipped("edge_npu32");
  CostEngine engine(chip);
  const Kernel k = linear("a", 512, 768, 256, 8, false, 8);
  const Cost sum = sum_of({kernel_row({"a", "", 3, {}}, k, engine.cost(k), chip)}, chip).cost;
  EXPECT_EQ(sum.levels[0].compulsory_bytes, 3 * (512 * 256 + 768 * 256 + 512 * 768 * 4));  // codes in, 32-bit sums out
  for (const LevelCost& level : sum.levels)
    EXPECT_LE(static_cast<double>(level.compulsory_bytes), level.bytes()) << level.name;
}

// 32 x 32 units at 1 GHz do 1024 G products of its int8 per second.
TEST(Facts, PeaksAreUnitsTimesClock) {
  const ChipFacts facts = facts_of(shipped("edge_npu32"));
  const auto at = std::find_if(
      facts.peaks.begin(), facts.peaks.end(), [](const PeakRate& p) { return p.precision == "int8 x int8"; });
  ASSERT_NE(at, facts.peaks.end());
  EXPECT_DOUBLE_EQ(at->macs_per_s, 1024e9);
  EXPECT_TRUE(std::is_sorted(facts.peaks.begin(), facts.peaks.end(), [](const PeakRate& a, const PeakRate& b) {
    return a.macs_per_s > b.macs_per_s;
  }));
}

}  // namespace
}  // namespace sator::study
