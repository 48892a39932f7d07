// StarCoder2: LayerNorm, biases everywhere, a plain MLP, rotary embedding, a sliding window.
#include <cmath>

#include "frontend/families/table.h"

namespace sator::families {

static void read_starcoder2(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model);
  const bool bias = config.boolean_or("use_bias", true);
  model.attention.qkv_bias = model.attention.out_bias = bias;
  model.mlp.gated = false;
  model.mlp.in_bias = model.mlp.out_bias = bias;
  if (!config.find("hidden_act")) model.mlp.activation = Activation::gelu_tanh;
  model.norm = {.kind = NormConfig::Kind::layer, .epsilon = positive_or(config, "norm_epsilon", 1e-5), .bias = true};
  model.tie_word_embeddings = config.boolean_or("tie_word_embeddings", true);
  model.names.mlp_in = {"mlp.c_fc"};
  model.names.mlp_out = "mlp.c_proj";
  model.names.mlp_in_layer = model.names.activation_layer = "mlp.c_fc";
  refuse_foreign(config);
}

const Family kStarcoder2{"starcoder2", read_starcoder2};

}  // namespace sator::families
