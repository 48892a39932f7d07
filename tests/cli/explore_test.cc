// What `explore` finds, on the terminal and on its page.
#include <algorithm>
#include <regex>

#include "base/figures.h"
#include "base/file.h"
#include "command_run.h"
#include "shipped_chips.h"
#include "study/markup.h"
#include "study/study.h"

namespace sator::cli {
namespace {

const fs::path kModel = fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-stories";

/// The cells of the rows of a page's table, the head first.
std::vector<std::vector<std::string>> table_of(const std::string& page) {
  std::vector<std::vector<std::string>> rows;
  const std::regex row("<tr>(.*?)</tr>"), cell("<t[hd]>([^<]*)</t[hd]>");
  for (std::sregex_iterator r(page.begin(), page.end(), row), end; r != end; ++r) {
    const std::string cells = (*r)[1];
    rows.emplace_back();
    for (std::sregex_iterator c(cells.begin(), cells.end(), cell); c != end; ++c) rows.back().push_back((*c)[1]);
  }
  return rows;
}

class Explore : public testing::Test {
 protected:
  void SetUp() override { setenv("SATOR_CHIPS", chips_folder().c_str(), 1); }
  TempFolder folder_;
};

// A study's perplexities are an objective: a column of the page's table and of the terminal's, with the scheme's own value.
TEST_F(Explore, PerplexitiesStandInTheFrontsTable) {
  const std::map<std::string, double> perplexity = {{"f16", 30.125}, {"int8-channel", 30.5}, {"int4-channel", 33.0625}};
  study::Study known;
  known.model = {"gpt2-stories", kModel.string(), "gpt2", 2, 100, 64, 8000};
  for (const auto& [scheme, value] : perplexity) {
    study::SchemeResult& result = known.schemes.emplace_back();
    result.name = scheme;
    result.perplexity = value;
  }
  const fs::path study = folder_.path() / "study", found = folder_.path() / "found";
  study::write_study(known, study);
  const CommandRun run = run_command({"explore",
                                      kModel.string(),
                                      "--shapes-only",
                                      "--chip",
                                      "gemmini16",
                                      "--pe",
                                      "8x8,16x16",
                                      "--quant",
                                      "f16,int8-channel,int4-channel",
                                      "--prompt-len",
                                      "8",
                                      "--gen-len",
                                      "2",
                                      "--study",
                                      study.string(),
                                      "-o",
                                      found.string()},
                                     folder_);
  ASSERT_EQ(run.status, 0);
  const std::string page = read_file(found / "index.html");
  EXPECT_EQ(study::nesting_error(page), "");
  const auto rows = table_of(page);
  const nlohmann::json& front = run.json.at("front");
  ASSERT_GE(front.size(), 2U) << "the best of a scheme is on the front, as no other has its perplexity";
  ASSERT_EQ(rows.size(), 1 + front.size());
  auto column = [&](const std::string& name) {
    return static_cast<size_t>(std::ranges::find(rows[0], name) - rows[0].begin());
  };
  const size_t quality = column("perplexity"), scheme = column("scheme");
  ASSERT_LT(quality, rows[0].size());
  ASSERT_LT(scheme, rows[0].size());
  for (size_t r = 1; r < rows.size(); ++r) {
    const double value = perplexity.at(rows[r].at(scheme));
    EXPECT_EQ(rows[r].at(quality), fixed(value, 3));
    EXPECT_EQ(front[r - 1].at("perplexity"), value);
    EXPECT_EQ(rows[r].at(column("latency")), quantity(front[r - 1].at("latency_s").get<double>(), "s"));
    EXPECT_NE(run.out.find(fixed(value, 3)), std::string::npos) << run.out;
  }
  EXPECT_NE(run.out.find("perplexity"), std::string::npos);
}

// Where no point keeps the limits, the page has a table without rows.
TEST_F(Explore, APageWithoutAFront) {
  const fs::path found = folder_.path() / "found";
  const CommandRun run = run_command({"explore",
                                      "--workload",
                                      "8,8,8",
                                      "--chip",
                                      "gemmini16",
                                      "--pe",
                                      "8x8",
                                      "--max-area",
                                      "0.001",
                                      "-o",
                                      found.string()},
                                     folder_);
  ASSERT_EQ(run.status, 0);
  EXPECT_NE(run.out.find("no point keeps the limits"), std::string::npos);
  const std::string page = read_file(found / "index.html");
  EXPECT_EQ(study::nesting_error(page), "");
  const auto rows = table_of(page);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_TRUE(rows[0].empty());
}

}  // namespace
}  // namespace sator::cli
