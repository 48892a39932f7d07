// Falcon: three generations. RefinedWeb (rw): linear biases, sequential halves. 7B: one head of keys and values, parallel halves
// behind one LayerNorm. 40B and 180B (new_decoder_architecture): some heads of keys, parallel halves behind norms of their own.
#include <cmath>

#include "base/text.h"
#include "frontend/families/table.h"

namespace sator::families {

static void read_heads(const JsonAt& config, ModelConfig& model, bool is_new) {
  AttentionConfig& a = model.attention;
  a.heads = read_size(config, {"num_attention_heads", "n_head"});
  must_divide(config, "num_attention_heads", a.heads, "hidden_size", model.hidden_size);
  a.head_dim = model.hidden_size / a.heads;
  a.scale = 1 / std::sqrt(static_cast<double>(a.head_dim));
  const bool multi_query = config.boolean_or("multi_query", true), shares_all = !is_new && multi_query;
  const int64_t kv_heads = config.integer_or("num_kv_heads", a.heads, 1, kMaxDim);
  a.kv_heads = shares_all ? 1 : kv_heads;
  must_divide(config, "num_kv_heads", a.kv_heads, "num_attention_heads", a.heads);
  if (!is_new && !shares_all && a.kv_heads != a.heads)
    config.at("num_kv_heads")
        .fail(text("is ", a.kv_heads, " without new_decoder_architecture and multi_query"),
              text("num_kv_heads: ", a.heads, ", or new_decoder_architecture: true"));
}

/// One norm for both halves, one for each, or, of sequential halves, one before each.
static void name_norms(const JsonAt& config, ModelConfig& model, bool is_new) {
  const int64_t norms = config.integer_or("num_ln_in_parallel_attn", is_new ? 2 : 1, 1, 2);
  model.parallel = config.boolean_or("parallel_attn", true);
  if (is_new && !model.parallel)
    config.at("parallel_attn")
        .fail("is false with new_decoder_architecture, which is not supported", "parallel_attn: true");
  if (!is_new && norms == 2)
    config.at("num_ln_in_parallel_attn").fail("is 2 without new_decoder_architecture", "1, or none");
  if (model.parallel && norms == 2) {
    model.names.attention_norm = "ln_attn";
    model.names.mlp_norm = "ln_mlp";
  } else {
    model.names.attention_norm = "input_layernorm";
    model.names.mlp_norm = model.parallel ? "" : "post_attention_layernorm";
  }
}

static void read_falcon(const JsonAt& config, ModelConfig& model) {
  const bool is_new = config.boolean_or("new_decoder_architecture", false), bias = config.boolean_or("bias", false);
  model.hidden_size = read_size(config, {"hidden_size", "n_embed"});
  model.layers = read_size(config, {"num_hidden_layers", "n_layer"}, kMaxLayers);
  model.max_positions = config.integer_or("max_position_embeddings", 2048, 1, kMaxPositions);
  model.tie_word_embeddings = config.boolean_or("tie_word_embeddings", true);
  read_heads(config, model, is_new);
  if (config.boolean_or("alibi", false)) {
    model.attention.alibi = {.scaled = true, .in_bfloat16 = true};
    // What the file says of a rotary embedding is of no effect then, as long as it makes sense.
    ModelConfig unused = model;
    read_rope(config, unused);
  } else {
    read_rope(config, model);
  }
  model.attention.qkv_bias = model.attention.out_bias = bias;
  model.mlp = {.units = config.integer_or("ffn_hidden_size", 4 * model.hidden_size, 1, 4 * kMaxDim),
               .activation = Activation::gelu_erf,
               .gated = false,
               .in_bias = bias,
               .out_bias = bias};
  must_be(config, "ff_factor", model.mlp.units / model.hidden_size);  // the same once more, in Falcon 2's files
  must_be(config, "apply_residual_connection_post_layernorm", false);
  if (auto name = config.find("activation")) model.mlp.activation = read_activation(*name);
  model.norm = {
      .kind = NormConfig::Kind::layer, .epsilon = positive_or(config, "layer_norm_epsilon", 1e-5), .bias = true};
  name_bloom_like(model);
  name_norms(config, model, is_new);
}

const Family kFalcon{"falcon", read_falcon};

}  // namespace sator::families
