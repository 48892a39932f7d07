#include "engine/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/tokenizer/unicode.h"
#include "reference_data.h"
#include "temp_folder.h"

namespace sator {
namespace {

using Ids = std::vector<int32_t>;

/// The tokenizers of the reference data: of each vocabulary what can stand for a part of the strings.
std::vector<std::pair<const char*, fs::path>> tokenizers() {
  return {{"gpt2", reference_data("data/tokenizers/gpt2")},
          {"gpt-neox-20b", reference_data("data/tokenizers/gpt-neox-20b")},
          {"mistral-7b-v0.1", reference_data("data/tokenizers/mistral-7b-v0.1")},
          {"qwen2-style", reference_data("data/tokenizers/qwen2-style")},
          {"gpt2-stories", fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-stories"},
          {"llama-stories", reference_data("models/llama-stories")}};
}

/// Checks one tokenizer against the strings of data/tokenizers/expected.jsonl, which Hugging Face's
/// `tokenizers` made.
void check_expected(const Tokenizer& tokenizer, const std::string& name) {
  std::string lines = read_file(reference_data("data/tokenizers/expected.jsonl"));
  int checked = 0;
  for (std::string_view line : split(lines, '\n')) {
    if (line.empty()) continue;
    Json row = parse_json(line, "expected.jsonl");
    std::string text = row["text"];
    Ids ids = row["ids"][name].get<Ids>();
    EXPECT_EQ(tokenizer.encode(text), ids) << name << ": " << string_literal(text);
    EXPECT_EQ(tokenizer.decode(ids), row["decoded"][name].get<std::string>()) << name << ": " << string_literal(text);
    // A stream gives the same text; a run of byte tokens that is no character may differ in its count of
    // U+FFFD.
    StreamDecoder stream(tokenizer, false);
    std::string streamed;
    for (int32_t id : ids) streamed += stream.push(id);
    streamed += stream.finish();
    EXPECT_EQ(streamed, row["decoded"][name].get<std::string>()) << name << ": " << string_literal(text);
    ++checked;
  }
  EXPECT_EQ(checked, 100);
}

// The bytes of tokens, one behind the other, are the text: but for a space that some decoders leave out at its begin.
TEST(Tokenizer, BytesOfTokensAreTheText) {
  for (const auto& [name, folder] : tokenizers()) {
    const Tokenizer tokenizer = Tokenizer::load(folder);
    const std::string lines = read_file(reference_data("data/tokenizers/expected.jsonl"));
    int compared = 0;
    for (std::string_view line : split(lines, '\n')) {
      if (line.empty()) continue;
      const std::string text = parse_json(line, "expected.jsonl").at("text");
      std::string bytes;
      for (int32_t id : tokenizer.encode(text)) bytes += tokenizer.bytes_of(id);
      if (bytes.starts_with(' ') && !text.starts_with(' ')) bytes.erase(0, 1);
      const std::string decoded = tokenizer.decode(tokenizer.encode(text));
      if (decoded != text || text.starts_with(' ')) continue;  // what normalizers change, unknown characters
      EXPECT_EQ(bytes, text) << name;
      ++compared;
    }
    EXPECT_GT(compared, 40) << name;
  }
}

TEST(Tokenizer, ExpectedStrings) {
  for (const auto& [name, folder] : tokenizers()) check_expected(Tokenizer::load(folder), name);
}

TEST(Tokenizer, Gpt2FromVocabAndMerges) {
  fs::path gpt2 = reference_data("data/tokenizers/gpt2");
  TempFolder folder;
  fs::copy_file(gpt2 / "encoder.json", folder.path() / "vocab.json");
  fs::copy_file(gpt2 / "vocab.bpe", folder.path() / "merges.txt");
  Tokenizer tokenizer = Tokenizer::load(folder.path());
  check_expected(tokenizer, "gpt2");
  // <|endoftext|> is the last token.
  const int32_t end = parse_json(read_file(gpt2 / "encoder.json"), "encoder.json").at("<|endoftext|>");
  EXPECT_EQ(tokenizer.vocab_size(), end + 1);
  EXPECT_TRUE(tokenizer.is_special(end));
  folder.write("tokenizer_config.json", R"({"tokenizer_class":"GPT2Tokenizer","bos_token":"<|endoftext|>",
      "eos_token":{"__type":"AddedToken","content":"<|endoftext|>"},"model_max_length":1024})");
  tokenizer = Tokenizer::load(folder.path());
  check_expected(tokenizer, "gpt2");
  EXPECT_EQ(tokenizer.eos_id(), end);
  folder.write("added_tokens.json", text(R"({"<two>":)", end + 2, R"(,"<one>":)", end + 1, "}"));
  tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.encode("<two><one>"), (Ids{end + 2, end + 1}));
  folder.write("tokenizer_config.json", R"({"tokenizer_class":"BertTokenizer"})");
  EXPECT_NE(error_of([&] { Tokenizer::load(folder.path()); }).find("BertTokenizer"), std::string::npos);
}

/// One small tokenizer per feature; tokenizer_cases.py says how Hugging Face's `tokenizers` made the
/// expectations.
TEST(Tokenizer, ReferenceCases) {
  std::string lines = read_file(fs::path(SATOR_SOURCE_DIR) / "tests/engine/data/tokenizer_cases.jsonl");
  int cases = 0;
  for (std::string_view line : split(lines, '\n')) {
    if (line.empty()) continue;
    Json row = parse_json(line, "tokenizer_cases.jsonl");
    std::string name = row["case"];
    Tokenizer tokenizer = Tokenizer::from_json(row["tokenizer"].dump());
    EXPECT_EQ(tokenizer.vocab_size(), row["vocab_size"].get<int64_t>()) << name;
    for (const Json& r : row["rows"]) {
      std::string text = r["text"];
      Ids ids = r["ids"].get<Ids>(), around = r["with_special"].get<Ids>();
      EXPECT_EQ(tokenizer.encode(text), ids) << name << ": " << string_literal(text);
      EXPECT_EQ(tokenizer.encode(text, true), around) << name << ": " << string_literal(text);
      EXPECT_EQ(tokenizer.decode(ids), r["decoded"].get<std::string>()) << name << ": " << string_literal(text);
      EXPECT_EQ(tokenizer.decode(around, true), r["without_special"].get<std::string>())
          << name << ": " << string_literal(text);
    }
    ++cases;
  }
  EXPECT_GT(cases, 90);
}

/// A tokenizer whose vocabulary is the 256 characters of the byte alphabet, made without our own table of it.
Json byte_tokenizer() {
  Json vocab;
  int moved = 0;
  for (int b = 0; b < 256; ++b) {
    bool itself = (b > 0x20 && b < 0x7f) || (b > 0xa0 && b != 0xad);
    int c = itself ? b : 0x100 + moved++;
    std::string s = c < 0x80 ? std::string(1, static_cast<char>(c))
                             : std::string{static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
    vocab[s] = b;
  }
  Json level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  return {{"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}},
          {"pre_tokenizer", level},
          {"decoder", level}};
}

// Scores in proportion to the lengths: the last bits of the sums decide, and so does how the scores were read. The ids are those of
// `tokenizers` 0.23; with scores read exactly, all but the first would be others.
TEST(Tokenizer, SumsOfUnigramScoresThatAreNearlyEqual) {
  const Tokenizer tokenizer =
      Tokenizer::from_json(R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0],
      ["a", -1.2687284882248024], ["aa", -2.537456976449605], ["aaa", -3.8061854646744075], ["aaaa", -5.07491395289921],
      ["aaaaa", -6.343642441124012], ["aaaaaa", -7.612370929348815], ["aaaaaaa", -8.881099417573617],
      ["aaaaaaaa", -10.14982790579842]]}})");
  const std::pair<size_t, std::vector<int32_t>> rows[] = {{10, {2, 8}},
                                                          {11, {3, 8}},
                                                          {12, {1, 8, 3}},
                                                          {19, {3, 8, 8}},
                                                          {20, {1, 8, 3, 8}},
                                                          {24, {3, 8, 8, 5}},
                                                          {25, {1, 8, 3, 8, 5}},
                                                          {27, {3, 8, 8, 8}}};
  for (const auto& [length, ids] : rows) EXPECT_EQ(tokenizer.encode(std::string(length, 'a')), ids) << length;
}

