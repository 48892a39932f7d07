// Gemma: Llama with norms of 1 + w, embeddings times sqrt(width), a tied head.
#include "frontend/families/table.h"

namespace sator::families {

static void read_gemma(const JsonAt& config, ModelConfig& model) {
  LlamaDefaults defaults = gemma_defaults();
  defaults.kv_heads = 16;
  defaults.activation_key = "hidden_act";
  read_gemma_like(config, model, defaults);
  // The first files say "gelu" and mean its approximation.
  if (model.mlp.activation == Activation::gelu_erf) model.mlp.activation = Activation::gelu_tanh;
}

const Family kGemma{"gemma", read_gemma};

}  // namespace sator::families
