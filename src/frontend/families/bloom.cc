// BLOOM: linear biases instead of positions, LayerNorm of the embeddings too, queries, keys and values of each head beside each
// other in one tensor.
#include <cmath>

#include "frontend/families/table.h"

namespace sator::families {

static void read_bloom(const JsonAt& config, ModelConfig& model) {
  model.hidden_size = read_size(config, {"hidden_size", "n_embed"});
  model.layers = read_size(config, {"n_layer", "num_hidden_layers"}, kMaxLayers);
  // Linear biases end nowhere; seq_length is what the model was trained on.
  model.max_positions = config.integer_or("seq_length", 2048, 1, kMaxPositions);
  model.tie_word_embeddings = config.boolean_or("tie_word_embeddings", true);
  AttentionConfig& a = model.attention;
  a.heads = a.kv_heads = read_size(config, {"n_head", "num_attention_heads"});
  must_divide(config, "n_head", a.heads, "hidden_size", model.hidden_size);
  a.head_dim = model.hidden_size / a.heads;
  a.scale = 1 / std::sqrt(static_cast<double>(a.head_dim));
  a.qkv_bias = a.out_bias = true;
  a.alibi.emplace();
  model.mlp = {.units = 4 * model.hidden_size,
               .activation = Activation::gelu_tanh,
               .gated = false,
               .in_bias = true,
               .out_bias = true};
  model.norm = {
      .kind = NormConfig::Kind::layer, .epsilon = positive_or(config, "layer_norm_epsilon", 1e-5), .bias = true};
  refuse_foreign(config);
  model.names = {.embedding = "transformer.word_embeddings",
                 .embedding_norm = "transformer.word_embeddings_layernorm",
                 .final_norm = "transformer.ln_f",
                 .head = "lm_head",
                 .block = "transformer.h.",
                 .attention_norm = "input_layernorm",
                 .mlp_norm = "post_attention_layernorm",
                 .qkv = {"self_attention.query_key_value"},
                 .mlp_in = {"mlp.dense_h_to_4h"},
                 .qkv_by_group = true,
                 .out = "self_attention.dense",
                 .mlp_out = "mlp.dense_4h_to_h",
                 .qkv_layer = "self_attention.query_key_value",
                 .attention_layer = "self_attention",
                 .mlp_in_layer = "mlp.dense_h_to_4h",
                 .activation_layer = "mlp.dense_h_to_4h"};
}

const Family kBloom{"bloom", read_bloom};

}  // namespace sator::families
