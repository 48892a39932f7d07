// What a file leaves out is what the family's configuration class of Transformers fills in. Source: defaults.json, written by
// tools/make_default_references.py from these classes and from models made of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "changed_config.h"
#include "frontend/families/keys.h"
#include "reference_data.h"

namespace sator {
namespace {

/// The layers that have a window.
std::vector<int64_t> windowed(const ModelConfig& model) {
  const AttentionConfig& a = model.attention;
  std::vector<int64_t> layers = a.window_layers;
  if (a.window > 0 && layers.empty())
    for (int64_t i = 0; i < model.layers; ++i) layers.push_back(i);
  return layers;
}

void expect_rope(const std::optional<Rope>& rope, const Json& is, int64_t head_dim) {
  ASSERT_TRUE(rope);
  EXPECT_EQ(rope->theta, is["theta"]);
  EXPECT_EQ(static_cast<double>(rope->dims), static_cast<double>(head_dim) * is["share"].get<double>());
  const bool yarn = is["type"] == "yarn";
  EXPECT_EQ(rope->scaling.kind, yarn ? RopeScaling::Kind::yarn : RopeScaling::Kind::none);
  if (!yarn) return;
  EXPECT_EQ(rope->scaling.factor, is["factor"]);
  EXPECT_EQ(rope->scaling.original_positions, is["original"]);
  EXPECT_EQ(rope->scaling.truncate, is["truncate"]);
  EXPECT_DOUBLE_EQ(rope->scaling.attention_factor, is["attention_factor"].get<double>());
}

void expect_experts(const ExpertsConfig& e, const Json& is) {
  EXPECT_EQ(e.count, is["count"]);
  EXPECT_EQ(e.per_token, is["per_token"]);
  EXPECT_EQ(e.normalized, is["normalized"]);
}

void expect_latent(const ModelConfig& model, const Json& is) {
  const ExpertsConfig& e = model.experts;
  EXPECT_EQ(model.attention.latent->query_rank, is["query_rank"]);
  EXPECT_EQ(e.groups, is["groups"]);
  EXPECT_EQ(e.groups > 1 ? e.open_groups : 1, is["open_groups"]);
  EXPECT_EQ(e.scale, is["scale"]);
  EXPECT_EQ(e.shared_units, is["shared"].get<int64_t>() * e.units);
  EXPECT_EQ(std::ssize(e.dense_layers), is["dense"]);
}

TEST(Defaults, AreThoseOfTransformers) {
  const fs::path file = reference_data("models") / "defaults.json";
  const Json all = parse_json(read_file(file), file.string());
  std::vector<std::string> seen;
  for (const Json& row : all["rows"]) {
    SCOPED_TRACE(row["config"].dump());
    const Json& is = row["is"];
    const ModelConfig model = read_with(row["config"].dump().c_str(), "{}");
    const AttentionConfig& a = model.attention;
    seen.push_back(model.model_type);
    EXPECT_EQ(model.norm.epsilon, is["epsilon"]);
    if (is["activation"].is_string())
      EXPECT_EQ(model.mlp.activation, families::activation_of(is["activation"].get<std::string>()));
    EXPECT_EQ(model.tie_word_embeddings, is["tied"]);
    if (!is["positions"].is_null()) EXPECT_EQ(model.max_positions, is["positions"]);
    if (!is["head_dim"].is_null()) EXPECT_EQ(a.head_dim, is["head_dim"]);
    if (!is["scale"].is_null()) EXPECT_DOUBLE_EQ(a.scale, is["scale"].get<double>());
    EXPECT_EQ(a.latent ? a.heads : a.kv_heads, is["kv_heads"]);
    EXPECT_EQ(a.qkv_bias, is["qkv_bias"]);
    EXPECT_EQ(model.mlp.in_bias, is["mlp_bias"]);
    EXPECT_EQ(model.head_bias, is["head_bias"]);
    EXPECT_EQ(a.soft_cap, is["attention_cap"]);
    EXPECT_EQ(model.final_soft_cap, is["logit_cap"]);
    EXPECT_EQ(model.logit_scale, is["logit_scale"]);
    EXPECT_EQ(a.window, is["window"]);
    EXPECT_EQ(Json(windowed(model)), is["window_layers"]);
    const int64_t rotated = a.latent ? a.rope->dims : a.head_dim;
    EXPECT_EQ(a.rope.has_value(), is.contains("rope_full") || is.contains("rotary_dim"));
    if (is.contains("rope_full")) expect_rope(a.rope, is["rope_full"], rotated);
    if (is.contains("rope_window")) expect_rope(a.window_rope, is["rope_window"], rotated);
    if (is.contains("rotary_dim")) EXPECT_EQ(a.rope->dims, is["rotary_dim"]);
    EXPECT_EQ(model.experts.count > 0, is.contains("experts"));
    if (is.contains("experts")) expect_experts(model.experts, is["experts"]);
    if (is.contains("latent")) expect_latent(model, is["latent"]);
  }
  for (const std::string& family : supported_model_types())
    EXPECT_NE(std::ranges::find(seen, family), seen.end()) << family << " has no row";
}

TEST(Defaults, ANullIsNotAnAbsentMember) {
  EXPECT_EQ(read_with(kLlama, R"({"model_type":"mistral","max_position_embeddings":8192})").attention.window, 4096);
  Json mistral = Json::parse(kLlama);
  mistral["model_type"] = "mistral", mistral["sliding_window"] = nullptr, mistral["num_key_value_heads"] = nullptr;
  const AttentionConfig a = read_with(mistral.dump().c_str(), "{}").attention;
  EXPECT_EQ(a.window, 0);
  EXPECT_EQ(a.kv_heads, 6);
  Json gemma2 = Json::parse(kLlama);
  gemma2["model_type"] = "gemma2", gemma2["final_logit_softcapping"] = nullptr;
  EXPECT_EQ(read_with(gemma2.dump().c_str(), "{}").final_soft_cap, 0);
  Json gpt_oss = Json::parse(kLlama);
  gpt_oss["model_type"] = "gpt_oss", gpt_oss["rope_scaling"] = {{"rope_type", "default"}};
  EXPECT_EQ(read_with(gpt_oss.dump().c_str(), "{}").attention.rope->scaling, RopeScaling{});
}

// Transformers takes the first Gemma's "gelu" for its approximation, and no other one's.
TEST(Defaults, ActivationsOfGemma) {
  auto activation = [](const char* changes) { return read_with(kLlama, changes).mlp.activation; };
  EXPECT_EQ(activation(R"({"model_type":"gemma","hidden_act":"gelu"})"), Activation::gelu_tanh);
  EXPECT_EQ(activation(R"({"model_type":"gemma","hidden_act":"silu"})"), Activation::silu);
  EXPECT_EQ(activation(R"({"model_type":"gemma2","hidden_activation":"gelu"})"), Activation::gelu_erf);
  EXPECT_EQ(activation(R"({"model_type":"gemma2","hidden_act":"silu"})"), Activation::gelu_tanh);
}

}  // namespace
}  // namespace sator
