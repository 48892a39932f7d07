#include "engine/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "temp_folder.h"

namespace sator {
namespace {

using Ids = std::vector<int32_t>;

const std::pair<const char*, const char*> kTokenizers[] = {
    {"gpt2", "data/tokenizers/gpt2"},
    {"gpt-neox-20b", "data/tokenizers/gpt-neox-20b"},
    {"mistral-7b-v0.1", "data/tokenizers/mistral-7b-v0.1"},
    {"qwen2-style", "data/tokenizers/qwen2-style"},
    {"gpt2-stories", "models/gpt2-stories"},
    {"llama-stories", "models/llama-stories"},
};

/// Checks one tokenizer against the strings of data/tokenizers/expected.jsonl, which Hugging Face's `tokenizers` made.
void check_expected(const Tokenizer& tokenizer, const std::string& name) {
  std::string lines = read_file(shared_folder() / "data/tokenizers/expected.jsonl");
  int checked = 0;
  for (std::string_view line : split(lines, '\n')) {
    if (line.empty()) continue;
    Json row = parse_json(line, "expected.jsonl");
    std::string text = row["text"];
    Ids ids = row["ids"][name].get<Ids>();
    EXPECT_EQ(tokenizer.encode(text), ids) << name << ": " << quoted(text);
    EXPECT_EQ(tokenizer.decode(ids), row["decoded"][name].get<std::string>()) << name << ": " << quoted(text);
    // A stream gives the same text; a run of byte tokens that is no character may differ in its count of U+FFFD.
    StreamDecoder stream(tokenizer, false);
    std::string streamed;
    for (int32_t id : ids) streamed += stream.push(id);
    streamed += stream.finish();
    EXPECT_EQ(streamed, row["decoded"][name].get<std::string>()) << name << ": " << quoted(text);
    ++checked;
  }
  EXPECT_EQ(checked, 100);
}

TEST(Tokenizer, ExpectedStrings) {
  SKIP_WITHOUT(shared_folder() / "data/tokenizers");
  for (auto [name, folder] : kTokenizers) check_expected(Tokenizer::load(shared_folder() / folder), name);
}

TEST(Tokenizer, Gpt2FromVocabAndMerges) {
  fs::path gpt2 = shared_folder() / "data/tokenizers/gpt2";
  SKIP_WITHOUT(gpt2);
  TempFolder folder;
  fs::copy_file(gpt2 / "encoder.json", folder.path() / "vocab.json");
  fs::copy_file(gpt2 / "vocab.bpe", folder.path() / "merges.txt");
  Tokenizer tokenizer = Tokenizer::load(folder.path());
  check_expected(tokenizer, "gpt2");
  EXPECT_EQ(tokenizer.vocab_size(), 50257);
  EXPECT_TRUE(tokenizer.is_special(50256));
  folder.write("tokenizer_config.json", R"({"tokenizer_class":"GPT2Tokenizer","bos_token":"<|endoftext|>",
      "eos_token":{"__type":"AddedToken","content":"<|endoftext|>"},"model_max_length":1024})");
  tokenizer = Tokenizer::load(folder.path());
  check_expected(tokenizer, "gpt2");
  EXPECT_EQ(tokenizer.eos_id(), 50256);
  folder.write("added_tokens.json", R"({"<two>":50258,"<one>":50257})");
  tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.encode("<two><one>"), (Ids{50258, 50257}));
  folder.write("tokenizer_config.json", R"({"tokenizer_class":"BertTokenizer"})");
  EXPECT_NE(error_of([&] { Tokenizer::load(folder.path()); }).find("BertTokenizer"), std::string::npos);
}

}  // namespace
}  // namespace sator
