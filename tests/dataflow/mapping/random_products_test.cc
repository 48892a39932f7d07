// Products of random shape on every shipped chip: a mapping is found, it fits the chip, and nothing beats its bounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "dataflow/cost/cost.h"
#include "dataflow/counts/gemm.h"
#include "shipped_chips.h"

namespace sator::dataflow {
namespace {

/// A product with any number of iterators in each class: batches, outputs of either factor, reductions, windows, groups.
Work draw(std::mt19937_64& random) {
  auto pick = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
  Work w{.statement = {}, .operands = {}, .multiply_accumulate = true};
  Map first, second, output;
  Domain& domain = w.statement.domain;
  auto iterator = [&](int64_t most) {
    // Ones and small primes beside larger sizes: the shapes that break tilings.
    const int64_t extent = pick(0, 3) == 0 ? 1 : pick(1, most);
    domain.names.push_back("x" + std::to_string(domain.rank()));
    domain.lower.push_back(0);
    domain.extent.push_back(extent);
    return variable(domain.rank() - 1);
  };
  for (int64_t n = pick(0, 1); n > 0; --n) {
    QuasiAffine b = iterator(5);
    first.push_back(b), second.push_back(pick(0, 1) ? floor_div(b, 2) : b), output.push_back(b);
  }
  for (int64_t n = pick(0, 2); n > 0; --n) {
    QuasiAffine i = iterator(80);
    if (pick(0, 3) == 0) {
      QuasiAffine window = iterator(3);
      first.push_back(i * pick(1, 2) + window), second.push_back(window), output.push_back(i);
    } else {
      first.push_back(i), output.push_back(i);
    }
  }
  for (int64_t n = pick(0, 2); n > 0; --n) {
    QuasiAffine j = iterator(80);
    second.push_back(j), output.push_back(j);
  }
  for (int64_t n = pick(1, 2); n > 0; --n) {
    QuasiAffine k = iterator(80);
    first.push_back(k), second.push_back(k);
  }
  const int widths[] = {4, 8, 16, 32};
  auto bits = [&] { return widths[pick(0, 3)]; };
  w.statement.accesses = {{"A", Role::read, {first}}, {"B", Role::read, {second}}, {"C", Role::write, {output}}};
  w.operands = {{.bits = bits()},
                {.bits = bits(), .kind = pick(0, 1) ? OperandKind::weight : OperandKind::activation},
                {.bits = bits()}};
  return w;
}

TEST(RandomProducts, EveryShapeHasACostWithinItsBounds) {
  for (const char* name : {"tpuv1", "gemmini16", "edge_npu32"}) {
    CostEngine engine(shipped(name));
    const Chip& chip = engine.chip();
    std::mt19937_64 random(11);
    for (int round = 0; round < 150; ++round) {
      Work w = draw(random);
      SCOPED_TRACE(testing::Message() << name << " round " << round << " extents "
                                      << testing::PrintToString(w.statement.domain.extent));
      KernelCost c = engine.cost({"k", {w}});
      const StatementCost& s = c.statements[0];
      int64_t instances = 1, least_bits = 0;
      for (int64_t extent : w.statement.domain.extent) instances *= extent;
      for (size_t a = 0; a < 3; ++a) least_bits += s.counts->tensors[a].footprint * w.operands[a].bits;
      EXPECT_EQ(c.macs, instances);
      EXPECT_LE(s.counts->space, chip.pes());
      EXPECT_GE(8 * (c.memories[0].read_bytes + c.memories[0].write_bytes) + 14, least_bits);
      EXPECT_GE(static_cast<double>(c.latency_cycles) + 1,
                static_cast<double>(least_bits) / 8 / chip.memories[0].read_bytes_per_cycle);
      EXPECT_LE(c.utilization, 1.0);
      EXPECT_LE(s.pes_used, static_cast<double>(chip.pes()));
      EXPECT_GE(
          s.stream_cycles * chip.pes() * std::max<int64_t>(1, static_cast<int64_t>(s.precision->macs_per_pe_per_cycle)),
          instances);
      // What a memory is said to hold fits it: the elements of its average tile, at their widths.
      const Product product = *product_of(w);
      for (size_t m = 1; m < chip.memories.size(); ++m) {
        const Map& time = s.placement->mapping.time;
        const size_t since = s.placement->held_since[m];
        ASSERT_LE(since, time.size());
        Problem tiles{w.statement,
                      {{number(0)}, Map(time.begin(), time.begin() + static_cast<long>(since))},
                      {Domain::box({"p"}, {1}), {}}};
        const Counts held = exact(tiles);
        double bits = 0;
        for (size_t a = 0; a < 3; ++a) {
          const std::vector<size_t> path = memory_path(w, product, *s.placement->weight, a, chip);
          if (std::find(path.begin(), path.end(), m) != path.end())
            bits += static_cast<double>(held.tensors[a].assigned) / static_cast<double>(held.time) * w.operands[a].bits;
        }
        EXPECT_LE(bits, 8.0 * static_cast<double>(*chip.memories[m].capacity_bytes)) << chip.memories[m].name;
      }
      ASSERT_FALSE(HasFailure()) << s.placement->words;
    }
  }
}

}  // namespace
}  // namespace sator::dataflow
