// GPT-NeoX and Pythia: LayerNorm, queries, keys and values of each head beside each other in one tensor, a part of each head
// rotated, parallel halves behind norms of their own.
#include "frontend/families/table.h"

namespace sator::families {

static void read_gpt_neox(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, {.share = 0.25, .any_share = true});
  const bool bias = config.boolean_or("attention_bias", true);
  model.attention.qkv_bias = model.attention.out_bias = bias;
  model.mlp.gated = false;
  model.mlp.in_bias = model.mlp.out_bias = true;
  if (!config.find("hidden_act")) model.mlp.activation = Activation::gelu_erf;
  model.norm = {.kind = NormConfig::Kind::layer, .epsilon = positive_or(config, "layer_norm_eps", 1e-5), .bias = true};
  model.parallel = config.boolean_or("use_parallel_residual", true);
  model.names = {.embedding = "gpt_neox.embed_in",
                 .final_norm = "gpt_neox.final_layer_norm",
                 .head = "embed_out",
                 .block = "gpt_neox.layers.",
                 .attention_norm = "input_layernorm",
                 .mlp_norm = "post_attention_layernorm",
                 .qkv = {"attention.query_key_value"},
                 .mlp_in = {"mlp.dense_h_to_4h"},
                 .qkv_by_group = true,
                 .out = "attention.dense",
                 .mlp_out = "mlp.dense_4h_to_h",
                 .qkv_layer = "attention.query_key_value",
                 .attention_layer = "attention",
                 .mlp_in_layer = "mlp.dense_h_to_4h",
                 .activation_layer = "mlp.dense_h_to_4h"};
  refuse_foreign(config, {"use_parallel_residual"});
}

const Family kGptNeox{"gpt_neox", read_gpt_neox};

}  // namespace sator::families
