// A machine's description and the fit to its kernels. Durations are made up from constants, which the fit has to find; nothing
// here is timed.
#include "study/host_calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "base/error.h"
#include "dataflow/cost/latency.h"
#include "study/host_comparison.h"
#include "study/host_machine.h"
#include "study/parts.h"
#include "study/sample.h"
#include "target/calibration.h"
#include "temp_folder.h"

namespace sator::study {
namespace {

HostMachine machine(int64_t threads) {
  const bool many = threads > 1;
  return {.cpu = "Some \"CPU\" @ 3 GHz",
          .isa = "avx512",
          .date = "2026-01-02",
          .threads = threads,
          .vector_bits = 512,
          .vector_registers = 32,
          .core_hz = 3e9,
          .f32 = {"96 x 512 x 512, float32", 80e9 * static_cast<double>(threads), 1.1},
          .int8 = {"96 x 512 x 512, int8", 270e9 * static_cast<double>(threads), 1.2},
          .levels = {{"dram", 0, false, 2e10, 1.1},
                     {"l3", 100 << 20, false, 6e10, 1.3},
                     {"l2", 2 << 20, many, 2e11, 1.05},
                     {"l1", 48 << 10, many, 5e11, 1.02}},
          .fork_join_s = 7e-7};
}

Chip chip_of(int64_t threads) { return parse_chip(chip_text(machine(threads), "host", ""), "host.toml"); }

// 80 GMAC/s of a core at 3 GHz are 27 per cycle: two vectors of 16. The clock is that at which they give 80 G.
TEST(HostMachine, DescriptionSaysWhatWasMeasured) {
  for (int64_t threads : {1, 4}) {
    const Chip chip = chip_of(threads);
    const auto n = static_cast<double>(threads);
    EXPECT_EQ(chip.cores, threads);
    ASSERT_EQ(chip.precisions.size(), 2u);
    EXPECT_TRUE(chip.precisions[0].is_float);
    const auto rate = [&](const Precision& p) {
      return static_cast<double>(chip.pes()) * p.macs_per_pe_per_cycle * chip.clock_hz;
    };
    EXPECT_NEAR(rate(chip.precisions[0]) / (80e9 * n), 1, 1e-3);
    EXPECT_NEAR(rate(chip.precisions[1]) / (270e9 * n), 1, 0.25) << "whole cycles per MAC";
    ASSERT_EQ(chip.memories.size(), 4u);
    const double rates[] = {2e10, 6e10, 2e11, 5e11};
    for (size_t m = 0; m < 4; ++m) {
      const Memory& memory = chip.memories[m];
      EXPECT_NEAR(memory.read_bytes_per_cycle * chip.clock_hz * (memory.per_core ? n : 1) / rates[m], 1, 1e-3);
    }
    EXPECT_FALSE(chip.memories[0].capacity_bytes);
    EXPECT_EQ(chip.memories[3].capacity_bytes, 48 << 10);
    EXPECT_NEAR(static_cast<double>(chip.launch_cycles) / chip.clock_hz, 7e-7, 1e-9);
    ASSERT_TRUE(chip.host);
    EXPECT_EQ(chip.host->cpu, "Some \"CPU\" @ 3 GHz");
    EXPECT_EQ(chip.host->threads, threads);
    EXPECT_NE(chip.source.find("measured by sator calibrate"), std::string::npos);
    EXPECT_FALSE(is_host(chip, threads)) << "another processor";
  }
}

TEST(HostMachine, ThisOneIsDescribedSoThatItIsFoundAgain) {
  HostMachine here = machine(2);
  here.cpu = host_name();
  Chip chip = parse_chip(chip_text(here, "host", ""), "host.toml");
  EXPECT_TRUE(is_host(chip, 2));
  EXPECT_FALSE(is_host(chip, 3)) << "other threads";
  chip.variation = "16x16";
  EXPECT_FALSE(is_host(chip, 2)) << "changed for a run";
}

TEST(HostMachine, NoThreadsAreRefused) { EXPECT_THROW(measure_machine(0), Error); }

/// Kernels of many shapes, as if this machine had needed what the chip with that calibration needs.
std::vector<HostKernel> make_kernels(const Chip& chip, const ChipCalibration& truth) {
  Chip measured = chip;
  measured.calibration = truth;
  dataflow::CostEngine plain(chip);
  std::vector<HostKernel> out;
  auto add =
      [&](const dataflow::Kernel& kernel, const std::string& kind, const std::string& shape, int64_t j, int64_t k) {
        HostKernel h{.model = "m", .scheme = "s", .phase = "p", .function = kernel.name, .kind = kind, .shape = shape};
        h.j = j, h.k = k, h.calls = 1;
        h.cost = plain.cost(kernel);
        dataflow::KernelCost timed = h.cost;
        timed.resources.clear(), timed.latency_parts.clear(), timed.latency_cycles = 0;
        find_latency(timed, measured);
        h.median_us = h.least_us = timed.unrounded_cycles / chip.clock_hz * 1e6;
        out.push_back(std::move(h));
      };
  const std::pair<int64_t, int64_t> weights[] = {
      {256, 256}, {768, 256}, {1024, 256}, {256, 1024}, {4096, 512}, {8192, 256}, {2048, 2048}};
  for (const auto& [j, k] : weights)
    for (int64_t i : {1, 2, 16, 64, 192}) {
      const std::string shape = text("weight ", j, " x ", k);
      const char* kind = i < 8 ? "gemv" : "gemm";
      add(linear("float", i, j, k, 32, true, 32), kind, shape, j, k);
      add(linear("codes", i, j, k, 4, true, 32, 32), kind, shape, j, k);
      add(linear("ints", i, j, k, 8, false, 8), kind, shape, j, k);
    }
  for (int64_t rows : {64, 128, 256, 512, 1024})
    for (int64_t columns : {256, 1024, 4096})
      add(vector_kernel("norm", rows, columns, VectorWork::reduce),
          "other",
          text("extents ", rows, " x ", columns),
          0,
          0);
  return out;
}

ChipCalibration truth() {
  return {.memory_time = 0.7,
          .cache_time = 1.2,
          .overhead_s = 4e-7,
          .array_time_of = {1.3, 0.6, 1},
          .vector_time_of = {0.5, 0.9, 1, 3}};
}

/// Made once: mapping so many products takes its time.
const std::vector<HostKernel>& known_kernels() {
  static const std::vector<HostKernel> kernels = make_kernels(chip_of(2), truth());
  return kernels;
}

TEST(HostFit, FindsTheConstantsThatMadeTheDurations) {
  const Chip chip = chip_of(2);
  const std::vector<HostKernel> kernels = known_kernels();
  const std::vector<bool> held_out = hold_out_shapes(kernels);
  const HostFit fit = fit_host(kernels, held_out, chip, "made up");
  // Constants that bind some kernels.
  EXPECT_NEAR(fit.calibration.constant("overhead"), 4e-7, 1.2e-7);
  EXPECT_NEAR(fit.calibration.constant("array_time_gemm"), 1.3, 0.08);
  EXPECT_EQ(fit.calibration.constant_or("array_time_batched", -1), -1) << "no such kernel";
  ASSERT_GE(fit.rows.size(), 4u);
  // Durations, also of shapes that no fit has seen. The fit is not exact: which resource binds a kernel changes with the constants.
  for (const HostAccuracy& row : fit.rows) {
    EXPECT_LT(row.accuracy.mean, 0.06) << row.words;
    EXPECT_GT(row.rank_correlation, 0.97) << row.words;
  }
  // What is written is what a chip reads.
  const ChipCalibration read = for_chip(parse_calibration(to_toml(fit.calibration), "c.toml"), chip);
  EXPECT_NEAR(read.array_time_of[0], 1.3, 0.08);
  EXPECT_EQ(read.array_time_of[2], 1);
  EXPECT_EQ(read.array_time, 1);
}

// With durations that scatter, the interval holds about nine of ten kernels of shapes that it has not seen.
TEST(HostFit, IntervalHoldsOnShapesHeldOut) {
  const Chip chip = chip_of(2);
  std::vector<HostKernel> kernels = known_kernels();
  std::mt19937 random(7);
  std::lognormal_distribution<double> noise(0, 0.2);
  for (HostKernel& k : kernels) k.median_us *= noise(random);
  const HostFit fit = fit_host(kernels, hold_out_shapes(kernels), chip, "made up");
  EXPECT_LT(fit.calibration.low, 0.85);
  EXPECT_GT(fit.calibration.high, 1.18);
  EXPECT_GE(fit.rows[1].accuracy.coverage, 0.75);
  EXPECT_FALSE(fit.calibration.kinds.empty());
  const Calibration back = parse_calibration(to_toml(fit.calibration), "c.toml");
  ASSERT_EQ(back.kinds.size(), fit.calibration.kinds.size());
  EXPECT_EQ(back.kinds[0].high, fit.calibration.kinds[0].high);
  // An estimate has the interval of its kind.
  Chip calibrated = chip;
  calibrated.calibration = for_chip(back, chip);
  const dataflow::KernelCost cost =
      dataflow::CostEngine(calibrated).cost(vector_kernel("norm", 256, 256, VectorWork::reduce));
  EXPECT_DOUBLE_EQ(cost.latency_interval->high_s / cost.latency_s, interval_for(back, "other").second);
  EXPECT_EQ(fit.rows[1].words, "held out");
  EXPECT_LT(fit.rows[1].accuracy.mean, 0.3);
}

TEST(HostFit, HoldsOutWholeShapesOfEachKind) {
  const std::vector<HostKernel> kernels = known_kernels();
  const std::vector<bool> held = hold_out_shapes(kernels);
  std::set<std::string> out, in;
  for (size_t k = 0; k < kernels.size(); ++k) (held[k] ? out : in).insert(kernels[k].shape);
  for (const std::string& shape : out) EXPECT_FALSE(in.contains(shape)) << shape;
  auto some = [](const std::set<std::string>& shapes, const char* begin) {
    return std::any_of(shapes.begin(), shapes.end(), [&](const std::string& s) { return s.starts_with(begin); });
  };
  for (const char* family : {"weight", "extents"}) {
    EXPECT_TRUE(some(out, family)) << family;
    EXPECT_TRUE(some(in, family)) << family;
  }
}

TEST(HostFit, TooFewKernelsAreRefused) {
  const Chip chip = chip_of(2);
  std::vector<HostKernel> kernels = known_kernels();
  EXPECT_THROW(fit_host({}, {}, chip, ""), Error);
  EXPECT_THROW(fit_host(kernels, std::vector<bool>(kernels.size(), true), chip, ""), Error);
  kernels.resize(10);
  try {
    fit_host(kernels, std::vector<bool>(10, false), chip, "");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("10 kernels of 1 shapes"), std::string::npos) << e.what();
  }
}

TEST(RankCorrelation, IsThatOfRanks) {
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3, 4}, {1, 8, 27, 64}), 1);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3, 4}, {9, 7, 5, 1}), -1);
  // 1 - 6 (1 + 1) / (4 (16 - 1))
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3, 4}, {2, 1, 3, 4}), 0.8);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 1, 1}, {1, 2, 3}), 0);
}

