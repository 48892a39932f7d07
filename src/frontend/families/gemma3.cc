// Gemma 3: Gemma 2 with RMSNorm of each head of queries and keys, another rotary base in the layers with a window, five of
// six, and no capped scores.
#include "frontend/families/table.h"

namespace sator::families {

static void read_gemma3(const JsonAt& config, ModelConfig& model) {
  read_gemma_with_norms_around(config, model, {.theta = 1e6, .window_theta = 1e4});
  slide_all_but_every(6, config, model);
  model.attention.qk_norm = AttentionConfig::QkNorm::head;
  model.names.q_norm = "self_attn.q_norm";
  model.names.k_norm = "self_attn.k_norm";
  refuse_foreign(config, {"query_pre_attn_scalar", "final_logit_softcapping", "rope_local_base_freq"});
}

const Family kGemma3{"gemma3_text", read_gemma3};

}  // namespace sator::families
