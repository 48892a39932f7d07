// Mixtral: Mistral with experts in every layer, weighed among the chosen alone.
#include "frontend/families/table.h"

namespace sator::families {

static void read_mixtral(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, {.theta = 1e6});
  model.norm.epsilon = positive_or(config, "rms_norm_eps", 1e-5);
  read_experts(config, model);
  name_experts(model, "block_sparse_moe", "w1", "w3", "w2");
  model.experts.normalized = true;
  refuse_foreign(config, kExpertKeys);
}

const Family kMixtral{"mixtral", read_mixtral};

}  // namespace sator::families
