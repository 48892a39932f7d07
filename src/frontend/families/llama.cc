// Llama: rotary positions, RMSNorm, grouped key/value heads, gated MLP.
#include <cmath>

#include "frontend/families/table.h"

namespace sator::families {

static void read_llama(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model);
  if (model.attention.window > 0)
    config.at("sliding_window")
        .fail("asks for attention in a sliding window, which Llama has not", "sliding_window: null");
  refuse_foreign(config);
}

const Family kLlama{"llama", read_llama};

}  // namespace sator::families