// A chip's file names its calibration, which lies beside it.
TEST(HostChip, BringsItsCalibration) {
  TempFolder folder;
  const fs::path file = folder.write("host.toml", chip_text(machine(2), "host", "host.calibration.toml"));
  EXPECT_THROW(find_chip(file.string()), Error) << "the calibration is not there";
  const Calibration c{.model = "engine",
                      .chip = "host",
                      .source = "x",
                      .rows = 30,
                      .constants = {{"memory_time", 2, "times"}, {"overhead", 1e-6, "s"}, {"cache_time", 0.5, "times"}},
                      .low = 0.8,
                      .high = 1.5};
  folder.write("host.calibration.toml", to_toml(c));
  const Chip chip = find_chip(file.string());
  ASSERT_TRUE(chip.calibration);
  EXPECT_EQ(chip.calibration->memory_time, 2);
  EXPECT_EQ(chip.calibration->cache_time, 0.5);
  EXPECT_EQ(chip.calibration->vector_time_of[3], 1);
  EXPECT_NE(identity_of(chip), chip_text(machine(2), "host", "host.calibration.toml")) << "it shapes results";
}

TEST(HostComparison, SetsEstimatesBesideMeasurements) {
  Study study = sample_study({default_samples()[0], default_samples()[3]}, {"edge_npu32", "tpuv1"});
  EXPECT_EQ(host_table(study, 0), "");
  EXPECT_EQ(host_section(study, 0), "");
  study.chips[0].is_host = true;
  const std::vector<HostPhase> phases = host_phases(study, 0);
  ASSERT_EQ(phases.size(), 4u);
  const PhaseResult& decode = study.schemes[0].chips[0].decode;
  EXPECT_EQ(phases[1].phase, "decode");
  EXPECT_DOUBLE_EQ(phases[1].estimated_tokens_per_s, 1 / decode.cost.latency_s);
  EXPECT_EQ(phases[1].measured_tokens_per_s, study.schemes[0].host_decode->median);
  EXPECT_EQ(phases[1].kernels, decode.rows.size());
  // Each of the sample's kernels took 12.5 us.
  double error = 0;
  for (const KernelRow& row : decode.rows) error += std::abs(row.cost.latency_s / 12.5e-6 - 1);
  EXPECT_NEAR(phases[1].mean_error, error / static_cast<double>(decode.rows.size()), 1e-12);
  EXPECT_NE(host_table(study, 0).find("int8-channel"), std::string::npos);
  EXPECT_NE(host_section(study, 0).find("<summary>Kernels of f32"), std::string::npos);
  EXPECT_EQ(error_words(90, 100), "-10.0 %");
  EXPECT_EQ(error_words(150, 100), "+50.0 %");
  EXPECT_EQ(error_words(1, std::nullopt), "-");
}

}  // namespace
}  // namespace sator::study
