// Gemma 2: Gemma with norms around each half, capped scores and logits, and a window in every other layer.
#include <cmath>

#include "frontend/families/table.h"

namespace sator::families {

static void read_gemma2(const JsonAt& config, ModelConfig& model) {
  read_gemma_like(config, model);
  if (!config.find("layer_types") && model.attention.window > 0) {
    model.attention.window_layers.clear();
    for (int64_t layer = 0; layer < model.layers; layer += 2) model.attention.window_layers.push_back(layer);
  }
  model.names.attention_post_norm = "post_attention_layernorm";
  model.names.mlp_norm = "pre_feedforward_layernorm";
  model.names.mlp_post_norm = "post_feedforward_layernorm";
  model.attention.scale = 1 / std::sqrt(positive_or(config, "query_pre_attn_scalar", 256));
  model.attention.soft_cap = positive_or(config, "attn_logit_softcapping", 0);
  model.final_soft_cap = positive_or(config, "final_logit_softcapping", 0);
  refuse_foreign(config, {"query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping"});
}

const Family kGemma2{"gemma2", read_gemma2};

}  // namespace sator::families
