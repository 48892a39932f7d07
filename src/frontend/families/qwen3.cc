// Qwen3: Llama with RMSNorm of each head of queries and keys.
#include "frontend/families/table.h"

namespace sator::families {

static const LlamaDefaults kQwen3Defaults = {
    .positions = 32768,
    .kv_heads = 32,
    .head_dim = 128,
    .window = {.use = WindowRules::Use::if_used, .positions = 4096, .from_layer = true}};

static void read_qwen3(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, kQwen3Defaults);
  model.attention.qk_norm = AttentionConfig::QkNorm::head;
  model.names.q_norm = "self_attn.q_norm";
  model.names.k_norm = "self_attn.k_norm";
}

const Family kQwen3{"qwen3", read_qwen3};

}  // namespace sator::families
