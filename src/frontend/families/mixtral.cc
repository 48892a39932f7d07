// Mixtral: Mistral with experts in every layer, weighed among the chosen alone.
#include "frontend/families/table.h"

namespace sator::families {

static const LlamaDefaults kMixtralDefaults = {.norm = {.epsilon = 1e-5},
                                               .positions = 131072,
                                               .kv_heads = 8,
                                               .attention_bias = {},
                                               .rope = {.theta = 1e6},
                                               .window = {.use = WindowRules::Use::where_given}};

static void read_mixtral(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, kMixtralDefaults);
  read_experts(config, model, {.count = 8, .per_token = 2}, "intermediate_size");
  name_experts(model, "block_sparse_moe", "w1", "w3", "w2");
  model.experts.normalized = true;
}

const Family kMixtral{"mixtral", read_mixtral};

}  // namespace sator::families
