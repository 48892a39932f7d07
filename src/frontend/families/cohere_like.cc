// What Command-R's generations share.
#include "frontend/families/keys.h"

namespace sator::families {

void read_cohere_like(const JsonAt& config, ModelConfig& model, const RopeRules& rope) {
  read_llama_like(config, model, rope);
  model.attention.rope->interleaved = true;
  model.norm = {.kind = NormConfig::Kind::layer, .epsilon = positive_or(config, "layer_norm_eps", 1e-5)};
  model.tie_word_embeddings = config.boolean_or("tie_word_embeddings", true);
  model.logit_scale = positive_or(config, "logit_scale", 0.0625);
  model.parallel = true;
  model.names.mlp_norm = "";
}

}  // namespace sator::families
