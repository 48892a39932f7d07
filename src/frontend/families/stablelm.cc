// StableLM 2: LayerNorm, a quarter of each head rotated, biases on queries, keys and values if asked, and norms of their heads.
#include "frontend/families/table.h"

namespace sator::families {

static const LlamaDefaults kStablelmDefaults = {
    .norm = {.kind = NormConfig::Kind::layer, .epsilon = 1e-5, .bias = true},
    .epsilon_key = "layer_norm_eps",
    .positions = 4096,
    .kv_heads = 32,
    .attention_bias = {},
    .rope = {.share = 0.25, .any_share = true}};

static void read_stablelm(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, kStablelmDefaults);
  model.attention.qkv_bias = config.boolean_or("use_qkv_bias", false);
  if (config.boolean_or("qk_layernorm", false)) {
    model.attention.qk_norm = AttentionConfig::QkNorm::own_head;
    model.names.q_norm = "self_attn.q_layernorm.norms.*";
    model.names.k_norm = "self_attn.k_layernorm.norms.*";
  }
  model.parallel = config.boolean_or("use_parallel_residual", false);
  if (model.parallel) model.names.mlp_norm = "";
}

const Family kStablelm{"stablelm", read_stablelm};

}  // namespace sator::families
