// GPT-NeoX and Pythia: LayerNorm, queries, keys and values of each head beside each other in one tensor, a part of each head
// rotated, parallel halves behind norms of their own.
#include "frontend/families/table.h"

namespace sator::families {

static const LlamaDefaults kGptNeoxDefaults = {
    .norm = {.kind = NormConfig::Kind::layer, .epsilon = 1e-5, .bias = true},
    .epsilon_key = "layer_norm_eps",
    .mlp = {.activation = Activation::gelu_erf, .gated = false, .in_bias = true, .out_bias = true},
    .attention_bias = true,
    .rope = {.share = 0.25, .any_share = true, .theta_key = "rotary_emb_base", .share_key = "rotary_pct"}};

static void read_gpt_neox(const JsonAt& config, ModelConfig& model) {
  read_llama_blocks(config, model, kGptNeoxDefaults);
  read_equal_heads(config, model, {"num_attention_heads"}, "hidden_size");
  read_rope(config, model, kGptNeoxDefaults.rope);
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
}

const Family kGptNeox{"gpt_neox", read_gpt_neox};

}  // namespace sator::families
