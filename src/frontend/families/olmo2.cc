// OLMo 2: norms of the results of each half, not of what goes in; RMSNorm of all queries and of all keys as rows.
#include "frontend/families/table.h"

namespace sator::families {

static void read_olmo2(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, {.norm = {.epsilon = 1e-5}});
  model.names.attention_norm = model.names.mlp_norm = "";
  model.names.attention_post_norm = "post_attention_layernorm";
  model.names.mlp_post_norm = "post_feedforward_layernorm";
  model.attention.qk_norm = AttentionConfig::QkNorm::row;
  model.names.q_norm = "self_attn.q_norm";
  model.names.k_norm = "self_attn.k_norm";
}

const Family kOlmo2{"olmo2", read_olmo2};

}  // namespace sator::families
