// Steps of any number of tokens give what steps of one give, bit for bit: a lookup (engine/prompt_lookup.h) rests on it.
#include <gtest/gtest.h>

#include "llm/open.h"
#include "reference_data.h"

namespace sator::llm {
namespace {

/// Logits from the begin on by steps of `tokens`, with two tokens that were wrong before each step.
std::vector<float> logits_by_steps(const OpenModel& model, std::span<const int32_t> ids, size_t prompt, size_t tokens) {
  Session session = model.session();
  std::vector<float> all;
  session.append(ids.first(prompt));
  for (size_t at = prompt; at < ids.size(); at += tokens) {
    if (tokens > 1) {
      session.append_all(std::vector<int32_t>{5, 6}, [](int64_t, std::span<const float>) {});
      if (session.keep(static_cast<int64_t>(at)) < static_cast<int64_t>(at))
        return {};  // a window gave pages back: nothing to compare
    }
    session.append_all(ids.subspan(at, std::min(tokens, ids.size() - at)), [&](int64_t, std::span<const float> logits) {
      all.insert(all.end(), logits.begin(), logits.end());
    });
  }
  return all;
}

void expect_same_bits(const fs::path& folder, const char* scheme) {
  SCOPED_TRACE(text(folder.filename().string(), " ", scheme));
  const OpenModel model = open_model(folder, {.scheme = scheme_for(folder, scheme)});
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 33; ++i) ids.push_back((i * 7919 + 13) % 90 + 3);
  const std::vector<float> one = logits_by_steps(model, ids, 8, 1);
  Session decoded = model.session();
  decoded.append(std::span(ids).first(8));
  for (size_t i = 8; i < ids.size(); ++i) {
    const std::span<const float> logits = decoded.append({&ids[i], 1});
    EXPECT_TRUE(std::ranges::equal(logits, std::span(one).subspan((i - 8) * logits.size(), logits.size()))) << i;
  }
  for (size_t tokens : {2, 3, 4, 5, 8, 13, 14, 25})
    if (const std::vector<float> few = logits_by_steps(model, ids, 8, tokens); !few.empty())
      EXPECT_EQ(few, one) << tokens;
  const std::vector<float> of_a_longer_prompt = logits_by_steps(model, ids, 21, 1);
  EXPECT_TRUE(std::ranges::equal(of_a_longer_prompt, std::span(one).last(of_a_longer_prompt.size())));
}

TEST(SameBits, OfStepsOfAnyNumberOfTokens) {
  for (const char* scheme : {"f32", "int4-group32", "int8-channel+a8", "int4-group32-s16+embed+a8", "bf16+a16"})
    expect_same_bits(fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-stories", scheme);
  for (const char* name : {"qwen3", "gemma2", "falcon-7b", "mixtral", "gpt-oss", "bloom"})
    expect_same_bits(reference_data(text("models/families/", name)), "f32");
  for (const char* name : {"llama", "qwen2", "qwen2moe"})  // all types of codes
    expect_same_bits(reference_data(text("models/gguf/", name, ".gguf")), "Q4_K_M+a8-group");
}

}  // namespace
}  // namespace sator::llm
