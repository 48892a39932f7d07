// What the Gemmas share.
#include <cmath>

#include "base/float16.h"
#include "frontend/families/keys.h"

namespace sator::families {

LlamaDefaults gemma_defaults() {
  return {.norm = {.weight_offset = 1},
          .mlp = {.activation = Activation::gelu_tanh},
          .activation_key = "hidden_activation",
          .tied = true,
          .positions = 8192,
          .kv_heads = 4,
          .head_dim = 256};
}

void read_gemma_like(const JsonAt& config, ModelConfig& model, const LlamaDefaults& defaults) {
  read_llama_like(config, model, defaults);
  // The factor is rounded to the dtype that the model was trained in: 55.5 for a width of 3072 in bfloat16.
  const double root = std::sqrt(static_cast<double>(model.hidden_size));
  const auto narrow = static_cast<float>(root);
  model.embedding_scale = model.dtype == bf16  ? bf16_to_f32(f32_to_bf16(narrow))
                          : model.dtype == f16 ? f16_to_f32(f32_to_f16(narrow))
                                               : root;
}

/// A cap of logits: none where the file says null.
static double read_cap(const JsonAt& config, std::string_view name, double otherwise) {
  return positive_or(config, name, config.has(name) ? 0 : otherwise);
}

void read_gemma_with_norms_around(const JsonAt& config, ModelConfig& model, const LlamaDefaults& defaults,
                                  double attention_cap, double logit_cap) {
  read_gemma_like(config, model, defaults);
  config.find("hidden_act");  // of no effect beside hidden_activation
  model.names.attention_post_norm = "post_attention_layernorm";
  model.names.mlp_norm = "pre_feedforward_layernorm";
  model.names.mlp_post_norm = "post_feedforward_layernorm";
  model.attention.scale = 1 / std::sqrt(positive_or(config, "query_pre_attn_scalar", 256));
  model.attention.soft_cap = read_cap(config, "attn_logit_softcapping", attention_cap);
  model.final_soft_cap = read_cap(config, "final_logit_softcapping", logit_cap);
}

}  // namespace sator::families
