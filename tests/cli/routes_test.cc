// The option --routes of `study` and `profile`: the table, the lines of routes.csv and the JSON say the same.
#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "command_run.h"
#include "shipped_chips.h"

namespace sator::cli {
namespace {

const fs::path kModel = fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-stories";

class Routes : public testing::Test {
 protected:
  void SetUp() override { setenv("SATOR_CHIPS", chips_folder().c_str(), 1); }
  TempFolder folder_;
};

TEST_F(Routes, OfAStudy) {
  const fs::path results = folder_.path() / "results";
  const CommandRun run = run_command({"study",
                                      kModel.string(),
                                      "--shapes-only",
                                      "--quant",
                                      "f16",
                                      "--chip",
                                      "edge_npu32",
                                      "--prompt-len",
                                      "8",
                                      "--gen-len",
                                      "4",
                                      "--routes",
                                      "-o",
                                      results.string()},
                                     folder_);
  ASSERT_EQ(run.status, 0);
  // edge_npu32 keeps results between parts, so it has all four routes; two steps each.
  const nlohmann::json& routes = run.json.at("routes");
  ASSERT_EQ(routes.size(), 8U);
  EXPECT_NE(run.out.find("routes to edge_npu32, f16: a prompt of 8 tokens, a token at a context of "),
            std::string::npos)
      << run.out;
  EXPECT_NE(run.out.find("routes.csv"), std::string::npos);
  const std::string csv = read_file(results / "routes.csv");
  const std::vector<std::string_view> lines = split(trim(csv), '\n');
  size_t kernels = 0;
  for (const nlohmann::json& by : routes) {
    EXPECT_EQ(by.at("prompt_len"), 8);
    EXPECT_GT(by.at("macs"), 0);
    EXPECT_LE(by.at("macs_on_chip"), by.at("macs"));
    const std::string route = by.at("route"), step = by.at("step");
    double latency = 0;
    for (const nlohmann::json& k : by.at("kernels"))
      latency += k.at("count").get<double>() * k.at("latency_s").get<double>();
    EXPECT_NEAR(latency, by.at("latency_s"), 1e-6 * latency) << route << " " << step;
    kernels += by.at("kernels").size();
    const auto of_step = text("edge_npu32,f16,", step, ",", route, ",");
    EXPECT_EQ(std::ranges::count_if(lines, [&](std::string_view line) { return line.starts_with(of_step); }),
              static_cast<int64_t>(by.at("kernels").size()));
  }
  EXPECT_EQ(lines.size(), 1 + kernels);
}

TEST_F(Routes, OfAProfile) {
  const CommandRun run = run_command(
      {"profile", kModel.string(), "--quantization", "f16", "--chip", "gemmini16", "--prompt-len", "8", "--routes"},
      folder_);
  ASSERT_EQ(run.status, 0);
  ASSERT_EQ(run.json.at("routes").size(), 6U);
  const size_t table = run.out.find("routes to gemmini16, f16: a prompt of 8 tokens, a token at a context of 9\n");
  ASSERT_NE(table, std::string::npos) << run.out;
  for (const char* route : {"schedule", "tensorize", "pattern"})
    EXPECT_NE(run.out.find(route, table), std::string::npos) << route;
  EXPECT_NE(run.out.find("stays off the chip", table), std::string::npos) << "attention is no op of the graph";
}

}  // namespace
}  // namespace sator::cli
