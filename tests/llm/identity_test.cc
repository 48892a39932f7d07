#include "llm/identity.h"

#include <gtest/gtest.h>

#include "frontend/safetensors.h"
#include "llm/open.h"
#include "temp_folder.h"

namespace sator::llm {
namespace {

constexpr const char* kConfig = R"({"model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 24,
  "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 16,
  "rope_theta": 10000, "rms_norm_eps": 1e-6, "hidden_act": "silu", "tie_word_embeddings": true})";

/// The configuration with other values.
std::string config_with(const char* changes) {
  auto config = nlohmann::json::parse(kConfig);
  config.merge_patch(nlohmann::json::parse(changes));
  return config.dump();
}

/// A small Llama of made-up weights, all of one folder alike.
class Identity : public testing::Test {
 protected:
  Identity() {
    ::setenv("SATOR_HOME", (folder.path() / "home").c_str(), 1);
    lay_out("m", kConfig);
  }
  fs::path lay_out(const std::string& name, const std::string& config) {
    folder.write(name + "/config.json", config);
    struct Row {
      std::string name;
      std::vector<int64_t> shape;
    };
    const std::string layer = "model.layers.0.";
    std::vector<SafeTensor> tensors;
    std::vector<std::vector<float>> values;
    for (const Row& row : std::vector<Row>{{"model.embed_tokens.weight", {32, 16}},
                                           {"model.norm.weight", {16}},
                                           {layer + "input_layernorm.weight", {16}},
                                           {layer + "post_attention_layernorm.weight", {16}},
                                           {layer + "self_attn.q_proj.weight", {16, 16}},
                                           {layer + "self_attn.k_proj.weight", {8, 16}},
                                           {layer + "self_attn.v_proj.weight", {8, 16}},
                                           {layer + "self_attn.o_proj.weight", {16, 16}},
                                           {layer + "mlp.gate_proj.weight", {24, 16}},
                                           {layer + "mlp.up_proj.weight", {24, 16}},
                                           {layer + "mlp.down_proj.weight", {16, 24}}}) {
      std::vector<float> v;
      const int64_t count = row.shape[0] * (row.shape.size() > 1 ? row.shape[1] : 1);
      for (int64_t i = 0; i < count; ++i) v.push_back(static_cast<float>((i * 7 + 3) % 23 - 11) / 16);
      values.push_back(std::move(v));
      tensors.push_back({row.name, f32, row.shape, {}});
    }
    for (size_t t = 0; t < tensors.size(); ++t) tensors[t].bytes = std::as_bytes(std::span(values[t]));
    write_safetensors(folder.path() / name / "model.safetensors", tensors, {});
    return folder.path() / name;
  }
  /// The words with which a model refuses the library; empty if it takes it.
  std::string refusal(const fs::path& model, const fs::path& library) {
    OpenOptions options{.threads = 1};
    options.model_lib = library;
    return error_of([&] { open_model(model, options); });
  }
  TempFolder folder;
};

// Each has the same parameters; only the arithmetic differs.
TEST_F(Identity, ALibraryRunsNoModelOfAnotherGraph) {
  const fs::path library = folder.path() / "model.so";
  compile_model(folder.path() / "m", {}, library);
  EXPECT_EQ(refusal(folder.path() / "m", library), "");
  struct Row {
    const char *changes, *words;
  };
  for (const Row& row :
       {Row{R"({"rope_theta": 500})", "rope_theta: library 10000, model 500"},
        Row{R"({"hidden_act": "relu"})", "hidden_act: library silu, model relu"},
        Row{R"({"rms_norm_eps": 0.5})", "rms_norm_eps: library 1e-06, model 0.5"},
        Row{R"({"rope_scaling": {"rope_type": "linear", "factor": 2.0}})",
            "rope_scaling.rope_type: library none, model linear"},
        Row{R"({"max_position_embeddings": 8})", "context_window_size: library 16, model at most 8"}}) {
    const std::string words = refusal(lay_out("other", config_with(row.changes)), library);
    EXPECT_NE(words.find(row.words), std::string::npos) << row.changes << ": " << words;
  }
  const std::string all = refusal(
      lay_out("other", config_with(R"({"rope_theta": 500, "hidden_act": "relu", "rms_norm_eps": 0.5})")), library);
  EXPECT_NE(
      all.find("hidden_act: library silu, model relu; rms_norm_eps: library 1e-06, model 0.5; rope_theta: library "
               "10000, model 500"),
      std::string::npos)
      << all;
  // What shapes nothing does not count.
  EXPECT_EQ(refusal(lay_out("same", config_with(R"({"transformers_version": "9", "bos_token_id": 3})")), library), "");
}

TEST_F(Identity, AnotherCacheIsADifference) {
  const fs::path library = folder.path() / "model.so";
  compile_model(folder.path() / "m", {}, library);
  OpenOptions options{.threads = 1};
  options.model_lib = library;
  options.program.cache_dtype = f16;
  const std::string words = error_of([&] { open_model(folder.path() / "m", options); });
  EXPECT_NE(words.find("kv_cache_dtype: library float32, model float16"), std::string::npos) << words;
}

TEST_F(Identity, AShorterLibraryRuns) {
  OpenOptions shorter;
  shorter.program.context_window = 8;
  shorter.program.prefill_chunk = 3;
  const fs::path library = folder.path() / "model.so";
  compile_model(folder.path() / "m", shorter, library);
  OpenOptions options{.threads = 1};
  options.model_lib = library;
  const OpenModel model = open_model(folder.path() / "m", options);
  EXPECT_EQ(model.limits.context_window, 8);
  EXPECT_EQ(model.limits.prefill_chunk, 3);
}

TEST(Differences, AreNamed) {
  const nlohmann::json a = {{"x", 1}, {"y", 2.0}, {"only_a", true}}, b = {{"x", 1}, {"y", 2.5}, {"parameters", "z"}};
  EXPECT_EQ(differences(a, b, "library", "model"),
            (std::vector<std::string>{"only_a: library true, model nothing",
                                      "parameters: other names, shapes or dtypes",
                                      "y: library 2, model 2.5"}));
  EXPECT_TRUE(differences(a, a, "library", "model").empty());
}

}  // namespace
}  // namespace sator::llm