TEST(Tokenizer, BytesThatAreNoUtf8) {
  Tokenizer tokenizer = Tokenizer::from_json(byte_tokenizer().dump());
  auto lossy = [&](std::string_view bytes) { return tokenizer.decode(tokenizer.encode(bytes)); };
  // The Unicode Standard 15, table 3-8 and the paragraphs around it.
  EXPECT_EQ(lossy("a\xF1\x80\x80\xE1\x80\xC2"
                  "b\x80"
                  "c\x80\xBF"
                  "d"),
            "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  EXPECT_EQ(lossy("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
                  "A"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(lossy("\xED\xA0\x80\xED\xBF\xBF\xED\xAF"
                  "A"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(lossy("\xF4\x91\x92\x93\xFF"
                  "A\x80\xBF"
                  "B"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB");
  EXPECT_EQ(lossy(std::string_view("a\0b\xE2\x82", 5)), std::string("a\0b\uFFFD", 6));
  // Ids that form no character, and ids that are no token's.
  EXPECT_EQ(tokenizer.decode(Ids{'a', 0xe2, 0x82, 'b', -1, 256, 1 << 30}), "a\uFFFDb");
}

TEST(Tokenizer, TextsThatAreNoUtf8AreRefusedWithTheOffset) {
  for (std::string_view good : {"", "a\0b", "\u00e9\n\u20ac", "\U0010ffff"})
    EXPECT_NO_THROW(require_utf8(good, "text"));
  struct Bad {
    std::string_view bytes, says, where;
  };
  for (const Bad& bad : {Bad{"abc\xff", "0xff at offset 3", "text line 1"},
                         Bad{"a\nb\n\xc3(", "0xc3 at offset 4", "text line 3"},
                         Bad{"\xed\xa0\x80", "0xed at offset 0", "text line 1"},
                         Bad{"\xe2\x82", "0xe2 at offset 0", "text line 1"}}) {
    try {
      require_utf8(bad.bytes, "text");
      ADD_FAILURE() << bad.says;
    } catch (const Error& e) {
      EXPECT_NE(e.reason.what.find(bad.says), std::string::npos) << e.reason.what;
      EXPECT_EQ(e.reason.where, bad.where);
    }
  }
}

TEST(Tokenizer, StreamsWholeCharacters) {
  Tokenizer tokenizer = Tokenizer::from_json(byte_tokenizer().dump());
  std::string text = "a\u00e9\u20ac\U0001F600z";
  StreamDecoder stream(tokenizer);
  std::vector<std::string> pieces;
  for (int32_t id : tokenizer.encode(text))
    if (std::string piece = stream.push(id); !piece.empty()) pieces.push_back(piece);
  EXPECT_EQ(pieces, (std::vector<std::string>{"a", "\u00e9", "\u20ac", "\U0001F600", "z"}));
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(stream.push(0xe2), "");
  EXPECT_EQ(stream.push(0x82), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  // Bytes that never become a character do not hold the stream for ever.
  std::string shown;
  for (int i = 0; i < 100; ++i) shown += stream.push(0xff);
  EXPECT_GT(shown.size(), 3 * 90u);
}

// ByteFallback makes a character of a run of bytes, or none at all of the whole run: also of characters that are out already.
TEST(Tokenizer, StreamsWholeCharactersWhereABytesRunBreaks) {
  Json vocab;
  for (int i = 0; i < 256; ++i) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(i));
    vocab[name] = i;
  }
  vocab["a"] = 256;
  Json json = {{"model", {{"type", "BPE"}, {"byte_fallback", true}, {"vocab", vocab}, {"merges", Json::array()}}},
               {"decoder", {{"type", "Sequence"}, {"decoders", {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}}}};
  const Tokenizer tokenizer = Tokenizer::from_json(json.dump());
  ASSERT_EQ(tokenizer.decode(Ids{0xc3, 0xa9, 0xff}), "\uFFFD\uFFFD\uFFFD");
  for (const auto& [ids, text] : std::vector<std::pair<Ids, std::string>>{
           {{0xc3, 0xa9, 0xff}, "\u00e9\uFFFD"},
           {{0xc3, 0xa9, 0xe2, 0x82, 0xac}, "\u00e9\u20ac"},
           {{0xc3, 0xa9, 0xff, 0xff, 0xff, 0xff, 256}, "\u00e9\uFFFD\uFFFD\uFFFD\uFFFDa"}}) {
    StreamDecoder stream(tokenizer);
    std::string shown;
    for (int32_t id : ids) {
      shown += stream.push(id);
      EXPECT_TRUE(is_valid_utf8(shown)) << text;
    }
    EXPECT_EQ(shown + stream.finish(), text);
  }
}

TEST(Tokenizer, StreamSkipsSpecialTokens) {
  Json meta = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}};
  Json json = {{"model", {{"type", "BPE"}, {"vocab", {{"▁a", 0}, {"b", 1}, {"<s>", 2}}}, {"merges", Json::array()}}},
               {"added_tokens", {{{"id", 2}, {"content", "<s>"}, {"special", true}}}},
               {"decoder", meta}};
  Tokenizer tokenizer = Tokenizer::from_json(json.dump());
  Ids ids = {2, 0, 1, 2, 0, 2, 0};
  StreamDecoder stream(tokenizer);
  std::string text;
  for (int32_t id : ids) text += stream.push(id);
  EXPECT_EQ(text + stream.finish(), "ab a a");
  EXPECT_EQ(tokenizer.decode(ids, true), "ab a a");
  EXPECT_EQ(tokenizer.token_of(2), "<s>");
  EXPECT_EQ(tokenizer.id_of("▁a"), 0);
  EXPECT_FALSE(tokenizer.id_of("c"));
  EXPECT_FALSE(tokenizer.token_of(3));
}

// Decoders that take the first space away would otherwise join the prompt's last word and the one after it.
TEST(Tokenizer, StreamContinuesAPrompt) {
  Json decoder = {{"type", "Sequence"},
                  {"decoders",
                   {{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}},
                    {{"type", "Fuse"}},
                    {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  Json json = {{"model", {{"type", "BPE"}, {"vocab", {{"▁a", 0}, {"b", 1}, {"<s>", 2}}}, {"merges", Json::array()}}},
               {"added_tokens", {{{"id", 2}, {"content", "<s>"}, {"special", true}}}},
               {"decoder", decoder}};
  Tokenizer tokenizer = Tokenizer::from_json(json.dump());
  for (const auto& [prompt, added] :
       std::vector<std::pair<Ids, Ids>>{{{2, 0, 1}, {0, 1, 0}}, {{2}, {0, 0}}, {{}, {0, 1}}}) {
    StreamDecoder stream(tokenizer);
    stream.begin_after(prompt);
    std::string text = tokenizer.decode(prompt, true);
    for (int32_t id : added) text += stream.push(id);
    Ids all = prompt;
    all.insert(all.end(), added.begin(), added.end());
    EXPECT_EQ(text + stream.finish(), tokenizer.decode(all, true));
  }
}

TEST(Tokenizer, RefusesWhatItCannotReadExactly) {
  Json good = byte_tokenizer();
  struct Case {
    const char *patch, *says;
  };
  const Case cases[] = {
      {R"({"model":null})", "has no \"model\""},
      {R"({"model":{"type":"Sideways"}})", "\"Sideways\""},
      {R"({"model":{"type":"Unigram","vocab":{}}})", "vocab is no array"},
      {R"({"model":{"type":"Unigram","vocab":[["a"]]}})", "vocab [0]"},
      {R"({"model":{"type":"Unigram","vocab":[["a",1]],"unk_id":1}})", "unk_id"},
      {R"({"model":{"type":"Unigram","vocab":[],"unk_id":0}})", "vocab is empty"},
      {R"({"model":{"type":"WordPiece","vocab":{"zz":-1}}})", "the id -1"},
      {R"({"model":{"dropout":0.1}})", "dropout"},
      {R"({"model":{"vocab":null}})", "has no \"vocab\""},
      {R"({"model":{"vocab":[]}})", "vocab is no object"},
      {R"({"model":{"vocab":{"zz":-1}}})", "the id -1"},
      {R"({"model":{"vocab":{"zz":4294967296}}})", "the id 4294967296"},
      {R"({"model":{"vocab":{"zz":"5"}}})", "the id \"5\""},
      {R"({"model":{"vocab":{"zz":97}}})", "the same id 97"},
      {R"({"model":{"merges":{}}})", "merges is no array"},
      {R"({"model":{"merges":["a"]}})", "merges [0] is \"a\""},
      {R"({"model":{"merges":["a b c"]}})", "merges [0]"},
      {R"({"model":{"merges":[["a"]]}})", "merges [0]"},
      {R"({"model":{"merges":[["a",1]]}})", "merges [0]"},
      {R"({"model":{"merges":["a b"]}})", "the joint is not in the vocabulary"},
      {R"({"model":{"merges":["a漢 b"]}})", "not in the vocabulary"},
      {R"({"model":{"unk_token":"<none>"}})", "unk_token"},
      {R"({"normalizer":{"type":"Precompiled"}})", "has no \"precompiled_charsmap\""},
      {R"({"normalizer":{"type":"Precompiled","precompiled_charsmap":"a"}})", "is no base64"},
      {R"({"normalizer":{"type":"Precompiled","precompiled_charsmap":"//8AAA=="}})",
       "its tree has 65535 bytes; 0 follow"},
      {R"({"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"X"}]}})",
       "normalizer.normalizers[1]"},
      {R"({"normalizer":{"type":"Replace","pattern":{"Regex":"("},"content":""}})", "regular expression"},
      {R"({"normalizer":{"type":"Replace","pattern":{"Regex":"\\p{Nonsense}"},"content":""}})", "Nonsense"},
      {R"({"normalizer":{"type":"Replace","pattern":{"Regex":"a(?i)b"},"content":""}})", "options"},
      {R"({"normalizer":{"type":"Replace","pattern":{},"content":""}})", "Regex"},
      {R"({"pre_tokenizer":{"type":"UnicodeScripts"}})", "\"UnicodeScripts\""},
      {R"({"pre_tokenizer":{"type":"Split","pattern":{"String":"a"},"behavior":"Sideways"}})", "Sideways"},
      {R"({"pre_tokenizer":{"type":"Metaspace","replacement":"ab"}})", "one character"},
      {R"({"pre_tokenizer":7})", "pre_tokenizer is 7"},
      {R"({"decoder":{"type":"CTC"}})", "\"CTC\""},
      {R"({"post_processor":{"type":"TemplateProcessing","single":[],"special_tokens":{}}})", "sequence A 0 times"},
      {R"({"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},{"Sequence":{"id":"A"}}],"special_tokens":{}}})",
       "has no \"x\""},
      {R"({"added_tokens":[{"id":1}]})", "added_tokens[0] has no \"content\""},
  };
  for (const Case& c : cases) {
    Json json = good;
    json.merge_patch(Json::parse(c.patch));
    std::string error = error_of([&] { Tokenizer::from_json(json.dump()); });
    EXPECT_NE(error.find(c.says), std::string::npos) << c.patch << "\n" << error;
  }
  EXPECT_NE(error_of([] { Tokenizer::from_json("[]"); }), "");
  EXPECT_NE(error_of([] { Tokenizer::from_json(""); }), "");
  TempFolder folder;
  EXPECT_NE(error_of([&] { Tokenizer::load(folder.path()); }).find("no tokenizer"), std::string::npos);
  folder.write("tokenizer.model", "x");
  EXPECT_NE(error_of([&] { Tokenizer::load(folder.path()); }).find("is no SentencePiece model"), std::string::npos);
}

