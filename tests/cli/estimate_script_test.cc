// The GEMM of docs/dataflow.md, hop by hop: what `estimate --script --chip` prints against what a reader finds by hand.
#include "command_run.h"

namespace sator::cli {
namespace {

TEST(EstimateScript, OneGemmByHand) {
  constexpr int64_t I = 64, J = 32, K = 48, rows = 16, columns = 16;
  constexpr int64_t folds = (J / columns) * (K / rows), stamps = folds * I;
  constexpr int64_t x_entries = I * K * (J / columns), w_entries = J * K, sums = I * J * (K / rows);
  constexpr int64_t outside = I * K + J * K + I * J * 4;

  const TempFolder folder;
  const CommandRun run = run_command({"estimate",
                                      "--script",
                                      std::string(SATOR_SOURCE_DIR) + "/tests/cli/data/gemm.py",
                                      "--chip",
                                      "gemmini16",
                                      "--tile",
                                      "64,32,48"},
                                     folder);
  const nlohmann::json& cost = run.json.at(0);
  EXPECT_EQ(cost["macs"], I * J * K);
  std::map<std::string, std::pair<int64_t, int64_t>> bytes;
  for (const auto& m : cost["memories"]) bytes[m["name"]] = {m["read_bytes"], m["write_bytes"]};
  EXPECT_EQ(bytes["dram"], std::pair(I * K + J * K, I * J * 4));
  EXPECT_EQ(bytes["scratchpad"], std::pair(x_entries + w_entries, I * K + J * K));
  EXPECT_EQ(bytes["accumulator"], std::pair(sums * 4, sums * 4));

  const int64_t array = stamps + (rows - 1) + (columns - 1) + rows;
  std::map<std::string, int64_t> cycles;
  for (const auto& r : cost["resources"]) cycles[r["name"]] = r["cycles"];
  EXPECT_EQ(cycles["array"], array);
  EXPECT_EQ(cycles["dram"], outside / 16);
  EXPECT_EQ(cycles["scratchpad"], (x_entries + w_entries) / 64);
  EXPECT_EQ(cycles["accumulator"], sums * 4 / 64);
  EXPECT_EQ(cost["latency_cycles"], outside / 16 + (array + folds - 1) / folds);

  std::map<std::string, double> picojoules;
  for (const auto& part : cost["energy_parts"]) picojoules[part["name"]] = part["energy_j"].get<double>() * 1e12;
  EXPECT_NEAR(picojoules["mac"], I * J * K * 0.09, 1);
  EXPECT_NEAR(picojoules["registers"], I * J * K * (8 + 8 + 32 + 32) * 0.003, 1);
  EXPECT_NEAR(picojoules["wires"], (x_entries * (columns - 1) * 8 + I * J * K * (rows - 1) / rows * 32) * 0.002, 1);
  EXPECT_NEAR(picojoules["scratchpad"], (x_entries + w_entries + I * K + J * K) * 8 * 0.35, 1);
  EXPECT_NEAR(picojoules["accumulator"], sums * 8 * 8 * 0.18, 1);
  EXPECT_NEAR(picojoules["dram"], outside * 8 * 20.3, 1);
}

// Causal attention of 512 tokens, beyond what is counted as a triangle: rows in blocks of b compute b * (b + 2 b + ... + 512)
// scores a head, of which 512 * 513 / 2 count; every one of them is 64 multiply-accumulates in each of two products.
TEST(EstimateScript, CausalAttentionRunsInBlocksOfRows) {
  constexpr int64_t heads = 2, tokens = 512, depth = 64, counting = 2 * heads * depth * tokens * (tokens + 1) / 2;
  const TempFolder folder;
  const CommandRun run = run_command(
      {"estimate", "--script", std::string(SATOR_SOURCE_DIR) + "/tests/cli/data/attention.py", "--chip", "gemmini16"},
      folder);
  const nlohmann::json& cost = run.json.at(0);
  EXPECT_EQ(cost["macs"], counting);
  int64_t blocks = 0, rows = 0;
  ASSERT_EQ(
      std::sscanf(cost["mappings"][0]["words"].get<std::string>().c_str(), "in %ld blocks of %ld rows", &blocks, &rows),
      2);
  EXPECT_EQ(blocks * rows, tokens);
  const int64_t computed = 2 * heads * depth * rows * rows * blocks * (blocks + 1) / 2;
  for (const auto& part : cost["energy_parts"])
    if (part["name"] == "mac") EXPECT_NEAR(part["energy_j"].get<double>() * 1e12, computed * 0.09, 1);
  EXPECT_NE(run.notes.find("masks of attention"), std::string::npos) << run.notes;
}

// Whatever a mapping is chosen for, by that measure it is no worse than the one that is chosen for latency. Windows of a
// convolution overlap, so that closed forms say too little of what its inputs move.
TEST(EstimateScript, AConvolutionOfLeastEnergyNeedsNoMore) {
  const TempFolder folder;
  const fs::path script = folder.path() / "convolution.py";
  write_file(script, R"(@T.prim_func
def convolution(X: T.Buffer((12, 20, 20), "int8"), W: T.Buffer((24, 12, 3, 3), "int8"), Y: T.Buffer((24, 18, 18), "int32")):
    for f, y, x, c, r, s in T.grid(24, 18, 18, 12, 3, 3):
        with T.block("Y"):
            vf, vy, vx, vc, vr, vs = T.axis.remap("SSSRRR", [f, y, x, c, r, s])
            with T.init():
                Y[vf, vy, vx] = 0
            Y[vf, vy, vx] = Y[vf, vy, vx] + T.cast(X[vc, vy + vr, vx + vs], "int32") * T.cast(W[vf, vc, vr, vs], "int32")
)");
  const auto cost = [&](const char* chip, std::vector<std::string> goal) {
    std::vector<std::string> words = {"estimate", "--script", script.string(), "--chip", chip};
    words.insert(words.end(), goal.begin(), goal.end());
    const nlohmann::json one = run_command(words, folder).json.at(0);
    return std::pair(one["energy_j"].get<double>(), one["latency_s"].get<double>());
  };
  for (const char* chip : {"gemmini16", "edge_npu32", "nvdla_large"}) {
    SCOPED_TRACE(chip);
    const auto [energy, seconds] = cost(chip, {});
    EXPECT_LE(cost(chip, {"--objective", "energy"}).first, energy);
    const auto [within, longer] = cost(chip, {"--energy-within", "2"});
    EXPECT_LE(within, energy);
    EXPECT_LE(longer, 1.02 * seconds);
    const auto [other, lasting] = cost(chip, {"--objective", "edp"});
    EXPECT_LE(other * lasting, energy * seconds);
  }
}

}  // namespace
}  // namespace sator::cli
