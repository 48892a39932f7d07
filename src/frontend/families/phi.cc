// Phi 1, 1.5 and 2: parallel halves behind one LayerNorm, a part of each head rotated, biases everywhere, the head's too.
#include "frontend/families/table.h"

namespace sator::families {

static const LlamaDefaults kPhiDefaults = {
    .norm = {.kind = NormConfig::Kind::layer, .epsilon = 1e-5, .bias = true},
    .epsilon_key = "layer_norm_eps",
    .mlp = {.activation = Activation::gelu_tanh, .gated = false, .in_bias = true, .out_bias = true},
    .attention_bias = {},
    .rope = {.share = 0.5, .any_share = true}};

static void read_phi(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, kPhiDefaults);
  model.attention.qkv_bias = model.attention.out_bias = true;
  if (config.boolean_or("qk_layernorm", false)) {
    model.attention.qk_norm = AttentionConfig::QkNorm::shared_layer;
    model.names.q_norm = "self_attn.q_layernorm";
    model.names.k_norm = "self_attn.k_layernorm";
  }
  model.parallel = true;
  model.head_bias = true;
  model.names.final_norm = "model.final_layernorm";
  model.names.mlp_norm = "";
  model.names.out = "self_attn.dense";
  model.names.mlp_in = {"mlp.fc1"};
  model.names.mlp_out = "mlp.fc2";
  model.names.mlp_in_layer = model.names.activation_layer = "mlp.fc1";
}

const Family kPhi{"phi", read_phi};

}  // namespace sator::families
