// What several cores share: ports, the outermost memory's first bytes, the board's power, a reduction. Figures by hand.
#include <gtest/gtest.h>

#include "dataflow/cost/cost.h"
#include "dataflow/programs/matmul.h"
#include "shipped_chips.h"

namespace sator::dataflow {
namespace {

/// Y[i,j] = X[i,k] * W[k,j], all of 16-bit floats.
Kernel product(int64_t i, int64_t j, int64_t k) { return matmul_kernel({.i = i, .j = j, .k = k, .float_bits = 16}); }

/// An H200 whose cores do not share reductions.
Chip without_barrier() {
  Chip chip = shipped("h200");
  chip.barrier_cycles.reset();
  return chip;
}

int64_t cores_used(const KernelCost& c) { return c.statements.at(0).placement->cores_used; }
int64_t cycles_of(const KernelCost& c, const std::string& resource) {
  for (const ResourceCost& r : c.resources)
    if (r.name == resource) return r.cycles;
  return -1;
}

// An instruction covers 64 columns, so one core has all of them: 65536 x 64 weights, 65536 inputs and 64 outputs of 2 bytes
// through a port of 64 bytes per cycle, while the second level would give 8448.
TEST(Cores, OneCoreTakesNoMoreThanItsPort) {
  Chip chip = without_barrier();
  const KernelCost c = CostEngine(chip).cost(product(1, 64, 65536));
  EXPECT_EQ(cores_used(c), 1);
  EXPECT_NEAR(static_cast<double>(cycles_of(c, "l2")), (65536.0 * 64 + 65536 + 64) * 2 / 64, 2);
  EXPECT_GE(c.latency_cycles, 133122 + chip.launch_cycles + 479);
  chip.core_bytes_per_cycle.reset();
  EXPECT_LT(cycles_of(CostEngine(chip).cost(product(1, 64, 65536)), "l2"), 10000);
}

TEST(Cores, TakeWholeColumnsOfAnInstruction) {
  Chip chip = without_barrier();
  EXPECT_EQ(cores_used(CostEngine(chip).cost(product(1, 768, 3072))), 12);
  chip.least_columns = 1;
  EXPECT_GT(cores_used(CostEngine(chip).cost(product(1, 768, 3072))), 48);
}

// The first bytes of the outermost memory come once, whatever binds.
TEST(Cores, WaitForTheFirstBytes) {
  Chip chip = shipped("h200"), at_once = chip;
  at_once.memories[0].latency_cycles = 0;
  for (const Kernel& kernel : {product(1, 4096, 4096), product(2048, 4096, 4096)})
    EXPECT_EQ(CostEngine(chip).cost(kernel).latency_cycles - CostEngine(at_once).cost(kernel).latency_cycles, 479);
}

// Half of the cores at work do not bring the board to its limit; all of them do: 4096 cubed at the limit's clock.
TEST(Cores, ThePowerLimitHoldsForTheBoard) {
  Chip chip = without_barrier(), unlimited = chip;
  unlimited.power_limit.reset();
  const Kernel few = product(128, 2048, 4096), all = product(4096, 4096, 4096);
  EXPECT_EQ(CostEngine(chip).cost(few).latency_cycles, CostEngine(unlimited).cost(few).latency_cycles);
  const double pes = 132.0 * 32 * 64;
  EXPECT_NEAR(
      static_cast<double>(cycles_of(CostEngine(chip).cost(all), "array")), 4096.0 * 4096 * 4096 / pes * 1830 / 1230, 1);
}

// Lanes spend more on a multiply-accumulate than the array does: float32 on an L4 keeps 573 MHz of 2040 up, 16 bits 1122.
TEST(Cores, APrecisionKeepsItsOwnClockUp) {
  const Chip chip = shipped("l4");
  const double macs = 8192.0 * 8192 * 8192, pes = 58.0 * 32 * 16;
  Matmul product{.i = 8192, .j = 8192, .k = 8192};
  for (const auto& [bits, cycles_per_mac, clock] : {std::tuple{16, 1.0, 1122e6}, std::tuple{32, 4.0, 573e6}}) {
    product.float_bits = bits;
    const KernelCost cost = CostEngine(chip).cost(matmul_kernel(product));
    EXPECT_NEAR(
        static_cast<double>(cycles_of(cost, "array")) / (macs / pes * cycles_per_mac * 2040e6 / clock), 1, 0.001)
        << bits;
  }
}

/// Into how many parts the cores cut the iterator of this name.
int64_t parts_of(const KernelCost& c, const std::string& iterator) {
  const StatementCost& s = c.statements.at(0);
  for (const auto& share : s.placement->nest->cores)
    if (s.work.statement.domain.names[share.loop] == iterator) return share.parts;
  return 1;
}

// 64 x 64 outputs are work of one core. Of the p that share a reduction, p - 1 find sums of 4 bytes in the second level, read
// them there and bring them back; every weight goes to each core that has other rows.
TEST(Cores, ShareAReduction) {
  const Chip chip = shipped("h200");
  const KernelCost c = CostEngine(chip).cost(product(64, 64, 65536));
  const KernelCost alone = CostEngine(without_barrier()).cost(product(64, 64, 65536));
  EXPECT_EQ(parts_of(alone, "k"), 1);
  const int64_t p = parts_of(c, "k");
  EXPECT_GT(p, 8);
  EXPECT_TRUE(c.statements[0].placement->shares_reduction);
  EXPECT_EQ(c.macs, 64 * 64 * 65536);
  EXPECT_LT(4 * c.latency_cycles, alone.latency_cycles);
  const int64_t factor = 64 * 65536 * 2, factors = 2 * factor, out = 64 * 64 * 2, partial = (p - 1) * 64 * 64 * 4;
  EXPECT_EQ(c.memories[1].read_bytes, parts_of(c, "j") * factor + parts_of(c, "i") * factor + out + partial);
  EXPECT_EQ(c.memories[1].write_bytes, factors + out + partial);
  EXPECT_EQ(c.memories[0].read_bytes, factors);
  EXPECT_EQ(c.memories[0].write_bytes, out);
  // The search has foreseen what is counted, the barrier included.
  EXPECT_NEAR(
      (c.statements[0].placement->estimate.cycles + static_cast<double>(chip.launch_cycles) + 479) / c.unrounded_cycles,
      1,
      0.01);
}

// Where outputs keep all cores busy, none shares its sums: no barrier.
TEST(Cores, LargeProductsShareNoReduction) {
  for (const Kernel& kernel : {product(4096, 4096, 4096), product(1, 128256, 4096)})
    EXPECT_FALSE(CostEngine(shipped("h200")).cost(kernel).statements[0].placement->shares_reduction);
}

// Weights of 4 bits multiply at the width of the inputs: where the array binds, fewer bytes save no more than the first
// tile's share of the time (an H200's fastest measured kernels of this kind are slower than those of 16 bits).
TEST(Cores, DequantizingMakesNoLargeProductFaster) {
  CostEngine engine(shipped("h200"));
  for (auto [i, j, k] :
       {std::tuple<int64_t, int64_t, int64_t>{1024, 4096, 14336}, {1024, 14336, 4096}, {4096, 4096, 4096}}) {
    const double wide = engine.cost(product(i, j, k)).latency_s;
    const double narrow =
        engine
            .cost(matmul_kernel(
                {.i = i, .j = j, .k = k, .scale = ScalePer::group, .weight_bits = 4, .group = 128, .scale_bits = 16}))
            .latency_s;
    EXPECT_GE(narrow, 0.99 * wide) << i << " x " << j << " x " << k;
    EXPECT_LE(narrow, 1.1 * wide) << i << " x " << j << " x " << k;
  }
}

// At the limit of 700 W an H200 takes 208 us for 4096 cubed of bfloat16 under sustained load: 146 mJ.
TEST(Cores, EnergyAtThePowerLimit) {
  const KernelCost c = CostEngine(shipped("h200")).cost(product(4096, 4096, 4096));
  EXPECT_NEAR(c.energy_j / 0.1456, 1, 0.25);
  EXPECT_NEAR(c.latency_s / 208e-6, 1, 0.05);
}

}  // namespace
}  // namespace sator::dataflow
