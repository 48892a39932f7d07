// Timeloop's own outputs: random GEMM mappings that it was run on, and the outputs stored with its exercises.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/reference_rows.h"
#include "formats/timeloop/answer.h"

namespace sator::formats {
namespace {

using namespace dataflow;

using nlohmann::json;

json component(const std::string& name, const std::string& kind, json attributes) {
  return {{"name", name}, {"class", kind}, {"attributes", std::move(attributes)}};
}

json actions(double read, double write) {
  return {{{"name", "read"}, {"energy", read}}, {{"name", "write"}, {"energy", write}}};
}

std::string factors_text(const json& factors) {
  std::string out;
  for (auto& [d, f] : factors.items()) out += text(d, "=", f.get<int64_t>(), " ");
  return out;
}

/// The files that a row of the fuzz set was run with, in the form of v0.3.
json fuzz_input(const json& c) {
  int64_t pes = c["X"].get<int64_t>() * c["Y"].get<int64_t>();
  std::string pe = text("PE[0..", pes - 1, "]");
  json mesh = {{"meshX", c["X"]}, {"meshY", c["Y"]}, {"datawidth", c["bits"]}};
  json rf = mesh;
  rf["depth"] = c["rdepth"];
  rf["width"] = c["bits"];
  json pes_node = {{"name", pe},
                   {"local", json::array({component("RF", "regfile", rf), component("MACC", "intmac", mesh)})}};
  json glb = component("GLB",
                       "SRAM",
                       {{"depth", c["gdepth"]},
                        {"width", c["gwidth"]},
                        {"datawidth", c["bits"]},
                        {"read_bandwidth", c["gbw"]},
                        {"write_bandwidth", c["gbw"]}});
  json dram = component(
      "DRAM",
      "DRAM",
      {{"width", c["dw_dram"]}, {"datawidth", c["bits"]}, {"read_bandwidth", c["dbw"]}, {"write_bandwidth", c["dbw"]}});
  json chip = {{"name", "chip"}, {"local", json::array({glb})}, {"subtree", json::array({pes_node})}};
  json system = {{"name", "system"}, {"local", json::array({dram})}, {"subtree", json::array({chip})}};

  json mapping = json::array();
  for (const char* level : {"DRAM", "GLB", "RF"}) {
    std::string order;
    for (const json& d : c["perm"][level]) order += d.get<std::string>();
    mapping.push_back({{"target", level},
                       {"type", "temporal"},
                       {"factors", factors_text(c["factors"][level])},
                       {"permutation", order}});
  }
  std::string along_x, along_y, nowhere;
  json spatial;
  for (const json& d : c["perm"]["SP"]) {
    std::string name = d;
    int64_t x = c["factors"]["SX"][name], y = c["factors"]["SY"][name];
    spatial[name] = x * y;
    (x > 1 ? along_x : y > 1 ? along_y : nowhere) += name;
  }
  mapping.push_back({{"target", "GLB"},
                     {"type", "spatial"},
                     {"factors", factors_text(spatial)},
                     {"permutation", along_x + nowhere + along_y},
                     {"split", along_x.size() + nowhere.size()}});
  for (auto& [level, spaces] : c["bypass"].items())
    mapping.push_back({{"target", level}, {"type", "bypass"}, {"bypass", spaces}});

  json gemm = {{"name", "GEMM"},
               {"dimensions", {"M", "N", "K"}},
               {"data-spaces",
                {{{"name", "A"}, {"projection", {{{"M"}}, {{"K"}}}}},
                 {{"name", "B"}, {"projection", {{{"K"}}, {{"N"}}}}},
                 {{"name", "Z"}, {"projection", {{{"M"}}, {{"N"}}}}, {"read-write", true}}}}};
  json tables = {{{"name", "system.DRAM"}, {"actions", actions(512, 512)}},
                 {{"name", "system.chip.GLB"}, {"actions", actions(18, 14)}},
                 {{"name", "system.chip." + pe + ".RF"}, {"actions", actions(0.1, 0.1)}},
                 {{"name", "system.chip." + pe + ".MACC"}, {"actions", {{{"name", "compute"}, {"energy", 0.3}}}}}};
  return {{"architecture", json{{"architecture", {{"version", 0.3}, {"subtree", {system}}}}}.dump()},
          {"problem",
           json{{"problem", {{"shape", gemm}, {"instance", {{"M", c["M"]}, {"N", c["N"]}, {"K", c["K"]}}}}}}.dump()},
          {"mapping", json{{"mapping", mapping}}.dump()},
          {"ert", json{{"ERT", {{"version", 0.3}, {"tables", tables}}}}.dump()}};
}

const json& level_of(const json& answer, const std::string& name) {
  for (const json& level : answer["levels"])
    if (level["name"] == name) return level;
  throw std::runtime_error("no level " + name);
}

TEST(TimeloopCases, RandomGemmMappingsAreEqual) {
  const std::vector<json> all = reference_rows("cost/timeloop_gemm_fuzz.jsonl");
  int64_t counts = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "row " << i << " " << all[i]["case"].dump());
    json got = answer_timeloop(fuzz_input(all[i]["case"]));
    double cycles = std::stod(all[i]["cycles"].get<std::string>());
    EXPECT_NEAR(got["cycles"].get<double>(), cycles, 0.005 * cycles);
    double computes = all[i]["levels"][0]["Computes (total)"];
    double energy = all[i]["energy_per_compute"]["Total"].get<double>() * computes / 1000;
    EXPECT_NEAR(got["energy_pJ"].get<double>(), energy, 0.001 * energy);
    for (const json& level : all[i]["levels"]) {
      if (level["name"] == "MACC") continue;
      const json& mine = level_of(got, level["name"]);
      for (const char* space : {"A", "B", "Z"}) {
        ASSERT_EQ(mine.contains(space), level.contains(space)) << level["name"] << " " << space;
        if (!level.contains(space)) continue;
        for (const char* key : {"reads", "fills", "updates", "cap", "inst"}) {
          ASSERT_EQ(mine[space][key], level[space][key]) << level["name"] << " " << space << " " << key;
          ++counts;
        }
      }
    }
  }
  EXPECT_GE(counts, 30 * static_cast<int64_t>(all.size()));
}

