// What runs where no scheme is named: the floats of the checkpoint as they are.
#include <gtest/gtest.h>

#include "llm/logits.h"
#include "llm/open.h"
#include "reference_data.h"
#include "temp_folder.h"

namespace sator::llm {
namespace {

fs::path example() { return fs::path(SATOR_SOURCE_DIR) / "examples" / "gpt2-stories"; }

/// A folder with the example's configuration and tensors of these dtypes.
void make_folder(const fs::path& folder, const std::vector<std::pair<std::string, DType>>& tensors) {
  static const std::vector<std::byte> zeros(8);
  std::vector<SafeTensor> all;
  for (const auto& [name, dtype] : tensors)
    all.push_back({.name = name,
                   .dtype = dtype,
                   .shape = {2},
                   .bytes = std::span(zeros).first(static_cast<size_t>(dtype.bits / 4))});
  fs::copy_file(example() / "config.json", folder / "config.json");
  if (!all.empty()) write_safetensors(folder / "model.safetensors", all);
}

std::string scheme_of(const std::vector<std::pair<std::string, DType>>& tensors) {
  TempFolder folder;
  make_folder(folder.path(), tensors);
  return scheme_for(folder.path(), {}).name;
}

TEST(Exact, IsWhatAllFloatsAre) {
  EXPECT_EQ(scheme_of({{"a", bf16}, {"b", bf16}}), "bf16");
  EXPECT_EQ(scheme_of({{"a", f16}, {"b", f16}}), "f16");
  EXPECT_EQ(scheme_of({{"a", f32}, {"b", f32}}), "f32");
  EXPECT_EQ(scheme_of({{"a", f16}, {"b", bf16}}), "f32") << "neither has the other's values";
  EXPECT_EQ(scheme_of({{"a", f16}, {"b", f32}}), "f32");
  EXPECT_EQ(scheme_of({{"a", bf16}, {"h.0.attn.bias", f32}}), "bf16") << "a mask is no weight";
  EXPECT_EQ(scheme_of({}), "f16") << "what config.json says of weights that are not there";
}

// Neither weights nor keys and values are rounded: the bounds are those of float32 (model_test.cc).
TEST(Exact, LogitsOfBfloat16) {
  const fs::path folder = reference_model("qwen3-tiny");
  const Scheme scheme = scheme_for(folder, {});
  EXPECT_EQ(scheme.name, "bf16");
  EXPECT_LT(largest_difference(folder, folder / "expected.safetensors", true, {}, scheme), 2e-4);
}
TEST(Exact, LogitsOfFloat16) {
  const Scheme scheme = scheme_for(example(), {});
  EXPECT_EQ(scheme.name, "f16");
  const fs::path expected = reference_model("gpt2-stories") / "expected_logits.safetensors";
  EXPECT_LT(largest_difference(example(), expected, false, {}, scheme), 2e-4);
}

TEST(Exact, TheCacheIsFloat32) {
  const ModelConfig config = config_of(example());
  EXPECT_EQ(cache_dtype_of(config, scheme_for(example(), {}), {}), f32);
  EXPECT_EQ(cache_dtype_of(config, scheme_for(example(), "f16"), {}), f16);
  EXPECT_EQ(cache_dtype_of(config, scheme_for(example(), {}), {.cache_dtype = bf16}), bf16);
}

}  // namespace
}  // namespace sator::llm
