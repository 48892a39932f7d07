#include "dataflow/cost/cost.h"
#include "base/error.h"
#include "dataflow/counts/gemm.h"
#include "shipped_chips.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

namespace sator::dataflow {
namespace {

Kernel gemm_kernel(int64_t i, int64_t j, int64_t k, int weight_bits = 8, int activation_bits = 8) {
  Work w{.statement = gemm(i, j, k),
         .operands = {{.bits = activation_bits, .kind = OperandKind::activation},
                      {.bits = weight_bits, .kind = OperandKind::weight},
                      {.bits = activation_bits, .kind = OperandKind::activation}},
         .multiply_accumulate = true};
  return {"gemm", {w}};
}

/// Weights as packed codes with a scale per group of k: a dequantize statement in front of the product.
Kernel quantized_kernel(int64_t i, int64_t j, int64_t k, int code_bits, int64_t group) {
  Work make{.statement = {}, .operands = {}, .vector_ops = 3, .vector_work = VectorWork::dequantize};
  make.statement.name = "dequantize";
  make.statement.domain = Domain::box({"n", "c"}, {j, k});
  QuasiAffine n = variable(0), c = variable(1);
  make.statement.accesses = {
      {"Q", Role::read, {{n, c}}}, {"Sc", Role::read, {{n, floor_div(c, group)}}}, {"W", Role::write, {{n, c}}}};
  make.operands = {{.bits = code_bits, .kind = OperandKind::weight},
                   {.bits = 16, .is_float = true, .kind = OperandKind::scale},
                   {.bits = 16, .is_float = true, .kind = OperandKind::weight, .internal = true}};
  Work product = gemm_kernel(i, j, k, 16, 16).work[0];
  product.statement.accesses[1] = {"W", Role::read, {{variable(1), variable(2)}}};
  for (Operand& o : product.operands) o.is_float = true;
  product.operands[1].internal = true;
  return {"dequantize_gemm", {make, product}};
}

int64_t outside_bits(const KernelCost& c, const std::string& tensor) {
  int64_t bits = 0;
  for (const Traffic& t : c.outside)
    if (t.tensor == tensor) bits += t.read_bits + t.write_bits;
  return bits;
}

class EveryChip : public testing::TestWithParam<const char*> {};

TEST_P(EveryChip, PartsSumToTotals) {
  CostEngine engine(shipped(GetParam()));
  for (const Kernel& kernel : {gemm_kernel(512, 768, 768),
                               gemm_kernel(1, 2304, 768),
                               gemm_kernel(37, 100, 61, 4, 16),
                               quantized_kernel(16, 768, 256, 4, 32)}) {
    KernelCost c = engine.cost(kernel);
    int64_t cycles = 0;
    for (const CyclePart& p : c.latency_parts) cycles += p.cycles;
    EXPECT_EQ(cycles, c.latency_cycles);
    EXPECT_DOUBLE_EQ(static_cast<double>(cycles) / engine.chip().clock_hz, c.latency_s);
    double joules = 0;
    for (const EnergyPart& e : c.energy_parts) {
      joules += e.joules;
      EXPECT_FALSE(e.source.empty()) << e.name;
    }
    EXPECT_DOUBLE_EQ(joules, c.energy_j);
    EXPECT_EQ(c.energy_node_nm, engine.chip().node_nm);
    int64_t macs = 0;
    std::vector<int64_t> moved(c.memories.size(), 0);
    for (const StatementCost& s : c.statements) {
      macs += s.macs;
      for (const Traffic& t : s.traffic) moved[t.memory] += t.read_bits + t.write_bits;
    }
    EXPECT_EQ(macs, c.macs);
    for (size_t m = 0; m < moved.size(); ++m)
      EXPECT_NEAR(static_cast<double>(moved[m]) / 8,
                  static_cast<double>(c.memories[m].read_bytes + c.memories[m].write_bytes),
                  1);
    for (const ResourceCost& r : c.resources) EXPECT_LE(r.cycles, c.latency_cycles) << r.name;
    EXPECT_LE(c.utilization, 1.0);
    EXPECT_GT(c.utilization, 0.0);
  }
}

// Nothing beats the bytes that must come in and go out, nor the MACs at the array's peak.
TEST_P(EveryChip, NoCostIsBelowItsRoofline) {
  CostEngine engine(shipped(GetParam()));
  const Chip& chip = engine.chip();
  for (auto [i, j, k] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 768, 768}, {128, 768, 3072}, {512, 4096, 4096}, {7, 50257, 768}}) {
    KernelCost c = engine.cost(gemm_kernel(i, j, k));
    const double bytes = static_cast<double>(i * k + k * j + i * j);
    EXPECT_GE(c.memories[0].read_bytes, i * k + k * j);
    EXPECT_GE(c.memories[0].write_bytes, i * j);
    EXPECT_GE(static_cast<double>(c.latency_cycles), bytes / chip.memories[0].read_bytes_per_cycle);
    EXPECT_GE(static_cast<double>(c.latency_cycles), static_cast<double>(i * j * k) / static_cast<double>(chip.pes()));
    EXPECT_EQ(c.macs, i * j * k);
  }
}

