// Every experiment that TENET ships, and other pairings of its files, against the exact counts stored for them.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "dataflow/counts.h"
#include "dataflow/metrics.h"
#include "dataflow/tenet_text.h"

namespace sator::dataflow {
namespace {

using nlohmann::json;

std::vector<json> tenet_cases() {
  fs::path path = fs::path(SATOR_SOURCE_DIR) / "../shared/cases/tenet/tenet-samples.jsonl";
  std::vector<json> cases;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) cases.push_back(json::parse(line));
  return cases;
}

struct Texts {
  explicit Texts(const json& c)
      : pe(c["input"]["pe_array"]), mapping(c["input"]["mapping"]), statement(c["input"]["statement"]) {}
  std::string pe, mapping, statement;
  TenetInput parse() const { return parse_tenet({pe, mapping, statement}); }
};

std::string key(const TensorCounts& t) { return (t.role == Role::read ? "in:" : "out:") + t.tensor; }

TEST(TenetCases, CountsAreEqual) {
  std::vector<json> cases = tenet_cases();
  if (cases.empty()) GTEST_SKIP() << "no reference cases beside this checkout";
  size_t equal = 0;
  for (const json& c : cases) {
    SCOPED_TRACE(c["id"].get<std::string>());
    TenetInput input = Texts(c).parse();
    auto counted = count_by_boxes(input.problem);
    ASSERT_TRUE(std::holds_alternative<Counts>(counted)) << std::get<Reason>(counted).render();
    const Counts& got = std::get<Counts>(counted);
    const json& want = c["counts"];
    EXPECT_EQ(got.macs, want["macs"]);
    EXPECT_EQ(got.pe_array, want["pe_array"]);
    EXPECT_EQ(got.space, want["space"]);
    EXPECT_EQ(got.time, want["time"]);
    EXPECT_EQ(got.spacetime, want["spacetime"]);
    ASSERT_EQ(got.tensors.size(), want["tensors"].size());
    for (const TensorCounts& t : got.tensors) {
      SCOPED_TRACE(key(t));
      const json& tensor = want["tensors"][key(t)];
      EXPECT_EQ(t.total, tensor["total"]);
      EXPECT_EQ(t.assigned, tensor["assigned"]);
      EXPECT_EQ(t.unique, tensor["unique"]);
      EXPECT_EQ(t.temporal_hits, tensor["temporal_hits"]);
      EXPECT_EQ(t.spatial_hits, tensor["spatial_hits"]);
      EXPECT_EQ(t.footprint, tensor["footprint"]);
    }
    equal += !testing::Test::HasFailure();
  }
  EXPECT_EQ(equal, cases.size());
}

}  // namespace
}  // namespace sator::dataflow