TEST(Tokenizer, EveryTruncationIsAnError) {
  std::string whole = byte_tokenizer().dump();
  for (size_t n = 0; n < whole.size(); n += 7)
    EXPECT_NE(error_of([&] { Tokenizer::from_json(whole.substr(0, n)); }), "") << n;
}

TEST(Tokenizer, LongTextsTakeLinearTime) {
  // Each of these is quadratic in a careless tokenizer; at these lengths that would take minutes.
  Json json = byte_tokenizer();
  Json& model = json["model"];
  int id = 256;
  for (std::string run = "a"; run.size() < 64; run += run) {
    model["merges"].push_back(Json{run, run});
    model["vocab"][run + run] = id++;
  }
  json["normalizer"] = {{"type", "NFC"}};
  Tokenizer tokenizer = Tokenizer::from_json(json.dump());
  constexpr size_t kLength = 1 << 19;
  EXPECT_EQ(tokenizer.encode(std::string(kLength, 'a')).size(), kLength / 64);
  EXPECT_EQ(tokenizer.encode(std::string(kLength, ' ')).size(), kLength);
  EXPECT_EQ(tokenizer.encode(std::string(kLength, '\n') + "a").size(), kLength + 1);
  std::string marks = "e";  // canonical order wants all of the second kind before all of the first
  for (size_t i = 0; i < kLength / 8; ++i) marks += "\u0300\u0316";
  Ids ids = tokenizer.encode(marks);
  EXPECT_EQ(ids.size(), marks.size() - 1);  // e and the first U+0300 compose to the two bytes of U+00E8
  EXPECT_EQ(tokenizer.decode(ids).substr(0, 4), "\u00e8\u0316");
}

}  // namespace
}  // namespace sator
