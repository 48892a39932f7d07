// Room in a chip's outermost memory: weights, cache and activations by the arithmetic of config.json, and what is said of them.
#include "study/capacity.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "study/cost_program.h"
#include "study/json.h"
#include "study/words.h"
#include "temp_folder.h"

namespace sator::study {
namespace {

// Llama-3-70B's published sizes.
constexpr const char* kConfig =
    R"({"model_type":"llama","vocab_size":128256,"hidden_size":8192,"intermediate_size":28672,
  "num_hidden_layers":80,"num_attention_heads":64,"num_key_value_heads":8,"rms_norm_eps":1e-5,"eos_token_id":2,"bos_token_id":1,
  "torch_dtype":"bfloat16","max_position_embeddings":8192,"tie_word_embeddings":false})";

MemoryNeed need_of(const fs::path& folder, const char* scheme, const char* chip, int64_t chips) {
  StudyOptions options{.model = folder, .prompt_len = 1000, .gen_len = 24, .shapes_only = true};
  options.changes.chips = chips;
  const SchemeJob job{.scheme = llm::parse_scheme(scheme), .options = options, .decode_context = 1012};
  const std::vector<Chip> on = {dataflow::described_chip(chip, options.changes)};
  return *ProgramCoster().cost(job, on, [](const std::string&, bool) {})[0].need;
}

TEST(Capacity, LargeModelsDoNotFitSmallCards) {
  TempFolder folder;
  write_file(folder.path() / "config.json", kConfig);
  const int64_t width = 8192, kv = 8 * 128, hidden = 28672, vocab = 128256, layers = 80;
  const int64_t of_layer = width * (width + 2 * kv) + width * width + 3 * width * hidden + 2 * width;
  const int64_t parameters = layers * of_layer + 2 * vocab * width + width;

  const MemoryNeed one = need_of(folder.path(), "f16+a16", "h100", 1);
  EXPECT_EQ(one.weights_bytes, 2 * parameters);
  EXPECT_EQ(one.cache_bytes, 2 * layers * kv * 1024 * 2);  // 1000 + 24 positions of keys and values in f16
  EXPECT_EQ(one.capacity_bytes, find_chip("h100").memories[0].capacity_bytes);
  EXPECT_FALSE(one.fits());
  EXPECT_EQ(one.chips_with_room, 2);
  EXPECT_GE(one.activation_bytes, 4 * 2 * hidden);

  const MemoryNeed two = need_of(folder.path(), "f16+a16", "h100", 2);
  EXPECT_TRUE(two.fits());
  EXPECT_EQ(two.cache_bytes, one.cache_bytes / 2);
  // Embedding, head and norms are whole on either chip.
  EXPECT_EQ(two.weights_bytes,
            2 * (layers * (of_layer - 2 * width) / 2 + layers * 2 * width + 2 * vocab * width + width));

  const MemoryNeed large = need_of(folder.path(), "int4-group32+embed+a16", "h200", 1);
  EXPECT_TRUE(large.fits());
  EXPECT_FALSE(large.chips_with_room);
}

TEST(Capacity, IsSaidInWordsAndKeptInFiles) {
  Study study;
  study.chips = {{.name = "card"}, {.name = "large"}};
  const MemoryNeed need{.memory = "hbm",
                        .weights_bytes = 140'000'000'000,
                        .cache_bytes = 1'000'000'000,
                        .activation_bytes = 30'000'000,
                        .capacity_bytes = 80'000'000'000,
                        .chips_with_room = 2};
  MemoryNeed fits = need;
  fits.capacity_bytes = 141'100'000'000;
  study.schemes = {{.name = "f16",
                    .chips = {{.chip = "card", .prefill = {}, .decode = {}, .need = need},
                              {.chip = "large", .prefill = {}, .decode = {}, .need = fits}}}};
  ASSERT_EQ(capacity_remarks_on(study, 0).size(), 1U);
  EXPECT_EQ(
      capacity_remarks_on(study, 0)[0],
      "f16 does not fit: 141 GB on 80.0 GB of hbm (weights 140 GB, cache 1.00 GB, activations 30.0 MB); 2 of them "
      "have room: --parallel 2");
  EXPECT_TRUE(capacity_remarks_on(study, 1).empty());
  EXPECT_EQ(from_json(to_json(study), "a test").schemes[0].chips[0].need, need);
}

}  // namespace
}  // namespace sator::study
