#include "frontend/gguf.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <set>

#include "base/error.h"
#include "engine/tokenizer/tokenizer.h"
#include "frontend/gguf_model.h"
#include "frontend/hf_config.h"
#include "reference_data.h"
#include "temp_folder.h"

namespace sator {
namespace {

/// The repository's own data, of which the files were made, not the complete sets.
const fs::path kData = fs::path(SATOR_SOURCE_DIR) / "tests/reference/data/tokenizers";

/// The ids that the tokenizer.json gives, of which the file was made (tools/make_gguf_references.py).
TEST(Gguf, TokenizersGiveTheIdsOfTheirTokenizerJson) {
  std::string lines = read_file(kData / "expected.jsonl");
  for (const char* name : {"gpt2-stories", "qwen2-style", "mistral-7b-v0.1"}) {
    const Tokenizer tokenizer = load_tokenizer(reference_data(text("models/gguf/tokenizer-", name, ".gguf")));
    int compared = 0;
    for (std::string_view line : split(lines, '\n')) {
      if (line.empty()) continue;
      const Json row = Json::parse(line);
      if (!row["ids"].contains(name)) continue;
      const auto want = row["ids"][name].get<std::vector<int32_t>>();
      ASSERT_EQ(tokenizer.encode(row["text"].get<std::string>()), want) << name << ": " << row["text"];
      EXPECT_EQ(tokenizer.decode(want), row["decoded"][name].get<std::string>()) << name << ": " << row["text"];
      ++compared;
    }
    EXPECT_GE(compared, 100) << name;
  }
}

/// The file of a tokenizer with another name of how its texts are cut.
std::string with_cutting(std::string bytes, const std::string& name) {
  auto number = [](uint64_t v) { return std::string(reinterpret_cast<const char*>(&v), 8); };
  const size_t at = bytes.find("tokenizer.ggml.pre") + 18 + 4;
  return bytes.replace(at, 8 + 5, number(name.size()) + name);  // "gpt-2"
}

/// Cuttings of other models' tokenizer.json, by a vocabulary of ours (tools/make_gguf_references.py).
TEST(Gguf, TextIsCutAsTheNameSays) {
  const Json reference = Json::parse(read_file(reference_data("models/gguf/cuttings.json")));
  const std::string whole = read_file(reference_data("models/gguf/tokenizer-cuttings.gguf"));
  const TempFolder folder;
  std::set<Json> different;
  for (const auto& [name, ids] : reference["ids"].items()) {
    const Tokenizer tokenizer = load_tokenizer(folder.write("m.gguf", with_cutting(whole, name)));
    for (size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ(tokenizer.encode(reference["texts"][i].get<std::string>()), ids[i].get<std::vector<int32_t>>())
          << name << ": " << reference["texts"][i];
    different.insert(ids);
  }
  EXPECT_EQ(reference["ids"].size(), 9u);
  EXPECT_EQ(different.size(), 9u);
  const std::string error = error_of([&] { load_tokenizer(folder.write("m.gguf", with_cutting(whole, "kimi-k2"))); });
  EXPECT_NE(error.find("tokenizer.ggml.pre is \"kimi-k2\", a cutting of text that is not supported"), std::string::npos)
      << error;
}

/// Llama 3's texts begin with a token of their own, also where older files do not say so.
TEST(Gguf, WhatLlama3BeginsWith) {
  const std::string bytes = with_cutting(read_file(reference_data("models/gguf/tokenizer-cuttings.gguf")), "llama-bpe");
  const TempFolder folder;
  const Tokenizer tokenizer = load_tokenizer(folder.write("m.gguf", bytes));
  EXPECT_EQ(tokenizer.encode("a", true).size(), tokenizer.encode("a").size() + 1);
}

TEST(Gguf, AFileWithoutATokenizerSaysSo) {
  std::string bytes = read_file(reference_data("models/gguf/tokenizer-gpt2-stories.gguf"));
  const size_t at = bytes.find("gpt2", bytes.find("tokenizer.ggml.model"));
  bytes.replace(at, 4, "none");
  const TempFolder folder;
  const fs::path file = folder.write("m.gguf", bytes);
  const std::string error = error_of([&] { load_tokenizer(file); });
  EXPECT_NE(error.find("m.gguf holds no tokenizer"), std::string::npos) << error;
  EXPECT_NE(error.find("`sator logits` of --ids and `sator bench` run without"), std::string::npos) << error;
}

/// The merges of a SentencePiece model follow from its scores: they are those that transformers has written.
TEST(Gguf, MergesOfScoresAreThoseOfTheTokenizerJson) {
  const Json made = tokenizer_of_gguf(GgufFile::open(reference_data("models/gguf/tokenizer-mistral-7b-v0.1.gguf")));
  const Json want = Json::parse(read_file(kData / "mistral-7b-v0.1/tokenizer.json"));
  const Json &merges = made["model"]["merges"], &wanted = want["model"]["merges"];
  ASSERT_EQ(merges.size(), wanted.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const Json pair = wanted[i].is_string()
                          ? Json(text(merges[i][0].get<std::string>(), " ", merges[i][1].get<std::string>()))
                          : merges[i];
    ASSERT_EQ(pair, wanted[i]) << i;
  }
}

// A window of 0 where there is none (as Phi-4 is converted), and what files of 2023 call a linear scaling.
TEST(Gguf, KeysAsOtherConvertersWriteThem) {
  TempFolder folder;
  std::string bytes = read_file(reference_data("models/gguf/qwen2.gguf"));
  auto number = [](uint64_t v, size_t size) { return std::string(reinterpret_cast<const char*>(&v), size); };
  // 43 bytes in the last key, so that the tensors stay aligned.
  bytes.insert(24,
               number(30, 8) + "qwen2.attention.sliding_window" + number(4, 4) + number(0, 4) + number(23, 8) +
                   "qwen2.rope.scale_linear" + number(6, 4) + number(std::bit_cast<uint32_t>(4.f), 4) + number(1, 8) +
                   "x" + number(8, 4) + number(22, 8) + "twentytwo characters..");
  bytes.replace(16, 8, number(static_cast<unsigned char>(bytes[16]) + 3u, 8));
  const ModelConfig model = read_model_config(folder.write("m.gguf", bytes));
  EXPECT_EQ(model.attention.window, 0);
  EXPECT_EQ(model.attention.rope->scaling.kind, RopeScaling::Kind::linear);
  EXPECT_EQ(model.attention.rope->scaling.factor, 4);
}

TEST(Gguf, DamagedFilesAreRefusedWithWords) {
  TempFolder folder;
  const std::string whole = read_file(reference_data("models/gguf/qwen2.gguf"));
  const fs::path file = folder.path() / "m.gguf";
  auto error_with = [&](const std::string& bytes) {
    write_file(file, bytes);
    return error_of([&] { GgufFile::open(file); });
  };
  auto changed = [&](size_t at, const std::string& by) {
    std::string bytes = whole;
    bytes.replace(at, by.size(), by);
    return error_with(bytes);
  };
  EXPECT_EQ(error_with(whole), "");
  EXPECT_NE(error_with("version https://git-lfs.github.com/spec/v1").find("is no GGUF file"), std::string::npos);
  EXPECT_NE(changed(4, std::string("\1\0\0\0", 4)).find("GGUF version 1"), std::string::npos);
  EXPECT_NE(changed(8, std::string(8, '\x7f')).find("states"), std::string::npos);
  for (size_t size : {30, 100, 500})
    EXPECT_NE(error_with(whole.substr(0, size)).find("before byte"), std::string::npos) << size;
  EXPECT_NE(error_with(whole.substr(0, whole.size() - 64)).find("bytes of data"), std::string::npos);
  const size_t type = whole.find("blk.0.attn_q.weight") + 19 + 4 + 16;
  EXPECT_NE(changed(type, std::string("\x10\0\0\0", 4)).find("is of type IQ2_XXS, which is not supported"),
            std::string::npos);
  EXPECT_NE(changed(type - 16, std::string("\x11\0\0\0", 4)).find("has rows of 17 elements"), std::string::npos);
  write_file(folder.path() / "x-00001-of-00002.gguf", whole);
  EXPECT_NE(
      error_of([&] { GgufFile::open(folder.path() / "x-00001-of-00002.gguf"); }).find("00002-of-00002.gguf is missing"),
      std::string::npos);
  // Keys that are not known may change the mathematics.
  std::string bytes = whole;
  bytes.replace(bytes.find("qwen2.block_count"), 17, "qwen2.block_xyz_c");
  write_file(file, bytes);
  EXPECT_NE(error_of([&] { read_model_config(file); }).find("qwen2.block_xyz_c may change"), std::string::npos);
  // What llama.cpp takes no model without.
  bytes = whole;
  bytes.replace(bytes.find("qwen2.attention.layer_norm_rms_epsilon"), 38, "Qwen2.attention.layer_norm_rms_epsilon");
  write_file(file, bytes);
  EXPECT_NE(error_of([&] { read_model_config(file); }).find("qwen2.attention.layer_norm_rms_epsilon is missing"),
            std::string::npos);
  // One token of 11 characters, for an embedding of 96 rows: 64 bytes more, so that the tensors stay aligned.
  auto number = [](uint64_t v, size_t size) { return std::string(reinterpret_cast<const char*>(&v), size); };
  bytes = whole;
  bytes.insert(24,
               number(21, 8) + "tokenizer.ggml.tokens" + number(9, 4) + number(8, 4) + number(1, 8) + number(11, 8) +
                   "onlyoneword");
  bytes.replace(16, 8, number(static_cast<unsigned char>(whole[16]) + 1u, 8));
  write_file(file, bytes);
  EXPECT_NE(error_of([&] { read_model_config(file); }).find("has 1 token, and tensor token_embd.weight 96 rows"),
            std::string::npos);
  // Tokens that see those behind them; a key of 29 bytes beside it keeps the tensors aligned.
  bytes = whole;
  bytes.insert(24,
               number(22, 8) + "qwen2.attention.causal" + number(7, 4) + number(0, 1) + number(1, 8) + "x" +
                   number(8, 4) + number(8, 8) + "anything");
  bytes.replace(16, 8, number(static_cast<unsigned char>(whole[16]) + 2u, 8));
  write_file(file, bytes);
  EXPECT_NE(error_of([&] { read_model_config(file); }).find("qwen2.attention.causal is false"), std::string::npos);
  bytes = whole;
  bytes.replace(bytes.find("general.architecture") + 20 + 4 + 8, 5, "bert2");
  write_file(file, bytes);
  EXPECT_NE(error_of([&] { read_model_config(file); }).find("\"bert2\", which is not supported"), std::string::npos);
}

/// A file whose numbers of 32 bits and names of keys are changed.
class ChangedFile {
 public:
  explicit ChangedFile(const char* name) : bytes_(read_file(reference_data(text("models/gguf/", name, ".gguf")))) {}
  ChangedFile with(const std::string& key, uint32_t value) const {
    ChangedFile out = *this;
    out.bytes_.replace(place(key) + key.size() + 4, 4, std::string(reinterpret_cast<const char*>(&value), 4));
    return out;
  }
  ChangedFile with_type(const std::string& key, char type) const {
    ChangedFile out = *this;
    out.bytes_[place(key) + key.size()] = type;
    return out;
  }
  /// All keys, or tensors, of a name.
  ChangedFile renamed(const std::string& from, const std::string& to) const {
    ChangedFile out = *this;
    for (size_t at = 0; (at = out.bytes_.find(from, at)) != out.bytes_.npos; at += to.size())
      out.bytes_.replace(at, from.size(), to);
    return out;
  }
  std::string error() const {
    const TempFolder folder;
    const fs::path file = folder.write("m.gguf", bytes_);
    return error_of([&] { read_model_config(file); });
  }

 private:
  size_t place(const std::string& key) const {
    const size_t at = bytes_.find(key);
    EXPECT_NE(at, bytes_.npos) << key;
    return at;
  }
  std::string bytes_;
};

TEST(Gguf, WhatTheArchitecturesNeedIsAskedFor) {
  auto expect = [](const ChangedFile& file, const char* words) {
    EXPECT_NE(file.error().find(words), std::string::npos) << words << "\n" << file.error();
  };
  const ChangedFile deepseek("deepseek2"), neox("gptneox"), falcon("falcon");
  EXPECT_EQ(deepseek.error() + neox.error() + falcon.error(), "");
  for (const char* key : {"attention.kv_lora_rank",
                          "rope.dimension_count",
                          "expert_shared_count",
                          "expert_group_used_count",
                          "attention.value_length_mla",
                          "context_length",
                          "block_count"})
    expect(deepseek.renamed(text("deepseek2.", key), std::string(10 + std::string(key).size(), 'x')),
           text("deepseek2.", key, " is missing").c_str());
  expect(neox.renamed("gptneox.use_parallel_residual", "gptneoX.use_parallel_residual"),
         "gptneox.use_parallel_residual is missing");
  expect(neox.renamed("output.weight", "Output.weight"), "tensor output.weight is missing");
  expect(deepseek.with("deepseek2.rope.dimension_count", 40), "deepseek2.attention.key_length_mla is 40, of which 40");
  expect(deepseek.with("deepseek2.attention.key_length", 41),
         "deepseek2.attention.key_length is 41 with a latent vector of 32 and 8 rotated elements");
  expect(deepseek.with("deepseek2.expert_gating_func", 3), "deepseek2.expert_gating_func is 3");
  expect(deepseek.with("deepseek2.expert_group_count", 3), "n_group = 3");
  expect(deepseek.with("deepseek2.expert_count", 0x7fffffff), "deepseek2.expert_count is 2147483647");
  expect(deepseek.with("deepseek2.rope.scaling.yarn_log_multiplier", 0x7f800000),
         "deepseek2.rope.scaling.yarn_log_multiplier is inf");
  expect(deepseek.with_type("deepseek2.attention.kv_lora_rank", 6), "deepseek2.attention.kv_lora_rank is ");
  expect(falcon.with("falcon.attention.head_count_kv", 3), "num_kv_heads = 3");
  expect(falcon.with("falcon.rope.dimension_count", 4), "rotates a part of each head");
}

TEST(Gguf, AFolderOfOneFileStandsForIt) {
  TempFolder folder;
  const fs::path source = reference_data("models/gguf/qwen2.gguf");
  fs::copy_file(source, folder.path() / "a.gguf");
  EXPECT_EQ(model_folder(folder.path()), folder.path() / "a.gguf");
  EXPECT_EQ(read_model_config(model_folder(folder.path())).model_type, "qwen2");
  fs::copy_file(source, folder.path() / "b.gguf");
  EXPECT_NE(error_of([&] { model_folder(folder.path()); }).find("holds 2 GGUF files"), std::string::npos);
}

}  // namespace
}  // namespace sator
