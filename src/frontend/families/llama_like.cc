// What Llama's relatives share: rotary embedding, RMSNorm, grouped key/value heads, gated MLP, and the tensors' names.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "frontend/families/keys.h"

namespace sator::families {

void read_attention(const JsonAt& config, ModelConfig& model, const LlamaDefaults& defaults) {
  AttentionConfig& a = model.attention;
  a.heads = read_size(config, {"num_attention_heads"});
  // A null stands for as many as of queries, whatever the family's own number is.
  const bool has_own_kv_heads = defaults.kv_heads > 0 && !config.has("num_key_value_heads");
  a.kv_heads = config.integer_or("num_key_value_heads", has_own_kv_heads ? defaults.kv_heads : a.heads, 1, kMaxDim);
  if (has_own_kv_heads && a.heads % a.kv_heads != 0)
    config.fail(text("has no num_key_value_heads, and ",
                     model.model_type,
                     "'s own ",
                     a.kv_heads,
                     " do not divide ",
                     a.heads,
                     " heads"),
                "num_key_value_heads, a divisor of num_attention_heads");
  must_divide(config, "num_key_value_heads", a.kv_heads, "num_attention_heads", a.heads);
  if (auto head_dim = config.find("head_dim")) {
    a.head_dim = head_dim->integer(1, kMaxDim);
  } else if (defaults.head_dim > 0 && !config.has("head_dim")) {
    a.head_dim = defaults.head_dim;
  } else {
    must_divide(config, "num_attention_heads", a.heads, "hidden_size", model.hidden_size);
    a.head_dim = model.hidden_size / a.heads;
  }
  if (a.heads * a.head_dim > kMaxDim)
    config.fail(text("has ", a.heads, " heads of ", a.head_dim), text("heads * head_dim <= ", kMaxDim));
  a.scale = 1 / std::sqrt(static_cast<double>(a.head_dim));
}

namespace {

/// The layers that `layer_types` gives a window.
std::vector<int64_t> read_layer_types(const JsonAt& types, const ModelConfig& model, bool has_window) {
  std::vector<int64_t> with;
  int64_t layer = 0;
  types.each([&](const JsonAt& type) {
    const bool slides = type.string() == "sliding_attention";
    if (!slides && type.string() != "full_attention")
      type.fail(text("is ", string_literal(type.string()), ", which is not supported"),
                "full_attention or sliding_attention");
    if (slides && !has_window) type.fail("has a sliding window of no size", "sliding_window, or full_attention");
    if (slides) with.push_back(layer);
    ++layer;
  });
  if (layer != model.layers)
    types.fail(text("has ", layer, " entries"), text("one for each of the ", model.layers, " layers"));
  return with;
}

/// The positions of a token's window; 0: it sees all.
int64_t window_positions(const JsonAt& config, const ModelConfig& model, const WindowRules& rules) {
  using Use = WindowRules::Use;
  const auto used = config.find("use_sliding_window");
  const auto given = config.find("sliding_window");
  const bool off = used && !used->boolean();
  if (rules.use == Use::never) config.find("max_window_layers");  // of windows that there are none of
  if (rules.use == Use::if_used && (!used || off)) return 0;
  const int64_t otherwise = config.has("sliding_window") ? 0 : rules.positions;
  const int64_t positions = given ? given->integer(rules.use == Use::never ? 0 : 1, kMaxPositions) : otherwise;
  if (positions == 0 || positions >= model.max_positions) return positions;
  if (rules.use == Use::never) {
    if (off) return 0;
    given->fail(text("asks for attention in a sliding window, which ", model.model_type, " has not"),
                "sliding_window: null");
  }
  if (off)
    used->fail(text("is false, which ", model.model_type, " does not heed: it has a window of ", positions),
               "use_sliding_window: true, or sliding_window: null",
               "say sliding_window: null if the model was trained without");
  return positions;
}

}  // namespace

void read_window(const JsonAt& config, ModelConfig& model, const WindowRules& rules) {
  const int64_t positions = window_positions(config, model, rules);
  int64_t period = rules.full_every;
  if (rules.any_period) period = config.integer_or("sliding_window_pattern", period, 1, kMaxLayers);
  if (rules.full_every > 0 && !rules.any_period) must_be(config, "sliding_window_pattern", period);
  const int64_t from = rules.use == WindowRules::Use::if_used ? config.integer_or("max_window_layers", 28, 0) : 0;
  std::vector<int64_t> with;
  if (auto types = config.find("layer_types")) {
    with = read_layer_types(*types, model, positions > 0);
  } else {
    for (int64_t layer = rules.from_layer ? from : 0; layer < model.layers; ++layer)
      if (period == 0 || (layer + 1) % period != 0) with.push_back(layer);
  }
  if (positions == 0 || with.empty()) return;
  if (rules.use == WindowRules::Use::never) return;  // as long as all positions
  model.attention.window = positions;
  if (std::ssize(with) < model.layers) model.attention.window_layers = std::move(with);
}

void read_llama_blocks(const JsonAt& config, ModelConfig& model, const LlamaDefaults& defaults) {
  model.hidden_size = read_size(config, {"hidden_size"});
  model.layers = read_size(config, {"num_hidden_layers"}, kMaxLayers);
  model.max_positions = config.integer_or("max_position_embeddings", defaults.positions, 1, kMaxPositions);
  model.tie_word_embeddings = config.boolean_or("tie_word_embeddings", defaults.tied);
  model.norm = defaults.norm;
  model.norm.epsilon = positive_or(config, defaults.epsilon_key, defaults.norm.epsilon);
  if (defaults.attention_bias)
    model.attention.qkv_bias = model.attention.out_bias = config.boolean_or("attention_bias", *defaults.attention_bias);
  model.mlp = defaults.mlp;
  model.mlp.units = read_size(config, {"intermediate_size"});
  if (auto name = config.find(defaults.activation_key)) model.mlp.activation = read_activation(*name);
  if (defaults.any_mlp_bias) model.mlp.in_bias = model.mlp.out_bias = config.boolean_or("mlp_bias", false);
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

void read_llama_like(const JsonAt& config, ModelConfig& model, const LlamaDefaults& defaults) {
  read_llama_blocks(config, model, defaults);
  read_attention(config, model, defaults);
  read_rope(config, model, defaults.rope);
  read_window(config, model, defaults.window);
}

}  // namespace sator::families
