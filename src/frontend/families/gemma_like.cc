// What the Gemmas share.
#include <cmath>
#include <cstring>

#include "frontend/families/keys.h"

namespace sator::families {

/// The nearest number of 8 bits of precision, as bfloat16 has them: ties to even.
static float rounded_to_bf16(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

void read_gemma_like(const JsonAt& config, ModelConfig& model, const RopeRules& rope) {
  read_llama_like(config, model, rope);
  if (!config.find("hidden_activation")) model.mlp.activation = Activation::gelu_tanh;
  model.norm.weight_offset = 1;
  model.tie_word_embeddings = config.boolean_or("tie_word_embeddings", true);
  // The factor is rounded to the dtype that the model was trained in: 55.5 for a width of 3072 in bfloat16.
  model.embedding_scale = std::sqrt(static_cast<double>(model.hidden_size));
  if (model.dtype == bf16) model.embedding_scale = rounded_to_bf16(static_cast<float>(model.embedding_scale));
}

void read_gemma_with_norms_around(const JsonAt& config, ModelConfig& model, const RopeRules& rope) {
  read_gemma_like(config, model, rope);
  model.names.attention_post_norm = "post_attention_layernorm";
  model.names.mlp_norm = "pre_feedforward_layernorm";
  model.names.mlp_post_norm = "post_feedforward_layernorm";
  model.attention.scale = 1 / std::sqrt(positive_or(config, "query_pre_attn_scalar", 256));
  model.final_soft_cap = positive_or(config, "final_logit_softcapping", 0);
}

}  // namespace sator::families