// One token reads every weight once, whatever the tiles: the bytes are the weights', and DRAM binds.
TEST_P(EveryChip, DecodeIsBoundByTheWeights) {
  CostEngine engine(shipped(GetParam()));
  KernelCost c = engine.cost(gemm_kernel(1, 4096, 4096));
  EXPECT_EQ(c.bound, "dram");
  EXPECT_EQ(outside_bits(c, "B"), int64_t{8} * 4096 * 4096);
  EXPECT_NEAR(c.latency_s,
              (4096.0 * 4096 + 2 * 4096) / (engine.chip().memories[0].read_bytes_per_cycle * engine.chip().clock_hz),
              0.01 * c.latency_s);
}

// What an operator is called, and in what order its iterators and accesses stand, is nothing to its cost.
TEST_P(EveryChip, RenamedAndReorderedCopiesCostTheSame) {
  CostEngine engine(shipped(GetParam()));
  Kernel plain = gemm_kernel(96, 320, 160);
  KernelCost want = engine.cost(plain);
  Kernel renamed = plain;
  renamed.name = "something";
  Statement& s = renamed.work[0].statement;
  s.name = "T";
  s.domain = Domain::box({"p", "q", "r"}, {160, 96, 320});  // k, i, j
  s.accesses = {{"X", Role::read, {{variable(1), variable(0)}}},
                {"Y", Role::read, {{variable(2), variable(0)}}},  // stored transposed
                {"Z", Role::write, {{variable(1), variable(2)}}}};
  KernelCost got = CostEngine(shipped(GetParam())).cost(renamed);
  EXPECT_EQ(got.latency_cycles, want.latency_cycles);
  EXPECT_EQ(got.macs, want.macs);
  for (size_t m = 0; m < want.memories.size(); ++m) {
    EXPECT_EQ(got.memories[m].read_bytes, want.memories[m].read_bytes);
    EXPECT_EQ(got.memories[m].write_bytes, want.memories[m].write_bytes);
  }
}

// A convolution goes the same way: with a 1x1 window it is the product over all positions, and its bytes are the GEMM's.
TEST_P(EveryChip, ConvolutionsTakeTheSamePath) {
  CostEngine engine(shipped(GetParam()));
  auto conv = [](int64_t channels, int64_t size, int64_t filters, int64_t window) {
    Work w{.statement = {}, .operands = gemm_kernel(1, 1, 1).work[0].operands, .multiply_accumulate = true};
    w.statement.domain = Domain::box({"f", "c", "y", "x", "u", "v"}, {filters, channels, size, size, window, window});
    QuasiAffine f = variable(0), c = variable(1), y = variable(2), x = variable(3), u = variable(4), v = variable(5);
    w.statement.accesses = {
        {"I", Role::read, {{c, y + u, x + v}}}, {"W", Role::read, {{f, c, u, v}}}, {"O", Role::write, {{f, y, x}}}};
    return Kernel{"conv", {w}};
  };
  KernelCost flat = engine.cost(conv(64, 16, 128, 1)), gemm = engine.cost(gemm_kernel(256, 128, 64));
  EXPECT_EQ(flat.macs, gemm.macs);
  EXPECT_EQ(outside_bits(flat, "W"), outside_bits(gemm, "B"));
  EXPECT_NEAR(static_cast<double>(flat.latency_cycles),
              static_cast<double>(gemm.latency_cycles),
              0.25 * static_cast<double>(gemm.latency_cycles));
  KernelCost window = engine.cost(conv(64, 16, 128, 3));
  EXPECT_EQ(window.macs, int64_t{128} * 64 * 16 * 16 * 9);
  // The input's halo is shared between positions: far fewer bytes than nine times the output's positions.
  EXPECT_GE(outside_bits(window, "I"), int64_t{8} * 64 * 18 * 18);
  EXPECT_LT(outside_bits(window, "I"), int64_t{8} * 64 * 16 * 16 * 9);
}

