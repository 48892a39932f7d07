// Qwen2 and 2.5: Llama with biases on queries, keys and values alone.
#include "frontend/families/table.h"

namespace sator::families {

static const LlamaDefaults kQwen2Defaults = {
    .positions = 32768,
    .kv_heads = 32,
    .attention_bias = {},
    .window = {.use = WindowRules::Use::if_used, .positions = 4096, .from_layer = true}};

static void read_qwen2(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, kQwen2Defaults);
  model.attention.qkv_bias = true;
}

const Family kQwen2{"qwen2", read_qwen2};

}  // namespace sator::families
