// Timeloop's own outputs: random GEMM mappings that it was run on, and the outputs stored with its exercises.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/formats/timeloop/answer.h"
#include "dataflow/reference_rows.h"

namespace sator::dataflow {
namespace {

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
  REFERENCE_ROWS(all, "cost/timeloop_gemm_fuzz.jsonl");
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
  REFERENCE_ROWS(all, "cost/timeloop_reference_outputs.jsonl");
  size_t equal = 0;
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
    ++equal;
  }
  EXPECT_EQ(equal, 21u) << "dense outputs among the stored ones";
}

}  // namespace
}  // namespace sator::dataflow
