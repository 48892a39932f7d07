// Tokenizers beside byte-level BPE, held against the packages that define them: reference/tokenizers, written by
// tools/make_tokenizer_references.py.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/unicode.h"
#include "reference_data.h"
#include "temp_folder.h"

namespace sator {
namespace {

using Ids = std::vector<int32_t>;

Json json_of(const fs::path& file) { return parse_json(read_file(file), file.string()); }

/// Each of the texts gives these ids and comes back as that text; streamed, it is valid UTF-8 all the way.
void check_expected(const Tokenizer& tokenizer, const std::string& name, bool around) {
  const Json texts = json_of(reference_data("tokenizers/texts.json"));
  const std::string file = read_file(reference_data(text("tokenizers/", name, ".jsonl")));
  size_t k = 0;
  for (std::string_view line : split(file, '\n')) {
    if (line.empty()) continue;
    const std::string sample = texts.at(k++);
    const Json row = parse_json(line, name);
    const Ids ids = row[0].get<Ids>();
    const std::string decoded = row[1];
    EXPECT_EQ(tokenizer.encode(sample, around), ids) << name << ": " << string_literal(sample);
    EXPECT_EQ(tokenizer.decode(ids, around), decoded) << name << ": " << string_literal(sample);
    StreamDecoder stream(tokenizer, around);
    std::string streamed;
    for (int32_t id : ids) {
      const std::string piece = stream.push(id);
      EXPECT_TRUE(is_valid_utf8(piece)) << name << ": " << string_literal(sample);
      streamed += piece;
    }
    EXPECT_EQ(streamed + stream.finish(), decoded) << name << ": " << string_literal(sample);
  }
  EXPECT_EQ(k, texts.size()) << name;
  EXPECT_GE(k, 130u);
}

class Kinds : public testing::TestWithParam<const char*> {};

TEST_P(Kinds, AsTheirPackages) {
  const std::string name = GetParam();
  check_expected(Tokenizer::load(reference_data(text("tokenizers/", name))), name, !name.starts_with("sp-"));
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, Kinds,
                         testing::Values("sp-unigram", "sp-unigram-bytes", "sp-bpe", "sp-bpe-plain", "sp-bpe-suffix",
                                         "sp-bpe-unused", "sp-unigram-unused", "unigram", "unigram-bytes", "wordpiece",
                                         "wordpiece-cased"));

class Ranks : public testing::TestWithParam<const char*> {};

TEST_P(Ranks, AsTiktoken) {
  const std::string name = GetParam();
  TempFolder folder;
  const std::string ranks = read_file(reference_data("tokenizers/ranks/ranks.tiktoken"));
  if (name == "pat_str") {
    folder.write("tokenizer.model", ranks);
    folder.write("tokenizer_config.json", R"({"pat_str":"\\w+|\\s{2,3}+"})");
  } else {
    folder.write(name + ".tiktoken", ranks);
  }
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  check_expected(tokenizer, name, false);
  if (name == "cl100k_base") {
    EXPECT_EQ(tokenizer.id_of("<|fim_prefix|>"), 100258);
    EXPECT_EQ(tokenizer.encode("a<|endofprompt|>"), (Ids{*tokenizer.id_of("a"), 100276}));
    EXPECT_EQ(tokenizer.decode(Ids{100276, 100000}), "<|endofprompt|>");
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, Ranks,
                         testing::Values("r50k_base", "cl100k_base", "o200k_base", "qwen", "pat_str"));

TEST(Tokenizer, RanksWithoutAPatternAreRefused) {
  TempFolder folder;
  folder.write("mine.tiktoken", read_file(reference_data("tokenizers/ranks/ranks.tiktoken")));
  const std::string error = error_of([&] { Tokenizer::load(folder.path()); });
  EXPECT_NE(error.find("mine.tiktoken does not say how text is cut"), std::string::npos) << error;
  EXPECT_NE(error.find("cl100k_base"), std::string::npos) << error;
}

// What stands around a text comes from the settings beside the file, or from the file itself.
TEST(Tokenizer, SentencePieceWithSettings) {
  const std::string model = read_file(reference_data("tokenizers/sp-bpe/tokenizer.model"));
  TempFolder folder;
  folder.write("tokenizer.model", model);
  const Tokenizer bare = Tokenizer::load(folder.path());
  EXPECT_EQ(bare.bos_id(), 1);
  EXPECT_EQ(bare.eos_id(), 2);
  const Ids plain = bare.encode("Once upon");
  Ids with_bos = {1};
  with_bos.insert(with_bos.end(), plain.begin(), plain.end());
  EXPECT_EQ(bare.encode("Once upon", true), with_bos);
  EXPECT_EQ(bare.decode(with_bos), "Once upon");
  // Without settings a control piece in a text is text, as the library has it; with them it is found.
  EXPECT_NE(bare.encode("<s>"), (Ids{1}));
  const int32_t size = static_cast<int32_t>(bare.vocab_size());
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class":"LlamaTokenizer","bos_token":"<s>","eos_token":"</s>","add_bos_token":false,
                   "add_eos_token":true})");
  folder.write("added_tokens.json", text(R"({"[PAD]":)", size + 3, R"(,"<tool>":)", size, "}"));
  const Tokenizer llama = Tokenizer::load(folder.path());
  Ids expected = {1};
  expected.insert(expected.end(), plain.begin(), plain.end());
  expected.insert(expected.end(), {size, size + 3, 2});
  EXPECT_EQ(llama.encode("<s>Once upon<tool>[PAD]", true), expected);
  EXPECT_EQ(llama.decode(expected), "<s> Once upon<tool>[PAD]</s>");
  EXPECT_EQ(llama.decode(expected, true), "Once upon<tool>[PAD]");
  // legacy false: only what begins the input gets the space before it.
  folder.write("tokenizer_config.json", R"({"tokenizer_class":"LlamaTokenizerFast","bos_token":"<s>","legacy":false})");
  const Ids inside = Tokenizer::load(folder.path()).encode("Once<s>upon");
  EXPECT_EQ(inside[0], plain[0]);
  EXPECT_FALSE(Tokenizer::load(folder.path()).token_of(inside.back())->starts_with("\u2581"));
  folder.write("tokenizer_config.json", R"({"tokenizer_class":"XLMRobertaTokenizer"})");
  EXPECT_NE(error_of([&] { Tokenizer::load(folder.path()); }).find("\"XLMRobertaTokenizer\""), std::string::npos);
}

TEST(Tokenizer, BytesThatAreNoUtf8InOtherKinds) {
  for (const char* name : {"sp-bpe", "sp-unigram", "unigram", "wordpiece", "ranks"}) {
    TempFolder folder;
    for (const char* file : {"tokenizer.json", "tokenizer.model", "ranks.tiktoken"})
      if (fs::path from = reference_data(text("tokenizers/", name)) / file; fs::exists(from))
        folder.write(file == std::string_view("ranks.tiktoken") ? "qwen.tiktoken" : file, read_file(from));
    const Tokenizer tokenizer = Tokenizer::load(folder.path());
    for (std::string_view bytes : {"a\xff", "\xc3", "\xed\xa0\x80 x", "\xf0\x9f\x98", "\x80\x80 \xe2\x96"})
      EXPECT_EQ(tokenizer.encode(bytes), tokenizer.encode(lossy_utf8(bytes))) << name;
  }
}

/// A field of a protocol buffer: a number and its bytes.
std::string field(int number, std::string_view bytes) {
  return text(static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size()), bytes);
}
std::string number_field(int number, int value) {
  std::string key(1, static_cast<char>((number << 3) & 0x7f));
  if (number > 15) key[0] = static_cast<char>(key[0] | 0x80), key += static_cast<char>(number >> 4);
  return key + static_cast<char>(value);
}

