// GPT-2: learned positions, LayerNorm before each half, fused c_attn with bias, `Conv1D` weights stored [in, out].
#include "frontend/families/table.h"

namespace sator::families {

static void read_gpt2(const JsonAt& config, ModelConfig& model) {
  read_gpt2_like(config, model);
  AttentionConfig& a = model.attention;
  if (!config.boolean_or("scale_attn_weights", true)) a.scale = 1;
  a.scale_by_layer = config.boolean_or("scale_attn_by_inverse_layer_idx", false);
  a.qkv_bias = a.out_bias = true;
  must_be(config, "add_cross_attention", false);
  model.max_positions = read_size(config, {"n_positions", "max_position_embeddings", "n_ctx"}, kMaxPositions);
  model.tie_word_embeddings = config.boolean_or("tie_word_embeddings", true);
  model.names = {.embedding = "transformer.wte",
                 .positions = "transformer.wpe",
                 .final_norm = "transformer.ln_f",
                 .head = "lm_head",
                 .block = "transformer.h.",
                 .attention_norm = "ln_1",
                 .mlp_norm = "ln_2",
                 .qkv = {"attn.c_attn"},
                 .mlp_in = {"mlp.c_fc"},
                 .out = "attn.c_proj",
                 .mlp_out = "mlp.c_proj",
                 .qkv_layer = "attn.c_attn",
                 .attention_layer = "attn",
                 .mlp_in_layer = "mlp.c_fc",
                 .activation_layer = "mlp.c_fc",
                 .embedding_layer = "transformer.embedding",
                 .transposed = true};
}

const Family kGpt2{"gpt2", read_gpt2};

}  // namespace sator::families
