#include "engine/task.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/reference_run.h"
#include "reference_data.h"
#include "temp_folder.h"

namespace sator {
namespace {

TEST(Task, ReadsItems) {
  const std::vector<TaskItem> items = read_task(R"({"context": "A b", "choices": ["c", "d"], "gold": 1}

{"query": "", "choices": ["x"], "label": [0], "delimiter": ""}
)",
                                                "t.jsonl");
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].context, "A b");
  EXPECT_EQ(items[0].delimiter, " ");
  EXPECT_EQ(items[0].gold, std::vector<int64_t>{1});
  EXPECT_EQ(items[1].line, 3);
  EXPECT_EQ(items[1].delimiter, "");
  const std::vector<TaskItem> cloze = read_task(R"({"context": "A", "continuation": " b"})", "t.jsonl");
  EXPECT_TRUE(cloze[0].is_cloze);
  EXPECT_EQ(cloze[0].choices, std::vector<std::string>{" b"});
}

TEST(Task, RefusesWhatIsNone) {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "has no item"},
           {"[1]", "is no object"},
           {"{", "t.jsonl line 1"},
           {"\n{\"context\": 1}", "line 2"},
           {R"({"context": "a"})", "choices"},
           {R"({"context": "a", "choices": [], "gold": 0})", "is empty"},
           {R"({"context": "a", "choices": ["b", ""], "gold": 0})", "is empty"},
           {R"({"context": "a", "choices": ["b"], "gold": 1})", "gold"},
           {R"({"context": "a", "choices": ["b"], "gold": -1})", "gold"},
           {R"({"context": "a", "choices": ["b"], "gold": []})", "is empty"},
           {R"({"context": "a", "choices": ["b"]})", "has no gold"},
           {R"({"choices": ["b"], "gold": 0})", "has no context"},
           {R"({"context": "a", "choises": ["b"], "gold": 0})", "is not known"},
           {R"({"context": "a", "continuation": ""})", "is empty"},
           {R"({"context": "a", "continuation": "b", "choices": ["c"]})", "one of the two"},
           {"{\"context\": \"a\", \"continuation\": \"b\"}\n{\"context\": \"a\", \"choices\": [\"b\"], \"gold\": 0}",
            "one kind"}})
    EXPECT_NE(error_of([&] { read_task(text, "t.jsonl"); }).find(words), std::string::npos)
        << text << ": " << error_of([&] { read_task(text, "t.jsonl"); });
}

// A tokenizer that puts <s> before texts; pairs as lm-evaluation-harness makes them (tools/make_generation_references.py).
TEST(Task, EncodesAsTheHarness) {
  const Tokenizer tokenizer = Tokenizer::load(reference_data("models/llama-stories"));
  const Json pairs = parse_json(read_file(reference_data("generation/encodings.json")), "encodings.json");
  ASSERT_GE(pairs.size(), 9u);
  for (const Json& pair : pairs) {
    const ContinuationIds got = encode_continuation(tokenizer, pair.at("context"), pair.at("continuation"));
    EXPECT_EQ(Json(got.context), pair.at("ids").at(0)) << pair.dump();
    EXPECT_EQ(Json(got.continuation), pair.at("ids").at(1)) << pair.dump();
  }
}

// By hand: p = 0.5, n = 4, z^2 = 3.8415: middle 0.5, half = 1.96 / 1.96037 * sqrt(0.0625 + 0.060023) = 0.34996.
TEST(Task, WilsonsInterval) {
  const Share half = wilson(2, 4);
  EXPECT_NEAR(half.low, 0.15004, 1e-4);
  EXPECT_NEAR(half.high, 0.84996, 1e-4);
  EXPECT_EQ(wilson(0, 10).low, 0);
  EXPECT_NEAR(wilson(0, 10).high, 0.27753, 1e-4);  // z^2 / (n + z^2)
  EXPECT_EQ(wilson(10, 10).high, 1);
}

TEST(Task, ScoresItems) {
  TaskItem item{.context = "c", .choices = {"a", "\xc3\xa9\xc3\xa9", "abcd"}, .gold = {1}};
  TaskScore score;
  // Per character -1, -0.9, -1; per byte -1, -0.45, -1; the sum is largest for the first.
  score.add(item,
            std::vector<ScoredContinuation>{{.log_likelihood = -1}, {.log_likelihood = -1.8}, {.log_likelihood = -4}});
  EXPECT_EQ(score.acc().value, 0);
  EXPECT_EQ(score.acc_norm().value, 1);
  EXPECT_EQ(score.acc_bytes().value, 1);
  // Of equal ones the first counts.
  item.gold = {0, 2};
  score.add(item,
            std::vector<ScoredContinuation>{{.log_likelihood = -2}, {.log_likelihood = -2}, {.log_likelihood = -4}});
  EXPECT_EQ(score.acc().value, 0.5);
  TaskScore cloze;
  item.is_cloze = true;
  cloze.add(item, std::vector<ScoredContinuation>{{.log_likelihood = -std::log(2.0), .is_greedy = true}});
  cloze.add(item, std::vector<ScoredContinuation>{{.log_likelihood = -std::log(8.0), .is_greedy = false}});
  EXPECT_EQ(cloze.acc().value, 0.5);
  EXPECT_NEAR(cloze.perplexity().value, 4, 1e-12);
}

TEST(Task, ReferenceRunsAreOfTheSameTask) {
  TempFolder folder;
  const fs::path file = folder.path() / "run";
  ReferenceWriter writer(file, 3, "abc");
  writer.add(std::vector<float>{1, 2, 3});
  writer.add(std::vector<float>{4, 5, 6});
  writer.finish();
  ReferenceRun run(file, 3, "abc");
  EXPECT_EQ(run.predictions(), 2);
  EXPECT_EQ(run.logits(1)[2], 6);
  EXPECT_NE(error_of([&] { run.logits(2); }), "");
  EXPECT_NE(error_of([&] { ReferenceRun(file, 4, "abc"); }).find("vocabulary"), std::string::npos);
  EXPECT_NE(error_of([&] { ReferenceRun(file, 3, "abd"); }).find("another task"), std::string::npos);
  const std::string bytes = read_file(file);
  std::string changed = bytes;
  changed[bytes.size() / 2] ^= 1;
  for (const std::string& damaged : {bytes.substr(0, bytes.size() - 1), bytes.substr(0, 30), changed}) {
    write_file(file, damaged);
    EXPECT_NE(error_of([&] { ReferenceRun(file, 3, "abc"); }).find("cut off or damaged"), std::string::npos);
  }
  write_file(file, "no run at all\n\n");
  EXPECT_NE(error_of([&] { ReferenceRun(file, 3, "abc"); }).find("no reference run"), std::string::npos);
}

}  // namespace
}  // namespace sator
