#include "engine/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "temp_folder.h"

namespace sator {
namespace {

TEST(Random, Xoshiro256StarStar) {
  // The published sequence for the state that SplitMix64 makes of seed 0.
  Random random(0);
  EXPECT_EQ(random.next(), 0x99ec5f36cb75f2b4u);
  EXPECT_EQ(random.next(), 0xbf6e1f784956452au);
  EXPECT_EQ(random.next(), 0x1a5f849d4933e6e0u);
  EXPECT_EQ(random.next(), 0x6aa594f1262d2d2cu);
}

TEST(Sampler, GreedyTakesTheFirstOfTies) {
  Sampler greedy({});
  EXPECT_EQ(greedy.sample(std::vector<float>{1, 3, 3, 2}), 1);
  EXPECT_EQ(greedy.sample(std::vector<float>{-INFINITY, -5}), 1);
  EXPECT_EQ(most_likely(std::vector<float>{-0.0f, 0.0f}), 0);
}

std::map<int32_t, double> frequencies(const SamplingParams& params, const std::vector<float>& logits, int draws) {
  Sampler sampler(params);
  std::map<int32_t, double> counts;
  for (int i = 0; i < draws; ++i) counts[sampler.sample(logits)] += 1.0 / draws;
  return counts;
}

TEST(Sampler, DrawsByProbability) {
  // softmax(log p / T) = p^(1/T) normalized; five standard deviations of a binomial.
  std::vector<double> p = {0.5, 0.25, 0.15, 0.1};
  std::vector<float> logits;
  for (double v : p) logits.push_back(static_cast<float>(std::log(v)));
  constexpr int kDraws = 40'000;
  for (double temperature : {0.5, 1.0, 2.0}) {
    double sum = 0;
    for (double v : p) sum += std::pow(v, 1 / temperature);
    auto seen = frequencies({.temperature = temperature, .seed = 3}, logits, kDraws);
    for (int32_t i = 0; i < 4; ++i) {
      double expected = std::pow(p[static_cast<size_t>(i)], 1 / temperature) / sum;
      EXPECT_NEAR(seen[i], expected, 5 * std::sqrt(expected * (1 - expected) / kDraws)) << temperature << " " << i;
    }
  }
}

TEST(Sampler, TopKAndTopP) {
  std::vector<float> logits;
  for (double v : {0.1, 0.4, 0.3, 0.2}) logits.push_back(static_cast<float>(std::log(v)));
  auto only = [&](SamplingParams params) {
    params.temperature = 1;
    std::vector<int32_t> ids;
    for (auto [id, frequency] : frequencies(params, logits, 2000)) ids.push_back(id);
    return ids;
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(only({.top_k = 1}), Ids{1});
  EXPECT_EQ(only({.top_k = 3}), (Ids{1, 2, 3}));
  EXPECT_EQ(only({.top_k = 9}), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(only({.top_p = 0.39}), Ids{1});
  EXPECT_EQ(only({.top_p = 0.65}), (Ids{1, 2}));
  EXPECT_EQ(only({.top_p = 0.95}), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(only({.top_k = 2, .top_p = 0.6}), (Ids{1, 2}));  // of the two kept, 0.4/0.7 < 0.6
  EXPECT_EQ(only({.top_k = 2, .top_p = 0.55}), Ids{1});
  // Of equal logits the lower id is kept.
  logits = {0, 0, 0, 0};
  EXPECT_EQ(only({.top_k = 2}), (Ids{0, 1}));
  EXPECT_EQ(only({.top_p = 0.5}), (Ids{0, 1}));
}

TEST(Sampler, NucleusOfALargeVocabulary) {
  // 10,000 equal tokens: top_p 0.25 keeps the first 2,500, whatever the runs in which they are sorted.
  std::vector<float> logits(10'000, 1.0f);
  Sampler sampler({.temperature = 1, .top_p = 0.25, .seed = 1});
  int32_t highest = 0;
  for (int i = 0; i < 2000; ++i) highest = std::max(highest, sampler.sample(logits));
  EXPECT_LE(highest, 2499);
  EXPECT_GE(highest, 2400);
}

TEST(Sampler, SeedsRepeat) {
  std::vector<float> logits;
  for (int i = 0; i < 500; ++i) logits.push_back(std::sin(static_cast<float>(i)));
  auto draw = [&](uint64_t seed) {
    Sampler sampler({.temperature = 0.9, .top_p = 0.95, .seed = seed});
    std::vector<int32_t> ids;
    for (int i = 0; i < 50; ++i) ids.push_back(sampler.sample(logits));
    return ids;
  };
  EXPECT_EQ(draw(11), draw(11));
  EXPECT_NE(draw(11), draw(12));
}

TEST(Sampler, RefusesBadInput) {
  for (SamplingParams bad : {SamplingParams{.temperature = -1},
                             {.temperature = NAN},
                             {.temperature = INFINITY},
                             {.top_k = -1},
                             {.top_p = 0},
                             {.top_p = 1.1},
                             {.top_p = NAN}})
    EXPECT_NE(error_of([&] { Sampler sampler(bad); }).find("needs"), std::string::npos);
  Sampler sampler({.temperature = 1});
  EXPECT_NE(error_of([&] { sampler.sample(std::vector<float>{1, NAN}); }).find("not a number"), std::string::npos);
  EXPECT_NE(error_of([&] { sampler.sample(std::vector<float>{1, INFINITY}); }).find("inf"), std::string::npos);
  EXPECT_NE(error_of([&] { sampler.sample(std::vector<float>{-INFINITY}); }).find("inf"), std::string::npos);
  EXPECT_NE(error_of([&] { sampler.sample(std::vector<float>{}); }), "");
  // A masked vocabulary: what has no probability is never drawn.
  for (int i = 0; i < 100; ++i) EXPECT_EQ(sampler.sample(std::vector<float>{-INFINITY, 2, -INFINITY}), 1);
}

// Made by data/sampling_cases.py from the definitions of Hugging Face's transformers.
TEST(Sampler, DrawsFromWhatTransformersDrawFrom) {
  const fs::path file = fs::path(SATOR_SOURCE_DIR) / "tests/engine/data/sampling_cases.json";
  const Json cases = parse_json(read_file(file), file.string());
  ASSERT_EQ(cases.size(), 70U);
  for (const Json& c : cases) {
    SCOPED_TRACE(c.dump());
    SamplingParams params{.temperature = c.at("temperature"),
                          .top_k = c.value("top_k", 0),
                          .top_p = c.value("top_p", 1.0),
                          .min_p = c.value("min_p", 0.0),
                          .repetition_penalty = c.value("repetition_penalty", 1.0),
                          .no_repeat_ngram_size = c.value("no_repeat_ngram_size", 0),
                          .excluded = c.value("excluded", std::vector<int32_t>())};
    for (const Json& row : c.value("sequence_bias", Json::array())) {
      const auto biased = row.at(0).get<std::vector<int32_t>>();
      std::erase_if(params.sequence_bias, [&](const auto& earlier) { return earlier.first == biased; });
      params.sequence_bias.emplace_back(biased, row.at(1).get<double>());
    }
    params.bad_words = c.value("bad_words", std::vector<std::vector<int32_t>>());
    params.min_new_tokens = c.value("min_new_tokens", 0), params.min_length = c.value("min_length", 0);
    params.ends = c.value("ends", std::vector<int32_t>());
    const auto logits = c.at("logits").get<std::vector<float>>();
    const auto sequence = c.at("sequence").get<std::vector<int32_t>>();
    const size_t prompt = c.value("prompt", 0);
    const Json& wanted = c.at("probabilities");
    std::map<int32_t, double> got;
    Sampler sampler(params);
    for (const Drawable& d : sampler.distribution(logits, sequence, prompt)) got[d.id] = d.probability;
    EXPECT_EQ(got.size(), wanted.size());
    int32_t top = -1;
    for (const auto& [id, p] : wanted.items()) {
      EXPECT_NEAR(got[std::stoi(id)], p.get<double>(), 1e-6) << "token " << id;
      if (top < 0 || p > wanted.at(std::to_string(top))) top = std::stoi(id);
    }
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(got.contains(sampler.sample(logits, sequence, prompt)));
    // Penalties and forbidden tokens hold without sampling too.
    SamplingParams greedy = params;
    greedy.temperature = 0;
    EXPECT_EQ(Sampler(greedy).sample(logits, sequence, prompt), top);
  }
}

// Penalties of presence and frequency are of generated tokens: logit - frequency * count - presence, as OpenAI's API documents them.
TEST(Sampler, PenaltiesOfGeneratedTokensAndBiases) {
  const std::vector<float> logits = {1, 2, 3, 0.5, -1};
  const std::vector<int32_t> sequence = {0, 0, 3, 2, 2, 1};  // three of the prompt
  const SamplingParams params{
      .temperature = 1, .frequency_penalty = 0.75, .presence_penalty = 0.5, .logit_bias = {{4, 1.5}, {3, -INFINITY}}};
  const double changed[] = {1, 2 - 1.25, 3 - 2, -INFINITY, 0.5};
  double sum = 0;
  for (double x : changed) sum += std::exp(x);
  std::map<int32_t, double> got;
  for (const Drawable& d : Sampler(params).distribution(logits, sequence, 3)) got[d.id] = d.probability;
  for (int32_t id : {0, 1, 2, 4}) EXPECT_NEAR(got[id], std::exp(changed[id]) / sum, 1e-6) << id;
  EXPECT_FALSE(got.contains(3));
  // Tokens 0 and 2 are as likely then: the first is taken.
  SamplingParams greedy = params;
  greedy.temperature = 0;
  EXPECT_EQ(Sampler(greedy).sample(logits, sequence, 3), 0);
  EXPECT_NE(error_of([] { Sampler({.frequency_penalty = INFINITY}); }).find("frequency_penalty is inf"),
            std::string::npos);
  for (double large : {1e31, -1e39}) {  // beyond float32 after some tokens, or at once
    EXPECT_NE(error_of([&] { Sampler({.presence_penalty = large}); }).find("presence_penalty is "), std::string::npos);
    EXPECT_NE(error_of([&] { Sampler({.logit_bias = {{1, large}}}); }).find("token 1 is given the bias "),
              std::string::npos);
  }
  EXPECT_NE(error_of([] { Sampler({.logit_bias = {{1, NAN}}}); }).find("token 1 is given the bias nan"),
            std::string::npos);
}

// However a text is cut into pieces, it ends before the first stop string, and no piece shows a part of one.
TEST(StopStrings, EndTheTextHoweverItIsCut) {
  Random random(3);
  const std::vector<std::vector<std::string>> all = {{"ab"}, {"aab", "b"}, {"abab", "ba"}, {"aaa"}, {"c"}};
  for (int round = 0; round < 2000; ++round) {
    const std::vector<std::string>& stops = all[random.next() % all.size()];
    std::string text;
    for (size_t i = random.next() % 12; i > 0; --i) text += static_cast<char>('a' + random.next() % 2);
    // The text before the first stop string that is complete.
    std::string wanted = text;
    bool found = false;
    for (size_t n = 0; n <= text.size() && !found; ++n)
      for (const std::string& s : stops)
        if (text.substr(0, n).ends_with(s)) wanted.resize(std::min(wanted.size(), n - s.size())), found = true;
    StopStrings cut(stops);
    std::string got;
    for (size_t i = 0; i < text.size();) {
      const size_t size = 1 + random.next() % 3;
      got += cut.push(text.substr(i, size));
      i += size;
    }
    if (!cut.found()) got += cut.rest();
    EXPECT_EQ(cut.found(), found) << text;
    EXPECT_EQ(got, wanted) << text;
  }
  EXPECT_NE(error_of([] { StopStrings({""}); }).find("an empty text"), std::string::npos);
}

TEST(Sampler, RefusesParametersOutOfRange) {
  EXPECT_NE(error_of([] { Sampler({.min_p = 1.5}); }).find("min_p is 1.5"), std::string::npos);
  EXPECT_NE(error_of([] { Sampler({.repetition_penalty = 0}); }).find("repetition_penalty is 0"), std::string::npos);
  EXPECT_NE(error_of([] { Sampler({.no_repeat_ngram_size = -1}); }).find("no_repeat_ngram_size is -1"),
            std::string::npos);
  Sampler all({.no_repeat_ngram_size = 1});
  EXPECT_NE(error_of([&] { all.sample(std::vector<float>{1, 2}, std::vector<int32_t>{0, 1}); }).find("forbidden"),
            std::string::npos);
}

}  // namespace
}  // namespace sator
