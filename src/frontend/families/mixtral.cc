// Mixtral: Mistral with experts in every layer, weighed among the chosen alone.
#include "frontend/families/table.h"

namespace sator::families {

static void read_mixtral(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model);
  read_experts(config, model);
  name_experts(model, "block_sparse_moe", "w1", "w3", "w2");
  model.experts.normalized = true;
  refuse_foreign(config, kExpertKeys);
}

const Family kMixtral{"mixtral", read_mixtral};

}  // namespace sator::families
