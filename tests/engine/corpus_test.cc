#include "engine/corpus.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "engine/likelihood.h"
#include "temp_folder.h"

namespace sator {
namespace {

using Ids = std::vector<int32_t>;

TEST(Corpus, WorksAreSeparatedByLines) {
  auto works = [](std::string_view text) { return works_of(text); };
  using Works = std::vector<std::string_view>;
  EXPECT_EQ(works("a\nb\n<|endoftext|>\nc\n"), (Works{"a\nb", "c"}));
  EXPECT_EQ(works("a\n\n"), Works{"a\n"});  // the last newline alone
  EXPECT_EQ(works("a <|endoftext|>\nb"), Works{"a <|endoftext|>\nb"});
  EXPECT_EQ(works("<|endoftext|>\na\n<|endoftext|>\n<|endoftext|>\nb\n<|endoftext|>"), (Works{"a", "b"}));
  EXPECT_EQ(works("\n<|endoftext|>\na"), (Works{"a"}));
  EXPECT_TRUE(works("").empty());
  EXPECT_TRUE(works("\n").empty());
}

// streams.json has every 101st id: a stream that is one id off differs everywhere behind it.
TEST(Corpus, StreamsOfTheStoryModels) {
  const fs::path tests = fs::path(SATOR_SOURCE_DIR) / "tests", example = tests / "../examples/gpt2-stories";
  const Json streams = parse_json(read_file(tests / "reference/data/stories/streams.json"), "streams.json");
  const std::string text = read_file(example / "validation.txt");
  for (const auto& [name, folder] :
       {std::pair{"gpt2-stories", example}, {"llama-stories", tests / "reference/models/llama-stories"}}) {
    const Tokenizer tokenizer = Tokenizer::load(folder);
    const Ids stream = token_stream(tokenizer, text, work_marks(tokenizer));
    EXPECT_EQ(stream.size(), streams[name]["ids"].get<size_t>()) << name;
    Ids every_101st;
    for (size_t i = 0; i < stream.size(); i += 101) every_101st.push_back(stream[i]);
    EXPECT_TRUE(every_101st == streams[name]["every_101st"].get<Ids>()) << name;
  }
}

TEST(Corpus, ExampleModel) {
  // The counts that the model's training run stated: 345,467 ids, 674 windows.
  fs::path example = fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-stories";
  Tokenizer tokenizer = Tokenizer::load(example);
  EXPECT_EQ(tokenizer.eos_id(), 0);
  Ids stream = token_stream(tokenizer, read_file(example / "validation.txt"), work_marks(tokenizer));
  EXPECT_EQ(stream.size(), 345'467u);
  EXPECT_EQ(windows_of(stream).size(), 674u);
  EXPECT_EQ(tokenizer.decode(stream).substr(0, 30), read_file(example / "validation.txt").substr(0, 30));
}

TEST(Corpus, MarksOfAWork) {
  std::string vocab = R"("model":{"type":"BPE","vocab":{"a":0,"<s>":1,"</s>":2},"merges":[]})";
  Tokenizer plain = Tokenizer::from_json(text("{", vocab, "}"));
  EXPECT_TRUE(work_marks(plain).after.empty());
  EXPECT_EQ(work_marks(plain, 2).after, Ids{2});
  std::string post =
      R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},
      {"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]}}})";
  TempFolder folder;
  folder.write("tokenizer.json", text("{", post, ",", vocab, "}"));
  folder.write("tokenizer_config.json", R"({"eos_token":"</s>"})");
  Tokenizer llama = Tokenizer::load(folder.path());
  EXPECT_EQ(token_stream(llama, "a\n<|endoftext|>\naa\n", work_marks(llama)), (Ids{1, 0, 2, 1, 0, 0, 2}));
  // With an open end the last work has no mark that the tokenizer does not set.
  EXPECT_EQ(token_stream(llama, "a\n<|endoftext|>\naa\n", work_marks(llama), TextEnd::open), (Ids{1, 0, 2, 1, 0, 0}));
}

TEST(Corpus, Windows) {
  Ids stream(25);
  EXPECT_EQ(windows_of(stream, 10).size(), 2u);
  EXPECT_EQ(windows_of(stream, 10, 1).size(), 1u);
  EXPECT_EQ(windows_of(stream, 10)[1].ids.data(), stream.data() + 10);
  EXPECT_EQ(windows_of(stream, 10)[1].scored, 9);
  EXPECT_NE(error_of([&] { windows_of(stream); }).find("25 tokens"), std::string::npos);
  EXPECT_NE(error_of([&] { windows_of(stream, 1); }), "");
}

// By hand: 25 ids, windows of 10, a stride of 4. Window k begins at 4 k; the first scores ids 1 to 9, each further one the ids
// that are new in it, the last what is left. Without overlap the first id of each window is scored by none.
TEST(Corpus, SlidingWindowsScoreEachIdOnce) {
  Ids stream(25);
  auto described = [&](int64_t tokens, int64_t stride) {
    std::string out;
    for (const Window& w : windows_of(stream, tokens, {}, stride)) {
      const auto begin = w.ids.data() - stream.data(), end = begin + static_cast<ptrdiff_t>(w.ids.size());
      out += text(begin, "-", end, " scores ", end - w.scored, "-", end, "; ");
    }
    return out;
  };
  EXPECT_EQ(described(10, 4),
            "0-10 scores 1-10; 4-14 scores 10-14; 8-18 scores 14-18; 12-22 scores 18-22; 16-25 scores 22-25; ");
  EXPECT_EQ(described(10, 10), "0-10 scores 1-10; 10-20 scores 11-20; 20-25 scores 21-25; ");
  EXPECT_EQ(described(12, 12), "0-12 scores 1-12; 12-24 scores 13-24; ");  // the last id has nothing before it
  EXPECT_EQ(described(40, 7), "0-25 scores 1-25; ");
  EXPECT_EQ(windows_of(stream, 10, 2, 4).size(), 2u);
  EXPECT_NE(error_of([&] { windows_of(stream, 10, {}, 11); }).find("stride of 11"), std::string::npos);
  EXPECT_NE(error_of([&] { windows_of(stream, 10, {}, 0); }).find("stride of 0"), std::string::npos);
}

TEST(Perplexity, LikelihoodOfATarget) {
  // Against the definition in long double.
  std::vector<float> logits;
  for (int i = 0; i < 1037; ++i) logits.push_back(12.0f * std::sin(static_cast<float>(i * i)) - 3.0f);
  long double sum = 0;
  for (float l : logits) sum += std::exp(static_cast<long double>(l));
  for (int32_t target : {0, 17, 1036}) {
    long double expected = std::log(sum) - static_cast<long double>(logits[static_cast<size_t>(target)]);
    EXPECT_NEAR(negative_log_likelihood(logits, target), static_cast<double>(expected), 3e-7);
  }
  std::vector<float> huge = {1e30f, 1e30f, -1e30f};
  EXPECT_NEAR(negative_log_likelihood(huge, 1), std::log(2.0), 1e-7);
  EXPECT_NE(error_of([&] { negative_log_likelihood(huge, 3); }).find("outside"), std::string::npos);
  EXPECT_NE(error_of([&] { negative_log_likelihood(huge, -1); }).find("outside"), std::string::npos);
  huge[0] = NAN;
  EXPECT_NE(error_of([&] { negative_log_likelihood(huge, 1); }).find("not a number"), std::string::npos);
}

TEST(Perplexity, OfWindows) {
  Perplexity p;
  EXPECT_NE(error_of([&] { p.perplexity(); }), "");
  // Each prediction has probability 1/8: perplexity 8, no spread.
  p.add_window(10 * std::log(8.0), 10);
  p.add_window(5 * std::log(8.0), 5);
  EXPECT_NEAR(p.perplexity(), 8, 1e-12);
  EXPECT_NEAR(*p.standard_error(), 0, 1e-12);
  EXPECT_EQ(p.predictions(), 15);
  // Means 1 and 3: sd = sqrt 2, over sqrt 2 windows is 1; the mean of 20 predictions is 2.
  Perplexity q;
  q.add_window(10, 10);
  q.add_window(30, 10);
  EXPECT_NEAR(q.perplexity(), std::exp(2.0), 1e-12);
  EXPECT_NEAR(*q.standard_error(), std::exp(2.0), 1e-12);
  EXPECT_EQ(q.window_means(), (std::vector<double>{1, 3}));
  // One window says nothing about how windows differ.
  Perplexity one;
  one.add_window(10, 10);
  EXPECT_FALSE(one.standard_error());
  // 1 nat of 30 tokens and 3 of 10: mean 1.5; sqrt(2 * ((30 - 45)^2 + (30 - 15)^2)) / 40 = 0.75.
  Perplexity unequal;
  unequal.add_window(30, 30);
  unequal.add_window(30, 10);
  EXPECT_NEAR(*unequal.standard_error(), 0.75 * std::exp(1.5), 1e-12);
}

}  // namespace
}  // namespace sator
