// Qwen2 and 2.5: Llama with biases on queries, keys and values alone.
#include <cmath>

#include "frontend/families/table.h"

namespace sator::families {

static void read_qwen2(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model);
  no_window_unless_used(config, model);
  model.attention.qkv_bias = true;
  model.attention.out_bias = false;
  refuse_foreign(config);
}

const Family kQwen2{"qwen2", read_qwen2};

}  // namespace sator::families
