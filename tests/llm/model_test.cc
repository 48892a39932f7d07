// Whole models against reference results that were computed elsewhere (torch, f32).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/evaluate.h"
#include "engine/generate.h"
#include "engine/tokenizer/tokenizer.h"
#include "llm/open.h"

namespace sator::llm {
namespace {

fs::path shared() { return fs::path(SATOR_SOURCE_DIR) / ".." / "shared"; }
fs::path example() { return fs::path(SATOR_SOURCE_DIR) / "examples" / "gpt2-stories"; }

/// Compiled models of a test run are kept in a folder of their own.
class Home : public testing::Environment {
 public:
  void SetUp() override {
    home_ = fs::temp_directory_path() / text("sator-model-test-", static_cast<int64_t>(::getpid()));
    ::setenv("SATOR_HOME", home_.c_str(), 1);
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(home_, ignored);
  }

 private:
  fs::path home_;
};
const auto* const kHome = testing::AddGlobalTestEnvironment(new Home);

std::vector<int32_t> ids_of(const SafeTensor& t) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (t.dtype == i64) {
      int64_t v;
      std::memcpy(&v, t.bytes.data() + 8 * i, 8);
      ids.push_back(static_cast<int32_t>(v));
    } else {
      int32_t v;
      std::memcpy(&v, t.bytes.data() + 4 * i, 4);
      ids.push_back(v);
    }
  }
  return ids;
}

/// The largest difference of our logits to the reference's, over all sequences of a file.
///   all   the reference has every position's logits; else only the last one's
double largest_difference(const std::string& model, const std::string& file, bool all,
                          std::optional<int64_t> chunk = {}) {
  fs::path folder = shared() / "models" / model;
  OpenOptions options;
  options.program.prefill_chunk = chunk;
  OpenModel opened = open_model(folder, options);
  Session session = opened.session();
  SafeTensors expected = SafeTensors::open(folder / file);
  double largest = 0;
  int sequences = 0;
  for (const SafeTensor& t : expected.tensors()) {
    if (!t.name.starts_with("input_ids_")) continue;
    std::string number = t.name.substr(10);
    const SafeTensor& want = expected.get((all ? "logits_" : "last_logits_") + number);
    std::vector<int32_t> ids = ids_of(t);
    int64_t vocab = opened.limits.vocab_size, last = static_cast<int64_t>(ids.size()) - 1;
    session.reset();
    session.append_all(ids, [&](int64_t i, std::span<const float> row) {
      if (!all && i != last) return;
      for (int64_t v = 0; v < vocab; ++v) {
        float w;
        std::memcpy(&w, want.bytes.data() + 4 * ((all ? i * vocab : 0) + v), 4);
        largest = std::max(largest, std::fabs(static_cast<double>(row[static_cast<size_t>(v)]) - w));
      }
    });
    // The last token's logits alone, prefilled and decoded token by token, are the same numbers.
    session.reset();
    std::span<const float> prefilled = session.append(ids);
    std::vector<float> at_once(prefilled.begin(), prefilled.end());
    session.reset();
    std::span<const float> decoded;
    for (int32_t id : ids) decoded = session.append({&id, 1});
    for (size_t v = 0; v < at_once.size(); ++v)
      largest = std::max(largest, std::fabs(static_cast<double>(at_once[v]) - decoded[v]));
    ++sequences;
  }
  EXPECT_GE(sequences, 3);
  return largest;
}

bool have_shared() { return fs::exists(shared() / "models"); }

// The references' own distance to a float64 run is 1e-6 to 3e-5 (their README); logits spread over 1.5 to 5.
TEST(Model, TinyGpt2Logits) {
  if (!have_shared()) GTEST_SKIP() << "the reference models are not beside the checkout";
  EXPECT_LT(largest_difference("tiny/gpt2-a", "expected.safetensors", true), 1e-4);
}
TEST(Model, TinyGpt2LogitsInChunksOfFive) {
  if (!have_shared()) GTEST_SKIP() << "the reference models are not beside the checkout";
  EXPECT_LT(largest_difference("tiny/gpt2-a", "expected.safetensors", true, 5), 1e-4);
}
TEST(Model, TinyLlamaLogits) {
  if (!have_shared()) GTEST_SKIP() << "the reference models are not beside the checkout";
  EXPECT_LT(largest_difference("tiny/llama-a", "expected.safetensors", true), 1e-4);
}
TEST(Model, StoriesLogits) {
  if (!have_shared()) GTEST_SKIP() << "the reference models are not beside the checkout";
  EXPECT_LT(largest_difference("gpt2-stories", "expected_logits.safetensors", false), 2e-4);
  EXPECT_LT(largest_difference("llama-stories", "expected_logits.safetensors", false), 2e-4);
}

