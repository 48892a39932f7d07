// Mistral: Llama, its first versions with a sliding window in every layer.
#include "frontend/families/table.h"

namespace sator::families {

static const LlamaDefaults kMistralDefaults = {.positions = 131072,
                                               .kv_heads = 8,
                                               .attention_bias = {},
                                               .window = {.use = WindowRules::Use::where_given, .positions = 4096}};

static void read_mistral(const JsonAt& config, ModelConfig& model) { read_llama_like(config, model, kMistralDefaults); }

const Family kMistral{"mistral", read_mistral};

}  // namespace sator::families
