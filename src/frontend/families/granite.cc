// Granite 3: Llama with four multipliers: of embeddings, scores, both halves and (as a divisor) logits.
#include "frontend/families/table.h"

namespace sator::families {

static void read_granite(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, {.any_mlp_bias = true});
  model.embedding_scale = positive_or(config, "embedding_multiplier", 1);
  model.residual_scale = positive_or(config, "residual_multiplier", 1);
  model.attention.scale = positive_or(config, "attention_multiplier", 1);
  model.logit_scale = 1 / positive_or(config, "logits_scaling", 1);
}

const Family kGranite{"granite", read_granite};

}  // namespace sator::families
