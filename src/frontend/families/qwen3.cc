// Qwen3: Llama with RMSNorm of each head of queries and keys.
#include <cmath>

#include "frontend/families/table.h"

namespace sator::families {

static void read_qwen3(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model);
  no_window_unless_used(config, model);
  model.attention.qk_norm = AttentionConfig::QkNorm::head;
  model.names.q_norm = "self_attn.q_norm";
  model.names.k_norm = "self_attn.k_norm";
  refuse_foreign(config);
}

const Family kQwen3{"qwen3", read_qwen3};

}  // namespace sator::families
