// Qwen3-MoE: Qwen3 with experts in all or some layers.
#include "frontend/families/table.h"

namespace sator::families {

static void read_qwen3_moe(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model);
  no_window_unless_used(config, model);
  if (!config.find("layer_types"))
    model.attention.window_layers.clear();  // all layers, whatever max_window_layers says
  model.attention.qk_norm = AttentionConfig::QkNorm::head;
  model.names.q_norm = "self_attn.q_norm";
  model.names.k_norm = "self_attn.k_norm";
  read_experts(config, model);
  name_experts(model, "mlp", "gate_proj", "up_proj", "down_proj");
  refuse_foreign(config, kExpertKeys);
}

const Family kQwen3Moe{"qwen3_moe", read_qwen3_moe};

}  // namespace sator::families
