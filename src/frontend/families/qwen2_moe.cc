// Qwen1.5-MoE and Qwen2-MoE: Qwen2 with experts in all or some layers, and an MLP that every token takes behind a gate.
#include <algorithm>

#include "frontend/families/table.h"

namespace sator::families {

static const LlamaDefaults kQwen2MoeDefaults = {.positions = 32768,
                                                .kv_heads = 16,
                                                .attention_bias = {},
                                                .window = {.use = WindowRules::Use::if_used, .positions = 4096}};

static void read_qwen2_moe(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, kQwen2MoeDefaults);
  if (model.attention.window > 0 && !config.find("layer_types")) {
    // Every second layer, the first one first, below max_window_layers.
    const int64_t below = config.integer_or("max_window_layers", 28, 0, kMaxLayers);
    std::vector<int64_t>& with = model.attention.window_layers;
    with.clear();
    for (int64_t layer = 0; layer < std::min(below, model.layers); layer += 2) with.push_back(layer);
    if (with.empty()) model.attention.window = 0;
  }
  model.attention.qkv_bias = config.boolean_or("qkv_bias", true);
  read_qwen_experts(config, model, {.count = 60, .per_token = 4});
  name_experts(model, "mlp", "gate_proj", "up_proj", "down_proj");
  model.experts.shared_units = read_size(config, {"shared_expert_intermediate_size"});
  model.experts.shared_gate = true;
  model.names.shared_in = {"mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj"};
  model.names.shared_in_layer = "mlp.shared_expert.gate_up_proj";
  model.names.shared_out = "mlp.shared_expert.down_proj";
  model.names.shared_gate = "mlp.shared_expert_gate";
}

const Family kQwen2Moe{"qwen2_moe", read_qwen2_moe};

}  // namespace sator::families
