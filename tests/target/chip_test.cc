#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "target/chip.h"

namespace sator {
namespace {

class Chips : public testing::Test {
 protected:
  void SetUp() override { setenv("SATOR_CHIPS", (std::string(SATOR_SOURCE_DIR) + "/chips").c_str(), 1); }
};

TEST_F(Chips, ShippedOnesAreFoundByName) {
  EXPECT_EQ(shipped_chips(), (std::vector<std::string>{"edge_npu32", "gemmini16", "tpuv1"}));
  for (const std::string& name : shipped_chips()) {
    Chip chip = find_chip(name);
    EXPECT_EQ(chip.name, name);
    EXPECT_EQ(find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/" + name + ".toml").pes(), chip.pes());
  }
}

// Peak rates as the chips' papers print them: 92 TOPS and 34 GB/s; 0.51 TOPS; 2 and 8 TOPS.
TEST_F(Chips, PeaksAreThePublishedOnes) {
  auto tops = [](const Chip& c, int w, int a) {
    for (const Precision& p : c.precisions)
      if (p.weight_bits == w && p.activation_bits == a)
        return 2 * p.macs_per_pe_per_cycle * static_cast<double>(c.pes()) * c.clock_hz / 1e12;
    return 0.0;
  };
  Chip tpu = find_chip("tpuv1"), gemmini = find_chip("gemmini16"), edge = find_chip("edge_npu32");
  EXPECT_NEAR(tops(tpu, 8, 8), 92, 0.5);
  EXPECT_NEAR(tpu.memories[0].read_bytes_per_cycle * tpu.clock_hz, 34e9, 1);
  EXPECT_NEAR(tops(gemmini, 8, 8), 0.51, 0.01);
  EXPECT_NEAR(tops(edge, 8, 8), 2, 0.1);
  EXPECT_NEAR(tops(edge, 4, 4), 8, 0.2);
  EXPECT_EQ(tpu.dataflow, Stationary::weight);
  EXPECT_EQ(edge.inline_work, std::vector<VectorWork>{VectorWork::dequantize});
}

struct Mistake {
  const char* from;  // text of the good file to replace
  const char* to;
  const char* message;
};

const Mistake kMistakes[] = {
    {"clock_hz = 1_000_000_000", "clock_mhz = 1000", "clock_hz: the key is missing"},
    {"clock_hz = 1_000_000_000", "clock_mhz = 1000", "is clock_mhz meant to be clock_hz?"},
    {"clock_hz = 1_000_000_000", "clock_hz = 10", "from 1000 to 1e+12 Hz"},
    {"clock_hz = 1_000_000_000", "clock_hz = \"fast\"", "the value is a string"},
    {"clock_hz = 1_000_000_000", "clock_hz = nan", "from 1000 to 1e+12 Hz"},
    {"rows = 16", "rows = 16.5", "an integer from 1 to"},
    {"rows = 16", "rows = 0", "array.rows: the value is 0"},
    {"rows = 16", "rows = -4", "PEs"},
    {"rows = 16", "row = 16", "array.rows: the key is missing"},
    {"dataflow = \"ws\"", "dataflow = \"weight\"", "one of \"os\", \"ws\", \"is\", \"schedule\""},
    {"interconnect = \"systolic\"", "interconnect = \"sistolic\"", "did you mean \"systolic\"?"},
    {"tiles_overlap = true", "tiles_overlap = 1", "true or false"},
    {"tiles_overlap = true", "tile_overlap = true", "did you mean tiles_overlap"},
    {"weight_bits = 8", "weight_bits = 99", "from 1 to 64 bits"},
    {"macs_per_pe_per_cycle = 1", "macs_per_pe_per_cycle = 0.3", "a whole number of MACs per cycle"},
    {"energy_source = \"multiplier", "energy_from = \"multiplier", "the energy has no source"},
    {"bytes_per_cycle = 16 ", "bytes_per_cycle = 16\nbytes_per_second = 3e9", "given twice"},
    {"bytes_per_cycle = 16 ", "bandwidth = 16", "the bandwidth is missing"},
    {"read_bytes_per_cycle = 64\nwrite", "write", "memory[1].read_bytes_per_cycle: the key is missing"},
    {"holds = [\"output\"]", "holds = [\"outputs\"]", "did you mean \"output\"?"},
    {"holds = [\"output\"]", "holds = [\"weight\"]", "have no memory on the chip"},
    {"name = \"scratchpad\"", "name = \"dram\"", "two memories are called dram"},
    {"[vector]", "[victor]", "vector: the key is missing"},
    {"lanes = 16", "lanes = \"16\"", "vector.lanes: an integer from 1 to 1e+09 lanes"},
    {"[pe]\ncapacity_bytes = 8", "[pe]", "pe.capacity_bytes: the key is missing"},
    {"does = [", "does = \"all\" #", "a list of"},
    {"[[precision]]", "[precision]", "one table [[precision]] or more"},
    {"[array]", "[array", "chip.toml line"},
};

TEST_F(Chips, ErrorsNameFileLineKeyAndWhatIsAllowed) {
  const std::string good = read_file(std::string(SATOR_SOURCE_DIR) + "/chips/gemmini16.toml");
  ASSERT_NO_THROW(parse_chip(good, "chip.toml"));
  for (const Mistake& m : kMistakes) {
    SCOPED_TRACE(m.to);
    std::string bad = good;
    size_t at = bad.find(m.from);
    ASSERT_NE(at, std::string::npos) << m.from;
    bad.replace(at, std::string(m.from).size(), m.to);
    try {
      parse_chip(bad, "chip.toml");
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      std::string message = e.what();
      EXPECT_NE(message.find(m.message), std::string::npos) << message;
      EXPECT_NE(message.find("chip.toml line "), std::string::npos) << message;
      EXPECT_FALSE(e.reason.needs.empty());
    }
  }
}

// The line in the message is the line of the key.
TEST_F(Chips, TheLineIsTheKeysLine) {
  try {
    parse_chip("name = \"x\"\nsource = \"y\"\nnode_nm = 7\nclock_hz = true\n", "mine.toml");
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.reason.where, "mine.toml line 4, column 12");
  }
}

TEST_F(Chips, AnUnknownNameListsThoseThereAre) {
  try {
    find_chip("tpuv2");
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("tpuv1"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("edge_npu32, gemmini16, tpuv1"), std::string::npos);
  }
  EXPECT_THROW(find_chip("no/such/chip.toml"), Error);
}

}  // namespace
}  // namespace sator
