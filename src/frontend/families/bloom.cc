// BLOOM: linear biases instead of positions, LayerNorm of the embeddings too, queries, keys and values of each head beside each
// other in one tensor.
#include "frontend/families/table.h"

namespace sator::families {

static void read_bloom(const JsonAt& config, ModelConfig& model) {
  model.hidden_size = read_size(config, {"hidden_size", "n_embed"});
  model.layers = read_size(config, {"n_layer", "num_hidden_layers"}, kMaxLayers);
  // Linear biases end nowhere; seq_length is what the model was trained on.
  model.max_positions = config.integer_or("seq_length", 2048, 1, kMaxPositions);
  model.tie_word_embeddings = config.boolean_or("tie_word_embeddings", true);
  read_equal_heads(config, model, {"n_head", "num_attention_heads"}, "hidden_size");
  AttentionConfig& a = model.attention;
  a.qkv_bias = a.out_bias = true;
  a.alibi.emplace();
  model.mlp = {.units = 4 * model.hidden_size,
               .activation = Activation::gelu_tanh,
               .gated = false,
               .in_bias = true,
               .out_bias = true};
  model.norm = {
      .kind = NormConfig::Kind::layer, .epsilon = positive_or(config, "layer_norm_epsilon", 1e-5), .bias = true};
  must_be(config, "apply_residual_connection_post_layernorm", false);
  name_bloom_like(model);
  model.names.embedding_norm = "transformer.word_embeddings_layernorm";
  model.names.attention_norm = "input_layernorm";
  model.names.mlp_norm = "post_attention_layernorm";
}

const Family kBloom{"bloom", read_bloom};

}  // namespace sator::families