bool is_sparse(const json& row) {
  const json& instance = row["problem"]["instance"];
  return instance.contains("densities") && !instance["densities"].empty();
}

TEST(TimeloopCases, StoredOutputsAreEqualOrRefused) {
  const std::vector<json> all = reference_rows("cost/timeloop_reference_outputs.jsonl");
  size_t dense = 0;
  for (const json& row : all) {
    SCOPED_TRACE(row["path"].get<std::string>());
    json input = {{"architecture", row["architecture"].dump()},
                  {"problem", row["problem"].dump()},
                  {"mapping", row["map_txt"]},
                  {"ert", json{{"ERT", {{"version", "0.4"}, {"tables", row["ert"]}}}}.dump()}};
    if (is_sparse(row)) {
      EXPECT_THROW(answer_timeloop(input), Error);
      continue;
    }
    json got = answer_timeloop(input);
    double cycles = std::stod(row["summary"]["Cycles"][0].get<std::string>());
    EXPECT_NEAR(got["cycles"].get<double>(), cycles, 0.005 * cycles);
    double computes = std::stod(row["summary"]["Computes"][0].get<std::string>());
    double energy = row["energy_per_compute"]["Total"].get<double>() * computes / 1000;
    EXPECT_NEAR(got["energy_pJ"].get<double>(), energy, 0.001 * energy);
    for (const json& level : row["levels"])
      for (auto& [space, want] : level["dataspaces"].items()) {
        SCOPED_TRACE(text(level["name"].get<std::string>(), " ", space));
        const json& mine = level_of(got, level["name"])[space];
        EXPECT_EQ(mine["reads"], want["Scalar reads (per-instance)"]);
        EXPECT_EQ(mine["fills"], want["Scalar fills (per-instance)"]);
        EXPECT_EQ(mine["updates"], want["Scalar updates (per-instance)"]);
        EXPECT_EQ(mine["cap"], want["Utilized capacity"]);
      }
    ++dense;
  }
  EXPECT_GE(dense, 10u);
  EXPECT_GT(all.size(), dense) << "sparse ones are refused";
}

