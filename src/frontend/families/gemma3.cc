// Gemma 3: Gemma 2 with RMSNorm of each head of queries and keys, another rotary base in the layers with a window, five of
// six, and no capped scores.
#include "frontend/families/table.h"

namespace sator::families {

static void read_gemma3(const JsonAt& config, ModelConfig& model) {
  LlamaDefaults defaults = gemma_defaults();
  defaults.positions = 131072;
  defaults.rope = {.theta = 1e6, .window_theta = 1e4};
  defaults.window = {.use = WindowRules::Use::where_given, .positions = 4096, .full_every = 6, .any_period = true};
  read_gemma_with_norms_around(config, model, defaults, 0, 0);
  model.attention.soft_cap = 0;  // Transformers 5.24 reads attn_logit_softcapping and gives it to no attention
  model.attention.qk_norm = AttentionConfig::QkNorm::head;
  model.names.q_norm = "self_attn.q_norm";
  model.names.k_norm = "self_attn.k_norm";
}

const Family kGemma3{"gemma3_text", read_gemma3};

}  // namespace sator::families
