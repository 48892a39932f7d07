// What Llama's relatives share: rotary embedding, RMSNorm, grouped key/value heads, gated MLP, and the tensors' names.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "frontend/families/keys.h"

namespace sator::families {

void read_attention(const JsonAt& config, ModelConfig& model) {
  AttentionConfig& a = model.attention;
  a.heads = read_size(config, {"num_attention_heads"});
  a.kv_heads = config.integer_or("num_key_value_heads", a.heads, 1, kMaxDim);
  must_divide(config, "num_key_value_heads", a.kv_heads, "num_attention_heads", a.heads);
  if (auto head_dim = config.find("head_dim")) {
    a.head_dim = head_dim->integer(1, kMaxDim);
  } else {
    must_divide(config, "num_attention_heads", a.heads, "hidden_size", model.hidden_size);
    a.head_dim = model.hidden_size / a.heads;
  }
  if (a.heads * a.head_dim > kMaxDim)
    config.fail(text("has ", a.heads, " heads of ", a.head_dim), text("heads * head_dim <= ", kMaxDim));
  a.scale = 1 / std::sqrt(static_cast<double>(a.head_dim));
}

void read_window(const JsonAt& config, ModelConfig& model) {
  auto window = config.find("sliding_window");
  if (!config.boolean_or("use_sliding_window", true)) window.reset();
  std::vector<int64_t> with;  // the layers that have it
  auto have = [&](auto&& slides) {
    for (int64_t layer = 0; layer < model.layers; ++layer)
      if (slides(layer)) with.push_back(layer);
  };
  if (auto types = config.find("layer_types")) {
    int64_t layer = 0;
    types->each([&](const JsonAt& type) {
      const bool slides = type.string() == "sliding_attention";
      if (!slides && type.string() != "full_attention")
        type.fail(text("is ", string_literal(type.string()), ", which is not supported"),
                  "full_attention or sliding_attention");
      if (slides && !window) type.fail("has a sliding window of no size", "sliding_window, or full_attention");
      if (slides) with.push_back(layer);
      ++layer;
    });
    if (layer != model.layers)
      types->fail(text("has ", layer, " entries"), text("one for each of the ", model.layers, " layers"));
  } else if (auto from = config.find("max_window_layers"); from && config.find("use_sliding_window")) {
    have([&](int64_t layer) { return layer >= from->integer(0); });  // Qwen
  } else if (auto every = config.find("sliding_window_pattern")) {
    have([&](int64_t layer) { return (layer + 1) % every->integer(1) != 0; });
  } else {
    have([](int64_t) { return true; });
  }
  if (!window || with.empty()) return;
  model.attention.window = window->integer(1, kMaxPositions);
  if (std::ssize(with) < model.layers) model.attention.window_layers = std::move(with);
}

void slide_all_but_every(int64_t period, const JsonAt& config, ModelConfig& model) {
  AttentionConfig& a = model.attention;
  if (a.window == 0 || config.find("layer_types") || config.find("sliding_window_pattern")) return;
  a.window_layers.clear();
  for (int64_t layer = 0; layer < model.layers; ++layer)
    if ((layer + 1) % period != 0) a.window_layers.push_back(layer);
}

void no_window_unless_used(const JsonAt& config, ModelConfig& model) {
  if (config.boolean_or("use_sliding_window", false)) return;
  model.attention.window = 0;
  model.attention.window_layers.clear();
}

void read_llama_blocks(const JsonAt& config, ModelConfig& model) {
  model.hidden_size = read_size(config, {"hidden_size"});
  model.layers = read_size(config, {"num_hidden_layers"}, kMaxLayers);
  model.max_positions = config.integer_or("max_position_embeddings", 2048, 1, kMaxPositions);
  model.tie_word_embeddings = config.boolean_or("tie_word_embeddings", false);
  model.norm = {.kind = NormConfig::Kind::rms, .epsilon = positive_or(config, "rms_norm_eps", 1e-6)};
  model.attention.qkv_bias = model.attention.out_bias = config.boolean_or("attention_bias", false);
  model.mlp.units = read_size(config, {"intermediate_size"});
  for (const char* key : {"hidden_act", "hidden_activation"})
    if (auto name = config.find(key)) model.mlp.activation = read_activation(*name);
  model.mlp.in_bias = model.mlp.out_bias = config.boolean_or("mlp_bias", false);
  model.names = {.embedding = "model.embed_tokens",
                 .final_norm = "model.norm",
                 .head = "lm_head",
                 .block = "model.layers.",
                 .attention_norm = "input_layernorm",
                 .mlp_norm = "post_attention_layernorm",
                 .qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
                 .mlp_in = {"mlp.gate_proj", "mlp.up_proj"},
                 .out = "self_attn.o_proj",
                 .mlp_out = "mlp.down_proj",
                 .qkv_layer = "self_attn.qkv_proj",
                 .attention_layer = "self_attn",
                 .mlp_in_layer = "mlp.gate_up_proj",
                 .activation_layer = "mlp.act"};
}

void read_llama_like(const JsonAt& config, ModelConfig& model, const RopeRules& rope) {
  read_llama_blocks(config, model);
  read_attention(config, model);
  read_rope(config, model, rope);
  read_window(config, model);
}

}  // namespace sator::families