/// The files of DOSA's data set (ucb-bar/dosa, dataset/hw/gemmini): a mapping of its one-line form, such as
/// "L3[WIO] K4 C8 - L2[WI] K16X - L1[O] P7 - L0[W] N1" (outermost loop first, X is spatial), on a square array whose
/// columns have an accumulator each.
json dosa_input(const json& row) {
  const json& arch = row["arch"];
  int64_t side = arch["meshX"];
  auto memory = [](const char* name, int64_t entries, int64_t width, int64_t instances, int bits, int64_t bandwidth) {
    json out = component(
        name, "SRAM", {{"entries", entries}, {"width", width}, {"instances", instances}, {"word-bits", bits}});
    if (bandwidth) out["attributes"]["shared_bandwidth"] = bandwidth;
    return out;
  };
  json dram =
      component("L3", "DRAM", {{"instances", 1}, {"word-bits", 8}, {"block_size", 64}, {"shared_bandwidth", 8}});
  json scratchpad =
      memory("L2", arch["mem2_entries"], arch["mem2_width"], 1, 8, arch["mem2_shared_bandwidth"].get<int64_t>());
  json accumulator = memory("L1", arch["mem1_entries"], 32, side, 32, 2);
  json mac = component("MACC", "intmac", {{"datawidth", 8}, {"word-bits", 8}});
  json rows_node = {{"name", text("Rows[0..", side - 1, "]")},
                    {"local", json::array({memory("L0", 1, 8, side * side, 8, 0), mac})}};
  json columns_node = {{"name", text("Columns[0..", side - 1, "]")},
                       {"local", json::array({accumulator})},
                       {"subtree", json::array({rows_node})}};
  json chip = {{"name", "Chip"}, {"local", json::array({scratchpad})}, {"subtree", json::array({columns_node})}};
  json system = {{"name", "System"}, {"local", json::array({dram})}, {"subtree", json::array({chip})}};

  const std::string one_line = row["mapping"];
  json mapping = json::array();
  for (std::string_view part : split(one_line, '-')) {
    std::vector<std::string_view> words = split(trim(part), ' ');
    std::string level(words[0].substr(0, 2));
    std::string in_time, in_space, order;
    for (size_t w = words.size(); w-- > 1;) {  // Timeloop's permutation starts with the innermost loop
      bool spatial = words[w].back() == 'X';
      std::string factor(words[w].substr(1, words[w].size() - 1 - spatial));
      (spatial ? in_space : in_time) += text(words[w].substr(0, 1), "=", factor, " ");
      if (!spatial) order += words[w][0];
    }
    mapping.push_back({{"target", level}, {"type", "temporal"}, {"factors", in_time}, {"permutation", order}});
    if (!in_space.empty()) mapping.push_back({{"target", level}, {"type", "spatial"}, {"factors", in_space}});
    json bypass = json::array();
    for (const char* space : {"W", "I", "O"})
      if (words[0].find(space) == std::string_view::npos) bypass.push_back(space);
    mapping.push_back({{"target", level}, {"type", "bypass"}, {"bypass", bypass}});
  }

  json shape = json::parse(R"({
    "name": "CNN-Layer",
    "dimensions": ["C", "K", "R", "S", "N", "P", "Q"],
    "coefficients": [{"name": "Wstride", "default": 1}, {"name": "Hstride", "default": 1},
                     {"name": "Wdilation", "default": 1}, {"name": "Hdilation", "default": 1}],
    "data-spaces": [
      {"name": "W", "projection": [[["C"]], [["K"]], [["R"]], [["S"]]]},
      {"name": "I", "projection": [[["N"]], [["C"]], [["R", "Wdilation"], ["P", "Wstride"]],
                                   [["S", "Hdilation"], ["Q", "Hstride"]]]},
      {"name": "O", "projection": [[["N"]], [["K"]], [["Q"]], [["P"]]], "read-write": true}]})");
  json instance = row["prob"];
  instance.erase("shape");
  return {{"architecture", json{{"architecture", {{"version", 0.3}, {"subtree", {system}}}}}.dump()},
          {"problem", json{{"problem", {{"shape", shape}, {"instance", instance}}}}.dump()},
          {"mapping", json{{"mapping", mapping}}.dump()}};
}

// The Timeloop of that data set (2022) read back every partial sum, also the first of a word, which both releases that
// `release` names leave out; it filled as they do. Where the accumulator's two words per cycle bind, that one difference
// shows.
TEST(TimeloopCases, CyclesOfDosasDataSet) {
  const std::vector<json> all = reference_rows("cost/timeloop_dosa_dataset_sample.jsonl");
  size_t as_they_are = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "row " << i << " " << all[i]["mapping"] << " of " << all[i]["prob"].dump());
    json got = answer_timeloop(dosa_input(all[i]));
    const json& sums = level_of(got, "L1")["O"];
    int64_t arrivals = sums["updates"], fills = sums["fills"], cycles = got["cycles"], want = all[i]["model_cycles"];
    as_they_are += std::abs(cycles - want) <= 0.005 * static_cast<double>(want);
    EXPECT_NEAR(std::max(cycles, (2 * arrivals + fills + 1) / 2), want, 1) << "cycles are rounded up once or twice";
  }
  EXPECT_GE(10 * as_they_are, 8 * all.size()) << "elsewhere the accumulator binds";
}

}  // namespace
}  // namespace sator::formats