double perplexity_of(const fs::path& folder, const std::string& scheme, int64_t windows) {
  OpenOptions options;
  options.scheme = parse_scheme(scheme);
  OpenModel model = open_model(folder, options);
  Session session = model.session();
  std::vector<int32_t> stream = token_stream_of(folder, example() / "validation.txt");
  return evaluate_perplexity(session, windows_of(stream, kWindowTokens, windows), [](int64_t) {}).perplexity();
}

// quant_reference.json of the model: first 32 windows, torch.
TEST(Model, PerplexityOfQuantizedWeights) {
  EXPECT_NEAR(perplexity_of(example(), "f32", 32), 32.46836805, 3e-4);
  EXPECT_NEAR(perplexity_of(example(), "int8-channel", 32), 32.45962448, 5e-4);
  EXPECT_NEAR(perplexity_of(example(), "int4-group32", 32), 35.49332292, 5e-4);
}

// The same of a checkpoint in bfloat16, where weights half a step from two codes are common.
TEST(Model, PerplexityOfQuantizedBfloat16Weights) {
  if (!have_shared()) GTEST_SKIP() << "the reference models are not beside the checkout";
  const fs::path folder = shared() / "models" / "llama-stories";
  EXPECT_NEAR(perplexity_of(folder, "int8-channel", 32), 46.94381510, 5e-4);
  EXPECT_NEAR(perplexity_of(folder, "int4-group32", 32), 51.08871169, 5e-4);
}

TEST(Model, GreedyTextIsTheReferences) {
  if (!have_shared()) GTEST_SKIP() << "the reference models are not beside the checkout";
  for (const char* name : {"gpt2-stories", "llama-stories"}) {
    fs::path folder = shared() / "models" / name;
    nlohmann::json expected = nlohmann::json::parse(std::ifstream(folder / "expected.json"));
    OpenModel model = open_model(folder, {});
    Session session = model.session();
    int compared = 0;
    size_t tokens = 0;
    for (const auto& item : expected) {
      std::vector<int32_t> prompt = item.at("input_ids"), want = item.at("greedy64_ids");
      session.reset();
      std::vector<int32_t> got;
      generate(session, prompt, {.max_tokens = static_cast<int64_t>(want.size())}, [&](int32_t id) {
        got.push_back(id);
        return true;
      });
      // A step whose two best logits are closer than rounding may fork; the file says where the first such step is.
      size_t sure = want.size();
      if (item.contains("first_margin_below_0.01") && item["first_margin_below_0.01"].is_number())
        sure = std::min(sure, item["first_margin_below_0.01"].get<size_t>());
      ASSERT_GE(got.size(), sure) << name;
      tokens += sure;
      for (size_t i = 0; i < sure; ++i) EXPECT_EQ(got[i], want[i]) << name << " token " << i;
      ++compared;
    }
    EXPECT_GE(compared, 5) << name;  // models/README.md: five prompts of 64 tokens, of which two fork early
    EXPECT_GE(tokens, 240u) << name;
  }
}

TEST(Model, MistakesAreSaidInWords) {
  OpenModel model = open_model(example(), {});
  Session session = model.session();
  auto message = [&](std::vector<int32_t> ids) {
    try {
      session.append(ids);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(message({}).find("no token"), std::string::npos);
  EXPECT_NE(message({8192}).find("outside of the vocabulary"), std::string::npos);
  EXPECT_NE(message(std::vector<int32_t>(513, 1)).find("context window"), std::string::npos);
  EXPECT_TRUE(message({1, 2, 3}).empty());  // and the session goes on
  OpenOptions options;
  options.scheme = parse_scheme("int8-channel+a8-tensor");
  try {
    open_model(example(), options);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("--calibration"), std::string::npos);
  }
}

}  // namespace
}  // namespace sator::llm
