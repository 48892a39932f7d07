// What Command-R's generations share.
#include "frontend/families/keys.h"

namespace sator::families {

LlamaDefaults cohere_defaults() {
  return {.norm = {.kind = NormConfig::Kind::layer, .epsilon = 1e-5},
          .epsilon_key = "layer_norm_eps",
          .tied = true,
          .positions = 8192};
}

void read_cohere_like(const JsonAt& config, ModelConfig& model, const LlamaDefaults& defaults) {
  read_llama_like(config, model, defaults);
  model.attention.rope->interleaved = true;
  model.logit_scale = positive_or(config, "logit_scale", 0.0625);
  model.parallel = true;
  model.names.mlp_norm = "";
}

}  // namespace sator::families