// Batched products, as attention has them, with queries that share the keys of a group.
TEST_P(EveryChip, BatchedProductsShareKeys) {
  CostEngine engine(shipped(GetParam()));
  Work w{.statement = {}, .operands = gemm_kernel(1, 1, 1).work[0].operands, .multiply_accumulate = true};
  w.operands[1].kind = OperandKind::kv;
  w.statement.domain = Domain::box({"h", "q", "t", "d"}, {12, 1, 256, 64});
  QuasiAffine h = variable(0), q = variable(1), t = variable(2), d = variable(3);
  w.statement.accesses = {
      {"Q", Role::read, {{h, q, d}}}, {"K", Role::read, {{floor_div(h, 4), t, d}}}, {"S", Role::write, {{h, q, t}}}};
  KernelCost c = engine.cost({"scores", {w}});
  EXPECT_EQ(c.macs, 12 * 256 * 64);
  // Three groups of keys exist; each is read at least once and at most once per head.
  EXPECT_GE(outside_bits(c, "K"), 8 * 3 * 256 * 64);
  EXPECT_LE(outside_bits(c, "K"), 8 * 12 * 256 * 64);
}

// Quantized weights: DRAM carries codes and scales and nothing else of the weight; the made elements are as many as enter
// the array.
TEST_P(EveryChip, CodesAndScalesAreWhatMoves) {
  CostEngine engine(shipped(GetParam()));
  for (int64_t tokens : {1, 64}) {
    KernelCost c = engine.cost(quantized_kernel(tokens, 1024, 512, 4, 32));
    EXPECT_GE(outside_bits(c, "Q"), 4 * 1024 * 512);
    EXPECT_GE(outside_bits(c, "Sc"), 16 * 1024 * 512 / 32);
    EXPECT_EQ(outside_bits(c, "W"), 0);
    if (tokens == 1) {
      EXPECT_EQ(outside_bits(c, "Q"), 4 * 1024 * 512);
      EXPECT_EQ(outside_bits(c, "Sc"), 16 * 1024 * 512 / 32);
    }
    const StatementCost* making = nullptr;
    for (const StatementCost& s : c.statements)
      if (s.name == "dequantize") making = &s;
    ASSERT_TRUE(making);
    EXPECT_GE(making->instances, 1024 * 512);
    EXPECT_EQ(making->vector_ops, 3 * making->instances);
    const bool at_the_edge = engine.chip().inline_work.size() > 0;
    EXPECT_EQ(making->vector_cycles == 0, at_the_edge);
    EXPECT_EQ(c.macs, tokens * 1024 * 512);
  }
}

// What is given in once, what is made out once; weights that are made of codes on the way stay on the chip.
TEST_P(EveryChip, CompulsoryTrafficIsEachTensorOnce) {
  CostEngine engine(shipped(GetParam()));
  auto compulsory_of = [&](const Kernel& kernel) {
    const KernelCost c = engine.cost(kernel);
    for (const MemoryCost& m : c.memories) EXPECT_LE(m.compulsory_bytes, m.read_bytes + m.write_bytes) << m.name;
    return c.memories[0].compulsory_bytes;
  };
  EXPECT_EQ(compulsory_of(gemm_kernel(512, 768, 256)), 512 * 256 + 768 * 256 + 512 * 768);
  EXPECT_EQ(compulsory_of(quantized_kernel(64, 768, 256, 4, 32)),
            2 * 64 * 256 + 768 * 256 / 2 + 2 * 768 * 256 / 32 + 2 * 64 * 768);
}

