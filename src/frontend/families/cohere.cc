// Command-R: parallel halves behind one LayerNorm without bias, interleaved rotary embedding, scaled logits; LayerNorm of each
// head of queries and keys if asked.
#include "frontend/families/table.h"

namespace sator::families {

static void read_cohere(const JsonAt& config, ModelConfig& model) {
  LlamaDefaults defaults = cohere_defaults();
  defaults.rope = {.theta = 500000};
  read_cohere_like(config, model, defaults);
  if (config.boolean_or("use_qk_norm", false)) {
    model.attention.qk_norm = AttentionConfig::QkNorm::own_head;
    model.names.q_norm = "self_attn.q_norm";
    model.names.k_norm = "self_attn.k_norm";
  }
}

const Family kCohere{"cohere", read_cohere};

}  // namespace sator::families
