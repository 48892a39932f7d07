// GLM-4 (0414): Llama with norms around both halves, half of each head rotated by neighbouring pairs, one tensor for gate and up.
#include "frontend/families/table.h"

namespace sator::families {

static void read_glm4(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, {.share = 0.5, .any_share = true});
  model.attention.rope->interleaved = true;
  model.attention.qkv_bias = config.boolean_or("attention_bias", true);
  model.attention.out_bias = false;
  if (!config.find("rms_norm_eps")) model.norm.epsilon = 1.5625e-7;
  model.names.attention_post_norm = "post_self_attn_layernorm";
  model.names.mlp_post_norm = "post_mlp_layernorm";
  model.names.mlp_in = {"mlp.gate_up_proj"};
  refuse_foreign(config);
}

const Family kGlm4{"glm4", read_glm4};

}  // namespace sator::families
