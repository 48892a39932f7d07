// The shipped chips in the cost engine: arrays by hand, cores, bursts, elasticities.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/cost/collective.h"
#include "dataflow/cost/cost.h"
#include "dataflow/counts/gemm.h"
#include "shipped_chips.h"

namespace sator::dataflow {
namespace {

/// A product at the widths of the chip's first precision.
Kernel product(const Chip& chip, int64_t i, int64_t j, int64_t k) {
  const Precision& p = chip.precisions[0];
  Work w{.statement = gemm(i, j, k),
         .operands = {{.bits = p.activation_bits, .is_float = p.is_float},
                      {.bits = p.weight_bits, .is_float = p.is_float, .kind = OperandKind::weight},
                      {.bits = p.activation_bits, .is_float = p.is_float}},
         .multiply_accumulate = true};
  return {"gemm", {w}};
}

class Preset : public testing::TestWithParam<std::string> {};

// The ends of the roofline: no product takes less than its MACs at the array's peak, nor than its bytes outside.
TEST_P(Preset, LiesUnderItsRoofline) {
  const Chip chip = shipped(GetParam());
  CostEngine engine(chip);
  const double peak = chip.precisions[0].macs_per_pe_per_cycle * static_cast<double>(chip.pes());
  for (auto [i, j, k] : {std::tuple<int64_t, int64_t, int64_t>{1, 4096, 4096}, {512, 768, 768}, {77, 1000, 300}}) {
    const KernelCost c = engine.cost(product(chip, i, j, k));
    const double macs = static_cast<double>(i * j * k);
    const double bytes = static_cast<double>((i * k + i * j) * chip.precisions[0].activation_bits +
                                             k * j * chip.precisions[0].weight_bits) /
                         8;
    EXPECT_EQ(c.macs, i * j * k);
    EXPECT_GE(static_cast<double>(c.latency_cycles) * (1 + 1e-9), macs / peak);
    EXPECT_GE(static_cast<double>(c.latency_cycles) * (1 + 1e-9), bytes / chip.memories[0].read_bytes_per_cycle);
    EXPECT_LE(c.utilization, 1);
    EXPECT_LE(c.mac_units_used, static_cast<double>(chip.pes()));
    double shares = c.launch_elasticity;
    for (const ResourceCost& r : c.resources) {
      shares += r.elasticity;
      EXPECT_GE(r.slack_cycles, 0);
      EXPECT_LE(r.cycles, c.latency_cycles) << r.name;
    }
    EXPECT_NEAR(shares, 1, 1e-12);
    EXPECT_NEAR(c.unrounded_cycles / static_cast<double>(c.latency_cycles), 1, 10 / c.unrounded_cycles);
  }
}

/// The latency with one resource's time per unit of work times a factor, under the mapping of `base`.
double slowed(const Chip& chip, const Kernel& kernel, const KernelCost& base, size_t resource, double factor) {
  Chip slow = chip;
  slow.calibration = ChipCalibration{};
  if (resource == 0) slow.calibration->array_time = factor;
  if (resource == 1) slow.calibration->vector_time = factor;
  if (resource > 1) {
    slow.memories[resource - 2].read_bytes_per_cycle /= factor;
    slow.memories[resource - 2].write_bytes_per_cycle /= factor;
  }
  std::vector<std::optional<Placement>> placements;
  for (const StatementCost& s : base.statements)
    if (s.on_array()) placements.push_back(s.placement);
  return CostEngine(slow).cost(kernel, placements).unrounded_cycles;
}

// The latency is a sum of times, each one resource's: the derivative is that resource's share, to rounding.
TEST_P(Preset, ElasticitiesAreTheDerivatives) {
  const Chip chip = shipped(GetParam());
  CostEngine engine(chip);
  for (auto [i, j, k] : {std::tuple<int64_t, int64_t, int64_t>{3, 1024, 512}, {256, 512, 1024}}) {
    Kernel kernel = product(chip, i, j, k);
    Work rescale{.statement = {}, .operands = {}, .vector_ops = 2, .vector_work = VectorWork::rescale};
    rescale.statement.name = "rescale";
    rescale.statement.domain = Domain::box({"m", "n"}, {i, j});
    rescale.statement.accesses = {{"C", Role::read, {{variable(0), variable(1)}}},
                                  {"D", Role::write, {{variable(0), variable(1)}}}};
    rescale.operands = {{.bits = 32, .internal = true}, {.bits = 8}};
    kernel.work[0].operands[2] = {.bits = 32, .internal = true};
    kernel.work.push_back(rescale);
    const KernelCost base = engine.cost(kernel);
    for (size_t r = 0; r < base.resources.size(); ++r) {
      const double h = 1e-4;
      const double up = slowed(chip, kernel, base, r, 1 + h), down = slowed(chip, kernel, base, r, 1 - h);
      const double now = base.unrounded_cycles, left = (now - down) / h / now, right = (up - now) / h / now;
      const double share = base.resources[r].elasticity;
      SCOPED_TRACE(GetParam() + " " + base.resources[r].name);
      if (std::abs(left - right) < 1e-6) {
        EXPECT_NEAR((up - down) / (2 * h) / now, share, 1e-9);
      } else {  // two resources take equally long: the slope changes here
        EXPECT_GE(share, std::min(left, right) - 1e-9);
        EXPECT_LE(share, std::max(left, right) + 1e-9);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Preset, testing::ValuesIn(all_chips()), [](const auto& info) { return info.param; });

/// The chip with memories that are in nobody's way.
Chip with_fast_memories(Chip chip) {
  for (Memory& m : chip.memories) m.read_bytes_per_cycle *= 1e6, m.write_bytes_per_cycle *= 1e6;
  return chip;
}

int64_t array_cycles(const Chip& described, int64_t i, int64_t j, int64_t k,
                     const std::optional<Placement>& placement = {}) {
  const Chip chip = with_fast_memories(described);
  const KernelCost c = CostEngine(chip).cost(product(chip, i, j, k), {placement});
  return c.statements[0].array_cycles();
}

/// k on rows and j on columns of the whole array, of as many cores as j needs; i streams.
Placement whole_tiles(const Chip& chip, int64_t cores) {
  Placement p{.mapping = {{variable(2), mod(variable(1), chip.columns)}, {variable(0)}}};
  p.held_since.assign(chip.memories.size(), 0);
  p.weight = 1;
  p.cores_used = cores;
  if (chip.cores > 1) p.core = floor_div(variable(1), chip.columns);
  return p;
}

// One tile of weights that fills a systolic array whose loads hide: the first load, one stamp per row of inputs, and the
// wave that crosses rows and columns.
TEST(Presets, SystolicWeightStationaryTile) {
  for (const char* name : {"tpuv1", "gemmini16", "edge_npu32"}) {
    const Chip chip = shipped(name);
    const int64_t cycles = chip.rows + 100 + chip.rows + chip.columns - 2;
    EXPECT_EQ(array_cycles(chip, 100, chip.columns, chip.rows, whole_tiles(chip, 1)), cycles) << name;
    // On fewer rows the wave is shorter: the default may take these.
    EXPECT_LE(array_cycles(chip, 100, chip.columns, chip.rows), cycles) << name;
  }
  // Eight of them in two cores' worth of matrix units: each has one tile.
  const Chip tpu = shipped("tpuv4_like");
  const int64_t cycles = tpu.rows + 100 + tpu.rows + tpu.columns - 2;
  EXPECT_EQ(array_cycles(tpu, 100, 8 * tpu.columns, tpu.rows, whole_tiles(tpu, 8)), cycles);
  EXPECT_LE(array_cycles(tpu, 100, 8 * tpu.columns, tpu.rows), cycles);
}

// SCALE-Sim's closed form: folds of M + 2 R + C - 2 cycles, which do not overlap.
TEST(Presets, ScaleSimFolds) {
  const Chip chip = shipped("scalesim_default");
  EXPECT_EQ(array_cycles(chip, 64, 64, 64), 4 * (64 + 2 * 32 + 32 - 2));
  EXPECT_EQ(array_cycles(chip, 200, 96, 32), 3 * (200 + 2 * 32 + 32 - 2));
  // Fewer than eight rows of inputs run output-stationary: folds of K + R + C - 2, of which one row of PEs is at work.
  EXPECT_EQ(array_cycles(chip, 1, 64, 500), 2 * (500 + 1 + 32 - 2));
}

// Adder trees: no wave; the first tile of weights loads row by row.
TEST(Presets, NvdlaAtoms) {
  EXPECT_EQ(array_cycles(shipped("nvdla_large"), 300, 32, 64), 64 + 300);
  EXPECT_EQ(array_cycles(shipped("nvdla_small"), 300, 8, 8), 8 + 300);
}

// Outputs stay, operands are broadcast: as many stamps as there are products in a sum, per tile of outputs.
TEST(Presets, OutputTiles) {
  EXPECT_EQ(array_cycles(shipped("shidiannao_like"), 16, 16, 100), 4 * 100);
  // Four products per lane and cycle.
  EXPECT_EQ(array_cycles(shipped("cpu_avx512_vnni"), 2 * 4, 16 * 8, 1000), 250);
}

// Twelve by nine tiles of 32 x 32 outputs are one for each of 108 cores; a row more is a second wave.
TEST(Presets, CoresTakeTilesInWaves) {
  Chip chip = shipped("a100");
  chip.dataflow = Stationary::output;
  for (auto& of_class : chip.dataflow_of) of_class.reset();
  chip.memories.pop_back();  // registers
  chip.memories.back().holds_outputs = true;
  chip.power_limit.reset(), chip.core_bytes_per_cycle.reset();
  EXPECT_EQ(array_cycles(chip, 12 * 32, 9 * 32, 1000), 1000);
  EXPECT_EQ(array_cycles(chip, 12 * 32 + 1, 9 * 32, 1000), 2000);
  const KernelCost one = CostEngine(with_fast_memories(chip)).cost(product(chip, 12 * 32, 9 * 32, 1000));
  EXPECT_EQ(one.bound, "launch");               // 2,820 cycles
  EXPECT_EQ(one.resources[0].slack_cycles, 0);  // of what works the array takes longest
  EXPECT_EQ(one.statements[0].placement->cores_used, 108);
  EXPECT_EQ(one.statements[0].counts->space, 108 * 1024);
  // Every multiprocessor fetches its own rows and columns from the second level; DRAM gives each once.
  const int64_t a = 12 * 32 * 1000 * 2, b = 9 * 32 * 1000 * 2, out = 12 * 32 * 9 * 32 * 2;
  EXPECT_EQ(one.memories[0].read_bytes, a + b);
  EXPECT_EQ(one.memories[0].write_bytes, out);
  EXPECT_EQ(one.memories[1].read_bytes - out, 9 * a + 12 * b);
}

// Shapes of large models on many cores are counted, not refused, and no core has more than its share and a tile.
TEST(Presets, LargeProductsOnManyCores) {
  for (const char* name : {"a100", "h100", "tpuv4_like", "cpu_avx512_vnni"}) {
    const Chip chip = shipped(name);
    CostEngine engine(chip);
    for (auto [i, j, k] : {std::tuple<int64_t, int64_t, int64_t>{4096, 22016, 4096},
                           {1, 57344, 8192},
                           {37, 11008, 4096},
                           {2048, 1376, 4096},
                           {512, 50257, 768},
                           {128, 10240, 2560}}) {
      const KernelCost c = engine.cost(product(chip, i, j, k));
      EXPECT_EQ(c.macs, i * j * k) << name;
      EXPECT_EQ(c.memories[0].read_bytes >= k * j * chip.precisions[0].weight_bits / 8, true) << name;
    }
  }
}

// A tile of 128 x 256 sums stays in a multiprocessor's registers until the reduction ends: the second level sees no partial
// sums, and feeds each tile its rows and columns once. By hand: cores share 2048 x 4096 outputs as 4 x 32 blocks of 512 x 128,
// so every row of A goes to 32 of them and every column of B to 4.
TEST(Presets, SumsOfAGpuStayInRegisters) {
  for (const char* name : {"h100", "h200"}) {
    const Chip chip = shipped(name);
    const KernelCost c = CostEngine(chip).cost(product(chip, 2048, 4096, 4096));
    EXPECT_EQ(c.bound, "array") << name;
    const int64_t a = 2048 * 4096 * 2, b = 4096 * 4096 * 2, out = 2048 * 4096 * 2;
    EXPECT_EQ(c.memories[1].write_bytes, c.memories[0].read_bytes + out) << name << ": complete outputs once";
    EXPECT_GE(c.memories[1].read_bytes, 32 * a + 4 * b + out) << name;
    // At the limit of 700 W an H200 had 660 to 670 of its 989 TFLOP/s under sustained load (bfloat16, 4096 cubed).
    const KernelCost large = CostEngine(chip).cost(product(chip, 4096, 4096, 4096));
    const double tera_flops = 2.0 * 4096 * 4096 * 4096 / large.latency_s / 1e12;
    EXPECT_GT(tera_flops, 640) << name;
    EXPECT_LT(tera_flops, 680) << name;
  }
}

// Work without a product does not bring a GPU to its power limit: copies take the bandwidth's time.
TEST(Presets, APowerLimitSlowsProductsAlone) {
  Chip chip = shipped("h200"), unlimited = chip;
  unlimited.power_limit.reset();
  const Kernel gemm = product(chip, 4096, 4096, 4096);
  const KernelCost limited = CostEngine(chip).cost(gemm), free = CostEngine(unlimited).cost(gemm);
  EXPECT_LT(free.latency_cycles, limited.latency_cycles);
  Work copy{.statement = {}, .operands = {{.bits = 16}, {.bits = 16}}, .vector_ops = 1};
  copy.statement.domain = Domain::box({"i", "j"}, {4096, 4096});
  copy.statement.accesses = {{"A", Role::read, {{variable(0), variable(1)}}},
                             {"B", Role::write, {{variable(0), variable(1)}}}};
  EXPECT_EQ(CostEngine(chip).cost({"copy", {copy}}).latency_cycles,
            CostEngine(unlimited).cost({"copy", {copy}}).latency_cycles);
}

TEST(Presets, AccumulatorsNeed) {
  const Chip chip = shipped("tpuv1");
  EXPECT_EQ(CostEngine(chip).cost(product(chip, 16, 16, 4096)).statements[0].accumulator_bits_needed, 27);
  Kernel small = product(chip, 16, 16, 128);
  small.work[0].operands[0].bits = small.work[0].operands[1].bits = 4;
  EXPECT_EQ(CostEngine(chip).cost(small).statements[0].accumulator_bits_needed, 14);
  const Chip gpu = shipped("a100");
  EXPECT_EQ(CostEngine(gpu).cost(product(gpu, 64, 64, 64)).statements[0].accumulator_bits_needed, 0);  // floats
}

TEST(Presets, NarrowAccumulatorsAreNamed) {
  Chip chip = shipped("tpuv1");
  const auto warns = [&](int bits) {
    for (Precision& p : chip.precisions) p.accumulator_bits = bits;
    const KernelCost cost = CostEngine(chip).cost(product(chip, 16, 16, 4096));
    return std::any_of(cost.notes.begin(), cost.notes.end(), [](const std::string& note) {
      return note.find("need 27 bits") != std::string::npos;
    });
  };
  EXPECT_TRUE(warns(26));
  EXPECT_FALSE(warns(27));
}

// Tiles of 4 columns of 8 bits out of rows of 16 move a whole burst of 16 bytes each: four times the bytes.
TEST(Presets, PartsOfRowsMoveWholeBursts) {
  Chip chip = shipped("gemmini16");
  chip.memories[0].burst_bytes = 16;
  Placement p;
  const QuasiAffine i = variable(0), j = variable(1), k = variable(2);
  p.mapping = {{k, mod(j, 4)}, {floor_div(j, 4), i}};
  p.held_since = {0, 1, 1};
  p.weight = 1;
  const KernelCost c = CostEngine(chip).cost(product(chip, 64, 16, 16), {p});
  int64_t weight_bits = 0, input_bits = 0;
  for (const Traffic& t : c.outside) (t.tensor == "B" ? weight_bits : input_bits) += t.tensor == "C" ? 0 : t.read_bits;
  EXPECT_EQ(weight_bits, 4 * 16 * 16 * 8);
  EXPECT_EQ(input_bits, 64 * 16 * 8);  // whole rows, and held all the time
}

TEST(Presets, CalibrationsChangeTimesAndGiveAnInterval) {
  Chip chip = shipped("gemmini16");
  const Kernel kernel = product(chip, 512, 512, 512);
  const KernelCost plain = CostEngine(chip).cost(kernel);
  EXPECT_FALSE(plain.latency_interval);
  chip.calibration = ChipCalibration{.array_time = 2, .memory_time = 2, .overhead_s = 1e-6, .low = 0.8, .high = 1.25};
  const KernelCost measured = CostEngine(chip).cost(kernel);
  // Other memories and the vector unit keep their times, and do not bind here.
  EXPECT_NEAR(static_cast<double>(measured.latency_cycles),
              2.0 * static_cast<double>(plain.latency_cycles) + 1000,
              0.02 * static_cast<double>(plain.latency_cycles));
  ASSERT_TRUE(measured.latency_interval);
  EXPECT_DOUBLE_EQ(measured.latency_interval->low_s, 0.8 * measured.latency_s);
  EXPECT_DOUBLE_EQ(measured.latency_interval->high_s, 1.25 * measured.latency_s);
}

/// n images, k filters over c channels of r x r, stride and outputs as given: one group.
Kernel convolution(int64_t n, int64_t k, int64_t out, int64_t c, int64_t r, int64_t stride) {
  Work w{.multiply_accumulate = true};
  w.statement.domain = Domain::box({"n", "k", "p", "q", "c", "r", "s"}, {n, k, out, out, c, r, r});
  const QuasiAffine p = variable(2), q = variable(3);
  w.statement.accesses = {
      {"I", Role::read, {{variable(0), variable(4), p * stride + variable(5), q * stride + variable(6)}}},
      {"W", Role::read, {{variable(1), variable(4), variable(5), variable(6)}}},
      {"O", Role::write, {{variable(0), variable(1), p, q}}}};
  w.operands = {{.bits = 16}, {.bits = 16, .kind = OperandKind::weight}, {.bits = 16}};
  return {"conv", {w}};
}

// PEs at work in the fabricated chip, layer by layer: Chen et al., JSSC 2017, table V.
TEST(Presets, EyerissActivePesOfAlexNet) {
  const Chip chip = shipped("eyeriss_v1");
  CostEngine engine(chip);
  struct Layer {
    int64_t filters, out, channels, window, stride, active;
  };
  for (const Layer& l : {Layer{96, 55, 3, 11, 4, 154},
                         {128, 27, 48, 5, 1, 135},
                         {384, 13, 256, 3, 1, 156},
                         {192, 13, 192, 3, 1, 156},
                         {128, 13, 192, 3, 1, 156}}) {
    const KernelCost c = engine.cost(convolution(4, l.filters, l.out, l.channels, l.window, l.stride));
    EXPECT_EQ(c.statements[0].counts->space, l.active) << l.filters << " filters of " << l.window;
    EXPECT_EQ(c.macs, 4 * l.filters * l.out * l.out * l.channels * l.window * l.window);
  }
}

// A ring of four passes one and a half times the bytes: LLMCompass measured 2.89 ms on four A100 for 402.7 MB.
TEST(Presets, AllReduceOverLinks) {
  Chip chip = shipped("a100");
  EXPECT_EQ(all_reduce_s(chip, 1, 1e9), 0);
  EXPECT_DOUBLE_EQ(all_reduce_s(chip, 2, 3e9), 3e9 / 300e9 + 2 * 2e-6);
  const double bytes = 8.0 * 2048 * 12288 * 2;
  EXPECT_DOUBLE_EQ(all_reduce_s(chip, 4, bytes), 1.5 * bytes / 300e9 + 6 * 2e-6);
  EXPECT_LE(all_reduce_s(chip, 4, bytes), 2.89e-3);
  EXPECT_GE(all_reduce_s(chip, 4, bytes), 2.89e-3 / 2);
  EXPECT_GT(all_reduce_j(chip, 4, bytes), 0);
  EXPECT_THROW(all_reduce_s(chip, 9, 1), Error);
  EXPECT_THROW(all_reduce_s(shipped("tpuv1"), 2, 1), Error);
}

}  // namespace
}  // namespace sator::dataflow
