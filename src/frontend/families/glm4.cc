// GLM-4 (0414): Llama with norms around both halves, half of each head rotated by neighbouring pairs, one tensor for gate and up.
#include "frontend/families/table.h"

namespace sator::families {

static const LlamaDefaults kGlm4Defaults = {.norm = {.epsilon = 1.5625e-7},
                                            .positions = 131072,
                                            .kv_heads = 2,
                                            .head_dim = 128,
                                            .attention_bias = true,
                                            .rope = {.share = 0.5, .any_share = true}};

static void read_glm4(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, kGlm4Defaults);
  model.attention.rope->interleaved = true;
  model.attention.out_bias = false;
  model.names.attention_post_norm = "post_self_attn_layernorm";
  model.names.mlp_post_norm = "post_mlp_layernorm";
  model.names.mlp_in = {"mlp.gate_up_proj"};
}

const Family kGlm4{"glm4", read_glm4};

}  // namespace sator::families
