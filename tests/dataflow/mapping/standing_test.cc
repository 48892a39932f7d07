// What of a kernel's own tensors stands on the chip at once, beside the product's tiles; worked by hand.
#include <gtest/gtest.h>

#include "base/text.h"
#include "dataflow/cost/cost.h"
#include "dataflow/programs/matmul.h"

namespace sator::dataflow {
namespace {

struct Room {
  const char* dataflow = "os";
  int64_t activations = 1'000'000, sums = 1'000'000;  // bytes
  int64_t dram = 1024;                                // bytes per cycle
};

/// 4 x 4 PEs without skew, one MAC per cycle; memories of their own for activations, weights and sums, none double-buffered.
Chip chip_of(const Room& room) {
  auto memory = [](const char* name, int64_t capacity, const char* holds) {
    return text("[[memory]]\nname = \"",
                name,
                "\"\ncapacity_bytes = ",
                capacity,
                "\nbytes_per_cycle = 100_000\ndouble_buffered = false\nholds = [\"",
                holds,
                "\"]\nenergy_pj_per_bit = 1\nenergy_source = \"by hand\"\n");
  };
  return parse_chip(text(R"(
name = "toy"
description = "a toy"
source = "by hand"
node_nm = 7
clock_hz = 1_000_000_000
[array]
rows = 4
columns = 4
interconnect = "multicast"
dataflow = ")",
                         room.dataflow,
                         R"("
[[precision]]
weight_bits = 8
activation_bits = 8
accumulator_bits = 32
macs_per_pe_per_cycle = 1
energy_pj_per_mac = 0.1
energy_source = "by hand"
[[memory]]
name = "dram"
bytes_per_cycle = )",
                         room.dram,
                         "\nenergy_pj_per_bit = 1\nenergy_source = \"by hand\"\n",
                         memory("inputs", room.activations, "activation"),
                         memory("filters", 1'000'000, "weight"),
                         memory("sums", room.sums, "output"),
                         R"(
[pe]
capacity_bytes = 8
energy_pj_per_bit = 0.1
energy_source = "by hand"
[vector]
lanes = 1024
ops_per_lane_per_cycle = 1
does = ["elementwise", "reduce", "dequantize", "rescale", "quantize"]
energy_pj_per_op = 1
energy_source = "by hand"
)"),
                    "toy.toml");
}

KernelCost cost_of(const Room& room, Matmul m) {
  if (m.scale == ScalePer::none) m.scale = ScalePer::channel;
  m.weight_bits = m.activation_bits = 8;
  m.float_bits = m.scale_bits = 32;
  return CostEngine(chip_of(room)).cost(matmul_kernel(m));
}

const StatementCost& product_of(const KernelCost& cost) {
  for (const StatementCost& s : cost.statements)
    if (s.on_array()) return s;
  throw std::runtime_error("no product");
}

// 4 x 16 codes of the inputs, taken for each of two tiles of four columns: 64 bytes have to stand. Fewer rows at once would
// leave half of the array idle, and memory outside is quick. A turn's sums fill their memory: none wait for more terms.
TEST(Standing, CodesOfTheInputsNeedRoomForAllTurnsThatTakeThem) {
  const Matmul m{.i = 4, .j = 8, .k = 16};
  const int64_t inputs = 4 * 16 * 4, weights = 8 * 16, scales = 8 * 4, outputs = 4 * 8 * 4, codes = 64;
  const KernelCost fits = cost_of({.activations = codes, .sums = 64}, m);
  EXPECT_EQ(fits.memories[0].read_bytes, inputs + weights + scales);
  EXPECT_EQ(fits.memories[0].write_bytes, outputs);
  EXPECT_TRUE(fits.notes.empty());
  // One byte less: they go out once and come back for each of the two tiles, four by four.
  const KernelCost not_quite = cost_of({.activations = codes - 1, .sums = 64}, m);
  EXPECT_EQ(not_quite.memories[0].read_bytes, inputs + weights + scales + 2 * codes);
  EXPECT_EQ(not_quite.memories[0].write_bytes, outputs + codes);
  EXPECT_EQ(product_of(not_quite).placement->stored_outside, std::vector<std::string>{"x_codes"});
  ASSERT_EQ(not_quite.notes.size(), 1u);
  EXPECT_NE(not_quite.notes[0].find("x_codes"), std::string::npos) << not_quite.notes[0];
  int64_t named = 0;  // the traffic has its tensor's name
  for (const Traffic& t : not_quite.outside)
    if (t.tensor == "x_codes") named += t.read_bits + t.write_bits;
  EXPECT_EQ(named, 8 * 3 * codes);
}

// Where weights stay, 8 x 4 sums stand between the two turns of four terms each: 128 bytes.
TEST(Standing, SumsNeedRoomBetweenTheTurnsThatAddToThem) {
  const Matmul m{.i = 8, .j = 4, .k = 8};
  const int64_t inputs = 8 * 8 * 4, weights = 4 * 8, scales = 4 * 4, outputs = 8 * 4 * 4, sums = 128;
  const KernelCost fits = cost_of({.dataflow = "ws", .sums = sums}, m);
  EXPECT_EQ(fits.memories[0].read_bytes, inputs + weights + scales);
  EXPECT_EQ(fits.memories[0].write_bytes, outputs);
  // One byte less, and memory outside as quick as any: sums go out after each turn, come back before the second, and
  // complete ones for the vector unit.
  const KernelCost not_quite = cost_of({.dataflow = "ws", .sums = sums - 1}, m);
  EXPECT_EQ(not_quite.memories[0].read_bytes, inputs + weights + scales + sums + sums);
  EXPECT_EQ(not_quite.memories[0].write_bytes, outputs + 2 * sums);
  EXPECT_EQ(product_of(not_quite).placement->stored_outside, std::vector<std::string>{"sums"});
  // Where it is slow, the weights are loaded again for four rows at a time, whose sums fit.
  const KernelCost in_tiles = cost_of({.dataflow = "ws", .sums = sums - 1, .dram = 1}, m);
  EXPECT_EQ(in_tiles.memories[0].read_bytes, inputs + weights + scales);
  EXPECT_EQ(in_tiles.memories[0].write_bytes, outputs);
  EXPECT_GT(product_of(in_tiles).load_cycles, product_of(fits).load_cycles);
}

// Two groups of four: with the groups' loop around all others, 8 x 8 running sums of 4 bytes would have to stand where the
// vector unit adds to them. 4 rows of codes (32 bytes) and 4 x 4 running sums (64 bytes) have room.
TEST(Standing, RunningSumsOverGroupsStayOnTheChip) {
  Matmul m{.i = 8, .j = 8, .k = 8};
  m.scale = ScalePer::group, m.group = 4;
  const std::string words = product_of(cost_of({.activations = 100}, m)).placement->words;
  const size_t group = words.find("g");
  EXPECT_LT(words.find("i by 4"), group) << words;
  EXPECT_LT(words.find("j by 4"), group) << words;
}

// With tiles that are asked for, too.
TEST(Standing, AskedTilesAreHeldToIt) {
  const Matmul m{.i = 4, .j = 8, .k = 16, .scale = ScalePer::channel, .weight_bits = 8, .activation_bits = 8};
  for (int64_t room : {64, 63}) {
    Chip chip = chip_of({.activations = room});
    chip.tile = {4, 4, 8};
    const KernelCost cost = CostEngine(chip).cost(matmul_kernel(m));
    EXPECT_EQ(product_of(cost).placement->stored_outside.size(), room < 64 ? 1u : 0u);
  }
}

}  // namespace
}  // namespace sator::dataflow
