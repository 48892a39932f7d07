// Qwen3-MoE: Qwen3 with experts in all or some layers.
#include "frontend/families/table.h"

namespace sator::families {

static const LlamaDefaults kQwen3MoeDefaults = {
    .positions = 32768, .kv_heads = 4, .window = {.use = WindowRules::Use::if_used, .positions = 4096}};

static void read_qwen3_moe(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, kQwen3MoeDefaults);
  model.attention.qk_norm = AttentionConfig::QkNorm::head;
  model.names.q_norm = "self_attn.q_norm";
  model.names.k_norm = "self_attn.k_norm";
  read_qwen_experts(config, model, {.count = 128, .per_token = 8});
  name_experts(model, "mlp", "gate_proj", "up_proj", "down_proj");
}

const Family kQwen3Moe{"qwen3_moe", read_qwen3_moe};

}  // namespace sator::families
