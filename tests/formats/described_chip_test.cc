// Chips as options describe them: folders with TENET's files, the chip of TENET's own formula, changed arrays and tiles.
#include "dataflow/cost/described_chip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "dataflow/cost/cost.h"
#include "dataflow/counts/gemm.h"
#include "dataflow/programs/matmul.h"
#include "dataflow/reference_rows.h"
#include "dataflow/tenet/metrics.h"
#include "formats/tenet/answer.h"
#include "temp_folder.h"

namespace sator::formats {
namespace {

using namespace dataflow;

std::string shipped(const std::string& name) { return std::string(SATOR_SOURCE_DIR) + "/chips/" + name + ".toml"; }

constexpr const char* kArray =
    "{PE[i,j]:0<=i<4 and 0<=j<6}\n{PE[i,j]->PE[i-1,j] ; PE[i,j]->PE[i,j-1]}\n256 1024 128 7\n";
constexpr const char* kMapping = "{S[i,j,k]->PE[i%4,j%6]}\n{S[i,j,k]->T[floor(i/4),floor(j/6),i%4+j%6+k]}\n";

/// A batch of `b` products in the words of the engine.
Kernel batched(int64_t b, int64_t i, int64_t j, int64_t k) {
  Kernel kernel{.name = "batched", .work = {}};
  Work& work = kernel.work.emplace_back();
  work.multiply_accumulate = true;
  work.statement.domain = Domain::box({"b", "i", "j", "k"}, {b, i, j, k});
  auto at = [](int x, int y) { return std::vector<Map>{{variable(0), variable(x), variable(y)}}; };
  work.statement.accesses = {{"A", Role::read, at(1, 3)}, {"B", Role::read, at(2, 3)}, {"C", Role::write, at(1, 2)}};
  work.operands.assign(3, {.bits = 16, .is_float = true});
  return kernel;
}

/// The delays of TENET's metrics for a statement of its own.
TenetMetrics metrics_of(const std::string& array, const std::string& mapping, const std::string& statement) {
  const TenetInput input = parse_tenet({array, mapping, statement});
  return tenet_metrics(tenet_counts(input), input.hardware);
}

std::string gemm_text(int64_t i, int64_t j, int64_t k) {
  return text("2 1\n{S[i,j,k]: 0<=i<",
              i,
              " and 0<=j<",
              j,
              " and 0<=k<",
              k,
              "}\n{S[i,j,k]->A[i,k]}\n{S[i,j,k]->B[k,j]}\n",
              "{S[i,j,k]->C[i,j]}\n");
}

// 4 items per cycle go in while 4 come out, whatever their widths: an outer product of 256 x 256 on 8 x 8 PEs takes
// 1024 tiles of 256 x 8 items of each factor, and gives 65,536 sums. As many items are moved at any width, in as many cycles.
TEST(TenetChip, BandwidthsAreItemsPerCycle) {
  const Chip chip = described_chip("tenet-8x8");
  constexpr double kItemsIn = 1024 * 2 * 8 * 256, kItemsOut = 256 * 256, kItemsPerCycle = 8;
  for (int bits : {8, 16, 32}) {
    SCOPED_TRACE(bits);
    const KernelCost cost = CostEngine(chip).cost(matmul_kernel({.i = 256, .j = 256, .k = 256, .float_bits = bits}));
    const MemoryCost& scratchpad = cost.memories.back();
    EXPECT_EQ(scratchpad.read_bytes + scratchpad.write_bytes, static_cast<int64_t>((kItemsIn + kItemsOut) * bits / 8));
    EXPECT_EQ(cost.latency_cycles, 1048591);
    EXPECT_NEAR(scratchpad.available_bytes_per_s, kItemsPerCycle * bits / 8 * 1e9, 1);
    EXPECT_NEAR(scratchpad.achieved_bytes_per_s / scratchpad.available_bytes_per_s,
                (kItemsIn + kItemsOut) / kItemsPerCycle / 1048591,
                1e-9);
  }
}

class Folders : public testing::Test {
 protected:
  std::string folder() const { return temp.path() / "mine"; }
  TempFolder temp;
};

// On the array of TENET's samples the chip takes as long as TENET's program said that it takes.
TEST(TenetChip, TakesWhatTenetPrinted) {
  int found = 0;
  for (const nlohmann::json& row : reference_rows("tenet/tenet-samples.jsonl")) {
    const std::string id = row["id"];
    const bool ws = id == "interconnect/matmul/matmul_systolic_ws/systolic";
    if (!ws && id != "interconnect/matmul/matmul_systolic_os/systolic") continue;
    ++found;
    ChipChanges changes;
    if (ws) changes.dataflow = Stationary::weight;
    CostEngine engine(described_chip(shipped("tenet-8x8"), changes));
    const KernelCost cost = engine.cost(matmul_kernel({.i = 256, .j = 256, .k = 256}));
    EXPECT_EQ(cost.latency_cycles, row["tenet_master"]["delay"]) << id;
    ASSERT_TRUE(cost.statements[0].tenet);
    EXPECT_EQ(cost.statements[0].tenet->delay_in, row["tenet_master"]["delay_in"]);
    EXPECT_EQ(cost.statements[0].tenet->delay_out, row["tenet_master"]["delay_out"]);
    EXPECT_EQ(cost.statements[0].tenet->delay_compute, row["tenet_master"]["delay_compute"]);
    for (const TensorCounts& t : cost.statements[0].counts->tensors) {
      const std::string key = t.role == Role::write ? "out:C" : t.tensor == "X" ? "in:A" : "in:B";
      EXPECT_EQ(t.unique, row["counts"]["tensors"][key]["unique"]) << id << " " << key;
    }
  }
  EXPECT_EQ(found, 2);
}

// Sizes that do not divide; the files' own metrics are the reference.
TEST_F(Folders, CostProductsByTheirMapping) {
  temp.write("mine/pe_array.p", kArray);
  temp.write("mine/any.m", kMapping);
  const Chip chip = described_chip(folder());
  EXPECT_EQ(chip.name, "mine");
  EXPECT_EQ(chip.rows, 4);
  EXPECT_EQ(chip.columns, 6);
  EXPECT_EQ(chip.memories.at(0).read_bytes_per_cycle, 16);
  CostEngine engine(chip);
  for (auto [i, j, k] : {std::array<int64_t, 3>{37, 29, 53}, {1, 64, 100}, {4, 6, 1}, {1, 1, 1}}) {
    SCOPED_TRACE(text(i, " ", j, " ", k));
    const KernelCost cost = engine.cost(matmul_kernel({.i = i, .j = j, .k = k}));
    const TenetMetrics metrics = metrics_of(kArray, kMapping, gemm_text(i, j, k));
    EXPECT_EQ(cost.latency_cycles, metrics.latency_master);
    EXPECT_EQ(cost.macs, i * j * k);
    EXPECT_DOUBLE_EQ(cost.mac_units_used, metrics.avg_active_pe);
  }
}

// A batch runs in turn under a mapping of three iterators, and as one of them under a mapping of four.
TEST_F(Folders, TakeBatches) {
  temp.write("mine/pe_array", kArray);
  temp.write("mine/mapping", kMapping);
  const std::string statement =
      "2 1\n{S[b,i,j,k]: 0<=b<3 and 0<=i<10 and 0<=j<7 and 0<=k<5}\n{S[b,i,j,k]->A[b,i,k]}\n{S[b,i,j,k]->B[b,j,k]}\n"
      "{S[b,i,j,k]->C[b,i,j]}\n";
  const std::string in_turn = "{S[b,i,j,k]->PE[i%4,j%6]}\n{S[b,i,j,k]->T[b,floor(i/4),floor(j/6),i%4+j%6+k]}\n";
  EXPECT_EQ(CostEngine(described_chip(folder())).cost(batched(3, 10, 7, 5)).latency_cycles,
            metrics_of(kArray, in_turn, statement).latency_master);
  const std::string side_by_side = "{S[b,i,j,k]->PE[b%4,j%6]}\n{S[b,i,j,k]->T[floor(j/6),i,b%4+j%6+k]}\n";
  temp.write("mine/mapping", side_by_side);
  EXPECT_EQ(CostEngine(described_chip(folder())).cost(batched(3, 10, 7, 5)).latency_cycles,
            metrics_of(kArray, side_by_side, statement).latency_master);
}

TEST_F(Folders, NameWhatIsNotCosted) {
  temp.write("mine/pe_array.p", kArray);
  temp.write("mine/mapping.m", kMapping);
  const Matmul quantized{.i = 8, .j = 12, .k = 16, .scale = ScalePer::channel, .weight_bits = 8, .activation_bits = 8};
  CostEngine engine(described_chip(folder()));
  const KernelCost cost = engine.cost(matmul_kernel(quantized));
  EXPECT_EQ(cost.macs, 8 * 12 * 16);
  const std::string notes = join(cost.notes, "; ");
  EXPECT_NE(notes.find("mine has no vector unit: no cost for largest, quantize, rescale of matmul"), std::string::npos)
      << notes;
  Kernel vector = matmul_kernel(quantized);
  vector.work.resize(1);
  EXPECT_NE(error_of([&] { engine.cost(vector); }).find("nothing of it is a product of i, j, k"), std::string::npos);
  // With a vector unit that work has a cost, after the product's.
  temp.write("mine/chip.toml", text("base = \"", shipped("edge_npu32"), "\"\nname = \"better\"\nclock_hz = 5e8\n"));
  CostEngine better(described_chip(folder()));
  EXPECT_EQ(better.chip().name, "better");
  EXPECT_EQ(better.chip().clock_hz, 5e8);
  const KernelCost all = better.cost(matmul_kernel(quantized));
  EXPECT_GT(all.resources.at(1).cycles, 0);
  EXPECT_EQ(all.latency_cycles, cost.latency_cycles + all.resources[1].cycles + better.chip().launch_cycles);
}

// [vector] alone: what is no product takes as long as arithmetic says, after the products or alone.
TEST_F(Folders, MayHaveAVectorUnit) {
  temp.write("mine/pe_array.p", kArray);
  temp.write("mine/mapping.m", kMapping);
  temp.write("mine/chip.toml", "clock_hz = 5e8\n[vector]\nlanes = 4\nops_per_lane_per_cycle = 2\n");
  const Chip chip = described_chip(folder());
  EXPECT_EQ(chip.clock_hz, 5e8);
  EXPECT_EQ(chip.memories.at(0).read_bytes_per_cycle, 16);  // pe_array's
  Kernel kernel =
      matmul_kernel({.i = 8, .j = 12, .k = 16, .scale = ScalePer::channel, .weight_bits = 8, .activation_bits = 8});
  double operations = 0;
  for (const Work& w : kernel.work)
    if (!w.multiply_accumulate) {
      double each = w.vector_ops;
      for (int64_t extent : w.statement.domain.extent) each *= static_cast<double>(extent);
      operations += each;
    }
  CostEngine engine(chip);
  const KernelCost cost = engine.cost(kernel);
  ASSERT_TRUE(std::any_of(cost.latency_parts.begin(), cost.latency_parts.end(), [](const CyclePart& p) {
    return p.name == "vector: after the array";
  }));
  int64_t vector = 0, operations_counted = 0;
  for (const StatementCost& s : cost.statements) vector += s.vector_cycles, operations_counted += s.vector_ops;
  EXPECT_EQ(operations_counted, std::llround(operations));
  EXPECT_GE(static_cast<double>(vector), operations / 8);
  Kernel alone = kernel;  // a kernel without a product
  alone.work.resize(1);
  EXPECT_GT(engine.cost(alone).latency_cycles, 0);
  temp.write("mine/chip.toml", "[vector]\nlanes = 4\nops_per_lane_per_cycle = 2\nspeed = 3\n");
  EXPECT_NE(error_of([&] { described_chip(folder()); }).find("speed"), std::string::npos);
}

// What is done on the way into the array are no items: codes and scales are.
TEST_F(Folders, CountCodesAndScalesAsTensors) {
  temp.write("mine/pe_array.p", kArray);
  temp.write("mine/mapping.m", kMapping);
  const Matmul weight_only{.i = 8, .j = 12, .k = 64, .scale = ScalePer::group, .weight_bits = 4, .group = 32};
  const KernelCost cost = CostEngine(described_chip(folder())).cost(matmul_kernel(weight_only));
  const std::string statement =
      "3 1\n{S[i,j,k]: 0<=i<8 and 0<=j<12 and 0<=k<64}\n{S[i,j,k]->X[i,k]}\n{S[i,j,k]->codes[j,k]}\n"
      "{S[i,j,k]->scale[floor(k/32),j]}\n{S[i,j,k]->Y[i,j]}\n";
  EXPECT_EQ(cost.latency_cycles, metrics_of(kArray, kMapping, statement).latency_master);
}

TEST_F(Folders, MistakesNameFileAndLine) {
  struct Case {
    const char *file, *content, *words;
  };
  for (const Case& c : {Case{"mine/mapping.m", "{S[i,j,k]->PE[i%4,j%6]}\n{S[i,j,k]->T[q]}\n", "mapping.m line 2"},
                        Case{"mine/mapping.m", "{S[i,j]->PE[i%4,j%6]}\n{S[i,j]->T[i]}\n", "mapping.m line 1"},
                        Case{"mine/mapping.m", "{}\n{}\n", "the space map is empty"},
                        Case{"mine/mapping.m", "", "mapping.m"},
                        Case{"mine/mapping.m", "{S[i,j,k]->PE[i]}\n{S[i,j,k]->T[i]}\n", "PEs have 2 coordinates"},
                        Case{"mine/pe_array.p", "{PE[i,j]:0<=i<4 and 0<=j<6}\n{ }\n1 2 3\n", "pe_array.p line 3"},
                        Case{"mine/pe_array.p", "{PE[i,j]:0<=i<4}\n{ }\n1 2 3 4\n", "pe_array.p line 1"},
                        Case{"mine/chip.toml", "base = \"no_such_chip\"\n", "there is no chip called no_such_chip"},
                        Case{"mine/chip.toml", "base = \"edge_npu32\"\nclock = 5\n", "clock"},
                        Case{"mine/chip.toml", "base = \n", "chip.toml"}}) {
    temp.write("mine/pe_array.p", kArray);
    temp.write("mine/mapping.m", kMapping);
    temp.write("mine/chip.toml", "base = \"edge_npu32\"\n");
    temp.write(c.file, c.content);
    const std::string error = error_of([&] { described_chip(folder()); });
    EXPECT_NE(error.find(c.words), std::string::npos) << c.content << "\n" << error;
  }
  fs::remove(temp.path() / "mine/mapping.m");
  EXPECT_NE(error_of([&] { described_chip(folder()); }).find("has no file of the mapping"), std::string::npos);
  temp.write("mine/a.m", kMapping);
  temp.write("mine/b.m", kMapping);
  EXPECT_NE(error_of([&] { described_chip(folder()); }).find("several files of the mapping: a.m, b.m"),
            std::string::npos);
  temp.write("mine/mapping", kMapping);
  temp.write("mine/chip.toml", read_file(shipped("gemmini16")));
  EXPECT_NE(error_of([&] { described_chip(folder()); }).find("16 x 16 PEs"), std::string::npos);
  fs::remove(temp.path() / "mine/chip.toml");
  EXPECT_NE(error_of([&] { described_chip(folder(), {.pe = {{8, 8}}}); }).find("the mapping of mine is that of"),
            std::string::npos);
}

// A changed chip says so by its name, and is another chip to what keeps results.
TEST(DescribedChip, ChangesHaveNames) {
  const ChipChanges changes{.pe = {{16, 8}}, .dataflow = Stationary::output, .tile = {{64, 0, 32}}};
  const Chip plain = described_chip(shipped("scalesim_default")),
             changed = described_chip(shipped("scalesim_default"), changes);
  EXPECT_EQ(plain.name, "scalesim_default");
  EXPECT_EQ(changed.name, "scalesim_default[16x8 os tile 64x0x32]");
  EXPECT_EQ(changed.description, plain.description + "; changed to 16x8 os tile 64x0x32");
  EXPECT_NE(identity_of(plain), identity_of(changed));
  EXPECT_EQ(changed.rows, 16);
  EXPECT_EQ(changed.columns, 8);
  for (ProductClass c : kProductClasses) EXPECT_EQ(changed.dataflow_for(c), Stationary::output);
  EXPECT_NE(error_of([] { described_chip(shipped("tenet-8x8"), {.tile = {{8, 8, 8}}}); }).find("leave --tile out"),
            std::string::npos);
  EXPECT_NE(error_of([] { described_chip(shipped("tpuv1"), {.pe = {{70000, 8}}}); }).find("at most 65536"),
            std::string::npos);
}

// On several cores each takes blocks of the outputs; the same work is done, and no core is left out.
TEST(DescribedChip, TilesOnSeveralCores) {
  CostEngine tiled(described_chip(shipped("tpuv4_like"), {.tile = {{128, 128, 256}}}));
  CostEngine chosen(described_chip(shipped("tpuv4_like")));
  const Kernel kernel = matmul_kernel({.i = 512, .j = 4096, .k = 4096});
  const KernelCost cost = tiled.cost(kernel), best = chosen.cost(kernel);
  EXPECT_EQ(cost.macs, best.macs);
  EXPECT_EQ(cost.statements[0].placement->cores_used, 8);
  EXPECT_GE(cost.latency_cycles, best.latency_cycles);
  EXPECT_LE(cost.statements[0].stream_cycles, 2 * best.statements[0].stream_cycles);
}

// A product of integers with a scale per group has two reductions: it keeps what is chosen for it, and says so.
TEST(DescribedChip, OtherProductsKeepTheirTiles) {
  const Kernel kernel = matmul_kernel(
      {.i = 8, .j = 64, .k = 128, .scale = ScalePer::group, .weight_bits = 4, .group = 32, .activation_bits = 8});
  const KernelCost tiled = CostEngine(described_chip(shipped("edge_npu32"), {.tile = {{8, 8, 8}}})).cost(kernel);
  EXPECT_EQ(tiled.latency_cycles, CostEngine(described_chip(shipped("edge_npu32"))).cost(kernel).latency_cycles);
  EXPECT_NE(join(tiled.notes, "; ").find("matmul has its default tiles"), std::string::npos);
}

// Items in bind at 64 bits per cycle and at 32: half the bandwidth takes as many cycles more as the items take, and the wait
// for the first one (16 - 1 cycles) stays.
TEST(DescribedChip, BandwidthOfTenetsFormulaMovesItemsAlone) {
  const std::string file = read_file(shipped("tenet-8x8")), hardware = "256 1024 64 16";
  std::string halved = file;
  ASSERT_NE(file.find(hardware), std::string::npos);
  halved.replace(file.find(hardware), hardware.size(), "256 1024 32 16");
  const Kernel kernel = matmul_kernel({.i = 64, .j = 64, .k = 64});
  const KernelCost now = CostEngine(parse_chip(file, "now.toml")).cost(kernel),
                   slow = CostEngine(parse_chip(halved, "slow.toml")).cost(kernel);
  EXPECT_EQ(now.bound, "scratchpad");
  EXPECT_DOUBLE_EQ(
      now.resources.back().elasticity,
      static_cast<double>(slow.latency_cycles - now.latency_cycles) / static_cast<double>(now.latency_cycles));
}

}  // namespace
}  // namespace sator::formats
