// Llama: rotary positions, RMSNorm, grouped key/value heads, gated MLP.
#include "frontend/families/table.h"

namespace sator::families {

static void read_llama(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, {.any_mlp_bias = true});
}

const Family kLlama{"llama", read_llama};

}  // namespace sator::families