TEST(Tokenizer, SentencePieceFilesAreRefusedInWords) {
  const std::string unknown = field(1, field(1, "<unk>") + number_field(3, 2)), a = field(1, field(1, "a"));
  struct Case {
    std::string bytes, says;
  };
  for (const Case& c : std::vector<Case>{
           {"", "no unknown piece"},
           {"hello", "is no SentencePiece model"},
           {unknown + unknown, "twice"},
           {unknown + field(1, field(1, "b") + number_field(3, 2)), "two unknown pieces"},
           {unknown + field(1, ""), "a piece without text"},
           {unknown + field(1, field(1, "\xff")), "is no UTF-8"},
           {unknown + field(1, field(1, "b") + number_field(3, 7)), "a piece of type 7"},
           {unknown + a + field(2, number_field(3, 3)), "type word"},
           {unknown + a + field(2, number_field(3, 4)), "type char"},
           {unknown + a + field(2, number_field(35, 1)), "256 pieces of type byte"},
           {unknown + a + field(3, field(2, "abc")), "table of replacements is cut off"},
           {unknown + a + field(3, field(2, std::string("\x08\0\0\0abcd", 8))), "its tree has 8 bytes; 4 follow"},
           {unknown + a + field(5, field(2, std::string("\x04\0\0\0abcd", 8))), "denormalizer"},
           {unknown + field(1, number_field(1, 5)), "field 1 has wire type 0"},
           {unknown + "\x0a\x50", "a field of 80 bytes, where 0 are left"}}) {
    TempFolder folder;
    folder.write("tokenizer.model", c.bytes);
    const std::string error = error_of([&] { Tokenizer::load(folder.path()); });
    EXPECT_NE(error.find(c.says), std::string::npos) << c.says << "\n" << error;
  }
  // The least that is read: one character and what is unknown, which come back as text and as its surface.
  TempFolder folder;
  folder.write("tokenizer.model", unknown + a + field(1, field(1, "\u2581")));
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.encode("a bb"), (Ids{2, 1, 2, 0}));
  EXPECT_EQ(tokenizer.decode(Ids{2, 1, 2, 0}), "a  \u2047 ");
}

