// StableLM 2: LayerNorm, a quarter of each head rotated, biases on queries, keys and values if asked.
#include <cmath>

#include "frontend/families/table.h"

namespace sator::families {

static void read_stablelm(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, {.share = 0.25, .any_share = true});
  const bool bias = config.boolean_or("use_qkv_bias", false);
  model.attention.qkv_bias = bias;
  model.attention.out_bias = false;
  model.norm = {.kind = NormConfig::Kind::layer, .epsilon = positive_or(config, "layer_norm_eps", 1e-5), .bias = true};
  model.parallel = config.boolean_or("use_parallel_residual", false);
  if (model.parallel) model.names.mlp_norm = "";
  refuse_foreign(config, {"use_parallel_residual"});
}

const Family kStablelm{"stablelm", read_stablelm};

}  // namespace sator::families
