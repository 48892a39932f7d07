// `sator eval`: what the example model makes of two tasks, against transformers in float64 (tools/make_generation_references.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/command_run.h"
#include "reference_data.h"

namespace sator::cli {
namespace {

const fs::path kExample = fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-stories";

class Eval : public testing::Test {
 protected:
  CommandRun run(const std::string& task, std::vector<std::string> options = {}) {
    options.insert(options.begin(),
                   {"eval", kExample.string(), "--task", reference_data("generation/" + task).string()});
    return run_command(std::move(options), folder_);
  }
  TempFolder folder_;
  const Json wanted_ = parse_json(read_file(reference_data("generation/eval.json")), "eval.json");
};

void expect_interval(const Json& got, const Json& wanted, double tolerance) {
  for (const char* name : {"value", "low", "high"})
    EXPECT_NEAR(got.at(name).get<double>(), wanted.at(name).get<double>(), tolerance) << name;
}

TEST_F(Eval, MultipleChoicesAreScoredAsByTheHarness) {
  const CommandRun r = run("choices.jsonl");
  const Json& wanted = wanted_.at("choices");
  for (const char* name : {"acc", "acc_norm", "acc_bytes"}) expect_interval(r.json.at(name), wanted.at(name), 1e-9);
  ASSERT_EQ(r.json.at("scored").size(), wanted.at("scored").size());
  for (size_t i = 0; i < wanted.at("scored").size(); ++i)
    for (size_t k = 0; k < wanted.at("scored").at(i).size(); ++k) {
      const Json &got = r.json.at("scored").at(i), &want = wanted.at("scored").at(i).at(k);
      EXPECT_NEAR(got.at("log_likelihoods").at(k).get<double>(), want.at("log_likelihood").get<double>(), 1e-3)
          << i << " " << k;
      EXPECT_EQ(got.at("greedy").at(k), want.at("greedy"));
    }
}

TEST_F(Eval, ClozesAreScoredAsByTheHarness) {
  const CommandRun r = run("cloze.jsonl");
  const Json& wanted = wanted_.at("cloze");
  expect_interval(r.json.at("acc"), wanted.at("acc"), 1e-9);
  expect_interval(r.json.at("perplexity"), wanted.at("perplexity"), 0.05);
  EXPECT_NE(r.out.find("perplexity"), std::string::npos) << r.out;
}

// A file of an earlier run and a model that runs beside are the same reference.
TEST_F(Eval, ComparesWithAReference) {
  const std::string file = (folder_.path() / "f32.run").string();
  run("cloze.jsonl", {"--items", "10", "--write-reference", file});
  const CommandRun same = run("cloze.jsonl", {"--items", "10", "--reference", file});
  EXPECT_EQ(same.json.at("kl").at("value"), 0);
  EXPECT_EQ(same.json.at("same_top").at("value"), 1);
  const CommandRun by_file =
      run("cloze.jsonl", {"--items", "10", "--reference", file, "--quantization", "int4-group32"});
  const CommandRun beside =
      run("cloze.jsonl", {"--items", "10", "--reference-scheme", "f32", "--quantization", "int4-group32"});
  EXPECT_GT(by_file.json.at("kl").at("value").get<double>(), 1e-3);
  EXPECT_EQ(by_file.json.at("kl"), beside.json.at("kl"));
  EXPECT_EQ(by_file.json.at("same_top"), beside.json.at("same_top"));
}

}  // namespace
}  // namespace sator::cli
