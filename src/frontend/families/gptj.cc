// GPT-J: parallel halves behind one LayerNorm, the first rotary_dim elements of each head rotated by neighbouring pairs, biases
// in MLP and head alone.
#include <algorithm>

#include "frontend/families/table.h"

namespace sator::families {

static void read_gptj(const JsonAt& config, ModelConfig& model) {
  read_gpt2_like(config, model);
  model.max_positions = read_size(config, {"n_positions", "max_position_embeddings"}, kMaxPositions);
  model.tie_word_embeddings = config.boolean_or("tie_word_embeddings", false);
  AttentionConfig& a = model.attention;
  if (!config.find("rotary_dim") && a.head_dim < 64)
    config.fail(text("has no rotary_dim, which is 64 then, and heads of ", a.head_dim), "rotary_dim within a head");
  const int64_t dims = config.integer_or("rotary_dim", 64, 2, a.head_dim);
  must_divide(config, "2 (rotary pairs)", 2, "rotary_dim", dims);
  a.rope = Rope{.theta = 10000, .dims = dims, .interleaved = true};
  model.parallel = true;
  model.head_bias = true;
  must_be(config, "rotary", true);
  model.names = {.embedding = "transformer.wte",
                 .final_norm = "transformer.ln_f",
                 .head = "lm_head",
                 .block = "transformer.h.",
                 .attention_norm = "ln_1",
                 .qkv = {"attn.q_proj", "attn.k_proj", "attn.v_proj"},
                 .mlp_in = {"mlp.fc_in"},
                 .out = "attn.out_proj",
                 .mlp_out = "mlp.fc_out",
                 .qkv_layer = "attn.qkv_proj",
                 .attention_layer = "attn",
                 .mlp_in_layer = "mlp.fc_in",
                 .activation_layer = "mlp.fc_in"};
}

const Family kGptj{"gptj", read_gptj};

}  // namespace sator::families