TEST(Tokenizer, RankFilesAreRefusedInWords) {
  const std::string good = read_file(reference_data("tokenizers/ranks/ranks.tiktoken"));
  struct Case {
    std::string bytes, says;
  };
  for (const Case& c : std::vector<Case>{{"", "tokens for 0 of the 256 bytes"},
                                         {"YQ== 0\n", "tokens for 1 of the 256 bytes"},
                                         {good + "YQ\n", "line 601"},
                                         {good + "Y*== 7\n", "line 601"},
                                         {good + "YQ== 9999\n", "a token that an earlier line has too"},
                                         {good + "YWJjZGVmZ2g= 5\n", "the rank 5 of an earlier line"},
                                         {good + "YWJjZGVmZ2g= -1\n", "line 601 is"},
                                         {good + "YWJjZGVmZ2g= 99999999\n", "the rank 99999999, beyond"}}) {
    TempFolder folder;
    folder.write("qwen.tiktoken", c.bytes);
    const std::string error = error_of([&] { Tokenizer::load(folder.path()); });
    EXPECT_NE(error.find(c.says), std::string::npos) << c.says << "\n" << error;
  }
}

/// Files that begin well and end early, or have a byte changed: read or refused in words.
TEST(Tokenizer, DamagedFilesEndInWords) {
  for (const char* name : {"sp-unigram/tokenizer.model", "sp-bpe/tokenizer.model", "ranks/ranks.tiktoken"}) {
    const std::string whole = read_file(reference_data(text("tokenizers/", name)));
    const char* file = name[0] == 'r' ? "qwen.tiktoken" : "tokenizer.model";
    TempFolder folder;
    int refused = 0;
    for (size_t k = 0; k < 400; ++k) {
      std::string bytes = k % 2 ? whole.substr(0, k * whole.size() / 400) : whole;
      if (k % 2 == 0) bytes[k * 7919 % bytes.size()] ^= static_cast<char>(1 + k % 255);
      folder.write(file, bytes);
      const std::string error = error_of([&] { Tokenizer::load(folder.path()).encode("Once \u00e9 <sep>"); });
      refused += !error.empty();
    }
    EXPECT_GT(refused, 100) << name;
  }
}

TEST(Tokenizer, LongTextsOfOtherKindsTakeLinearTime) {
  constexpr size_t kLength = 1 << 18;
  for (const char* name : {"sp-bpe", "sp-unigram", "unigram", "wordpiece"}) {
    const Tokenizer tokenizer = Tokenizer::load(reference_data(text("tokenizers/", name)));
    for (const char* part : {"a", " ", "the", "\u4e00", "<sep>"}) {
      std::string long_text;
      while (long_text.size() < kLength) long_text += part;
      EXPECT_LE(tokenizer.encode(long_text).size(), long_text.size() + 1) << name;
    }
  }
}

}  // namespace
}  // namespace sator