// Weights of 100,000 x 500,000 in 16 bits are 100 GB; an h100 has 80.
TEST(Capacity, WhatTheOutermostMemoryCannotHoldIsSaid) {
  CostEngine engine(shipped("h100"));
  auto notes_of = [&](int64_t j) {
    std::string all;
    for (const std::string& note : engine.cost(gemm_kernel(1, j, 100'000, 16, 16)).notes) all += note + "\n";
    return all;
  };
  EXPECT_EQ(notes_of(390'000).find("does not fit"), std::string::npos);
  EXPECT_NE(notes_of(500'000).find("gemm does not fit: its tensors have 100 GB, hbm of h100 holds 80.0 GB"),
            std::string::npos);
}

TEST_P(EveryChip, NarrowerWeightsAreNeverSlower) {
  CostEngine engine(shipped(GetParam()));
  for (int64_t tokens : {1, 256}) {
    int64_t before = INT64_MAX / 2;
    for (int bits : {16, 8, 4}) {
      KernelCost c = engine.cost(gemm_kernel(tokens, 1024, 1024, bits, 8));
      EXPECT_LE(c.latency_cycles, before + before / 50) << bits;
      before = c.latency_cycles;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, EveryChip, testing::Values("tpuv1", "gemmini16", "edge_npu32"));

// TPUv1's MLP0 does 200 operations per weight byte, so 34 GB/s allow 13.6 TOPS at most; the chip reached 12.3
// (Jouppi et al., ISCA 2017, table 3). Its layers: batch 200, five of 2000 x 2000.
TEST(Tpu, WeightBoundAsPublished) {
  CostEngine engine(shipped("tpuv1"));
  KernelCost c = engine.cost(gemm_kernel(200, 2000, 2000));
  EXPECT_EQ(c.bound, "dram");
  const double tops = 2 * static_cast<double>(c.macs) / c.latency_s / 1e12;
  EXPECT_LT(tops, 13.6);
  EXPECT_GT(tops, 0.8 * 12.3 * 0.8);  // outputs and inputs share the bus here, which the chip sends over PCIe
}

TEST(Edge, HalfTheBitsTwiceTheRate) {
  CostEngine engine(shipped("edge_npu32"));
  // Long rows of tokens: the array binds.
  KernelCost eight = engine.cost(gemm_kernel(4096, 1024, 1024, 8, 8)),
             four = engine.cost(gemm_kernel(4096, 1024, 1024, 4, 8)),
             both = engine.cost(gemm_kernel(4096, 1024, 1024, 4, 4));
  auto stamps = [](const KernelCost& c) { return c.statements[0].stream_cycles; };
  EXPECT_EQ(stamps(eight), int64_t{4096} * 1024 * 1024 / (32 * 32));
  EXPECT_EQ(stamps(four), stamps(eight) / 2);
  EXPECT_EQ(stamps(both), stamps(eight) / 4);
  EXPECT_TRUE(eight.notes.empty());
}

TEST(Precision, WhatAChipLacksRunsAtTheNext) {
  Chip tpu = shipped("tpuv1"), gemmini = shipped("gemmini16");
  PrecisionChoice c = choose_precision(tpu, 4, false, 8, false);
  EXPECT_EQ(c.precision.weight_bits, 8);
  EXPECT_EQ(c.note, "int4 x int8 runs as int8 x int8");
  c = choose_precision(tpu, 16, true, 16, true);
  EXPECT_EQ(c.precision.weight_bits, 16);
  EXPECT_EQ(c.passes, 1);
  EXPECT_EQ(c.note, "float16 x float16 runs as int16 x int16");
  c = choose_precision(gemmini, 32, true, 32, true);
  EXPECT_EQ(c.passes, 16);
  EXPECT_EQ(c.note, "float32 x float32 runs as int8 x int8 in 16 passes");
  EXPECT_TRUE(choose_precision(tpu, 8, false, 8, false).note.empty());
  // The cost says so too.
  KernelCost cost = CostEngine(gemmini).cost(gemm_kernel(64, 64, 64, 16, 16));
  ASSERT_EQ(cost.notes.size(), 2u);
  EXPECT_NE(cost.notes[1].find("need 37 bits and accumulators have 32"), std::string::npos) << cost.notes[1];
  EXPECT_EQ(cost.statements[0].stream_cycles, int64_t{64} * 64 * 64 / 256 * 4);
}

// By the rows of their files: of 16 bits are those with units for 16-bit floats beside slower or no ones for 32 bits, and those
// with integers of 16 bits alone; not those that put them together from narrower ones.
TEST(Precision, ChipsThatMultiply16BitsAtSpeed) {
  const std::set<std::string> of_16_bits = {"a100",
                                            "a40",
                                            "b200",
                                            "cpu_avx512_vnni",
                                            "eyeriss_v1",
                                            "groq_lpu_like",
                                            "h100",
                                            "h200",
                                            "l4",
                                            "l40s",
                                            "mi210",
                                            "shidiannao_like",
                                            "t4",
                                            "tenet-8x8",
                                            "tpuv3",
                                            "tpuv4_like",
                                            "v100"};
  size_t others = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(SATOR_SOURCE_DIR) + "/chips")) {
    if (entry.path().extension() != ".toml") continue;
    const std::string name = entry.path().stem().string();
    EXPECT_EQ(multiplies_16_bits_at_speed(shipped(name)), of_16_bits.contains(name)) << name;
    others += !of_16_bits.contains(name);
  }
  EXPECT_EQ(others, 8U);
  // Floats of 32 bits at the same rate leave nothing to gain.
  Chip chip = shipped("v100");
  for (Precision& p : chip.precisions) p.macs_per_pe_per_cycle = 1;
  EXPECT_FALSE(multiplies_16_bits_at_speed(chip));
}

// Scales after the sum: a row of rescales per output for one scale per token or channel, one per group otherwise.
TEST(VectorWorkTest, RescaleCostsItsInstances) {
  Kernel k = gemm_kernel(64, 256, 128);
  k.work[0].operands[2] = {.bits = 32, .internal = true};
  Work rescale{.statement = {}, .operands = {}, .vector_ops = 2, .vector_work = VectorWork::rescale};
  rescale.statement.name = "rescale";
  rescale.statement.domain = Domain::box({"m", "n"}, {64, 256});
  rescale.statement.accesses = {{"C", Role::read, {{variable(0), variable(1)}}},
                                {"s", Role::read, {{variable(1)}}},
                                {"D", Role::write, {{variable(0), variable(1)}}}};
  rescale.operands = {{.bits = 32, .internal = true},
                      {.bits = 32, .is_float = true, .kind = OperandKind::scale},
                      {.bits = 16, .is_float = true}};
  k.work.push_back(rescale);
  KernelCost c = CostEngine(shipped("gemmini16")).cost(k);
  const StatementCost& s = c.statements.back();
  EXPECT_EQ(s.vector_ops, 2 * 64 * 256);
  EXPECT_EQ(s.vector_cycles, 2 * 64 * 256 / 16);
  EXPECT_EQ(outside_bits(c, "C"), 0);
  EXPECT_EQ(outside_bits(c, "s"), 32 * 256);
  EXPECT_EQ(outside_bits(c, "D"), 16 * 64 * 256);
}

TEST(GivenMapping, IsCostedAsItIs) {
  Chip chip = shipped("gemmini16");
  Kernel k = gemm_kernel(32, 32, 32);
  Placement p;
  QuasiAffine i = variable(0), j = variable(1), kk = variable(2);
  p.mapping = {{mod(kk, 16), mod(j, 16)}, {floor_div(j, 16), floor_div(kk, 16), i}};
  p.held_since = {0, 0, 1};
  KernelCost c = CostEngine(chip).cost(k, {p});
  EXPECT_EQ(c.statements[0].stream_cycles, 2 * 2 * 32);
  EXPECT_EQ(c.statements[0].fill_drain_cycles, 30);
  // Two tiles of accumulators, each summed over two tiles of k: half of the sums come back.
  const MemoryCost& sums = c.memories[2];
  EXPECT_EQ(sums.write_bytes, 4 * 32 * 32 * 2);
  EXPECT_EQ(sums.read_bytes, 4 * 32 * 32 + 32 * 32);
  p.held_since = {0, 0};
  EXPECT_THROW(CostEngine(chip).cost(k, {p}), Error);
  p.held_since = {0, 0, 1};
  p.mapping.space[0] = kk;
  EXPECT_THROW(CostEngine(chip).cost(k, {p}), Error);
}

// The mapper's estimate rests on Timeloop's product rule; the engine counts. For products of boxes both are the same.
TEST(Mapper, TheRuleForNestsOfLoopsIsExactForProducts) {
  for (auto [i, j, k] : {std::tuple<int64_t, int64_t, int64_t>{64, 64, 64}, {48, 80, 112}, {50, 70, 90}}) {
    const int64_t ti = 16, tj = 16, tk = 32;
    QuasiAffine x = variable(0), y = variable(1), z = variable(2);
    Problem p{gemm(i, j, k),
              {{number(0)}, {floor_div(y, tj), floor_div(x, ti), floor_div(z, tk)}},
              {Domain::box({"p"}, {1}), {}}};
    Counts c = exact(p);
    // Loops j, i, k from outside: A is read again for every tile of j, B for every tile of i, C never.
    EXPECT_EQ(tensor(c, "A").unique, i * k * ceil_div(j, tj));
    EXPECT_EQ(tensor(c, "B").unique, k * j * ceil_div(i, ti));
    EXPECT_EQ(tensor(c, "C").unique, i * j);
  }
}

}  // namespace
}  // namespace sator::dataflow
