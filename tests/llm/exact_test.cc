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
  EXPECT_EQ(scheme_of({{"a", f16}, {"b", bf16}}), "bf16+f16");
  EXPECT_EQ(scheme_of({{"a", f16}, {"b", f32}, {"c", f16}}), "f16+f32");
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

/// The logits of the sequence, under the scheme.
std::vector<float> logits_of(const fs::path& folder, const Scheme& scheme, std::span<const int32_t> ids) {
  OpenModel opened = open_model(folder, {.scheme = scheme});
  Session session = opened.session();
  std::vector<float> out;
  session.append_all(ids, [&](int64_t, std::span<const float> row) { out.insert(out.end(), row.begin(), row.end()); });
  return out;
}

// Norms are often float32 beside matrices of 16 bits. The experts of a layer are one parameter, here of two dtypes.
TEST(Exact, EachTensorOfSeveralDtypesAsItIs) {
  TempFolder folder;
  const fs::path from = reference_model("families/mixtral");
  fs::copy_file(from / "config.json", folder.path() / "config.json");
  const SafeTensors given = SafeTensors::open_folder(from);
  std::vector<SafeTensor> tensors;
  std::vector<Ref<runtime::Tensor>> kept;
  std::map<std::string, DType, std::less<>> dtypes;
  for (SafeTensor t : given.tensors()) {
    t.name = std::string(t.name);
    const DType dtype = t.shape.size() == 1 ? f32 : t.name.find("experts.1.") != std::string::npos ? f16 : bf16;
    kept.push_back(to_dtype(to_f32(t.bytes, t.dtype), runtime::Dims(std::span<const int64_t>(t.shape)), dtype));
    t.dtype = dtypes[t.name] = dtype;
    t.bytes = {static_cast<const std::byte*>(kept.back()->data()), static_cast<size_t>(kept.back()->size_bytes())};
    tensors.push_back(t);
  }
  write_safetensors(folder.path() / "model.safetensors", tensors);
  const Scheme scheme = scheme_for(folder.path(), {});
  EXPECT_EQ(scheme.name, "bf16+f16+f32");
  std::map<std::string, int> seen;
  for (const ParamSpec& spec : program_of(folder.path(), {.scheme = scheme}).params) {
    std::set<std::string> own;
    for (const std::string& name : spec.source.tensors) own.insert(text(dtypes.at(name)));
    EXPECT_EQ(text(spec.dtype), own.size() == 1 ? *own.begin() : "float32") << spec.name;
    ++seen[text(spec.dtype, " of ", own.size())];
  }
  EXPECT_GT(seen["bfloat16 of 1"], 0);
  EXPECT_GT(seen["float32 of 1"], 0);
  EXPECT_GT(seen["float32 of 2"], 0);
  const std::vector<int32_t> ids = {5, 17, 3, 60, 21, 8, 44};
  const std::vector<float> exact = logits_of(folder.path(), parse_scheme("f32"), ids),
                           own = logits_of(folder.path(), scheme, ids);
  ASSERT_EQ(own.size(), exact.size());
  float largest = 0, difference = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    largest = std::max(largest, std::fabs(exact[i]));
    difference = std::max(difference, std::fabs(own[i] - exact[i]));
  }
  EXPECT_LE(difference, 2e-5 * largest + 1e-5);
}

TEST(Exact, TheCacheIsFloat32) {
  const ModelConfig config = config_of(example());
  EXPECT_EQ(cache_dtype_of(config, scheme_for(example(), {}), {}), f32);
  EXPECT_EQ(cache_dtype_of(config, scheme_for(example(), "f16"), {}), f16);
  EXPECT_EQ(cache_dtype_of(config, scheme_for(example(), "float28-channel"), {}), f32);  // the same numbers as f32
  EXPECT_EQ(cache_dtype_of(config, scheme_for(example(), "float12-channel"), {}), f16);
  EXPECT_EQ(cache_dtype_of(config, scheme_for(example(), {}), {.cache_dtype = bf16}), bf16);
}

}  // namespace
}  // namespace sator::llm
