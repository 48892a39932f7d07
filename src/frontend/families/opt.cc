// OPT: learned positions that begin at 2, LayerNorm before each half, ReLU. OPT-350m: LayerNorm of each half's sum, embeddings
// that are narrower than the blocks.
#include <utility>

#include "frontend/families/table.h"

namespace sator::families {

static void read_opt(const JsonAt& config, ModelConfig& model) {
  model.hidden_size = read_size(config, {"hidden_size"});
  model.layers = read_size(config, {"num_hidden_layers"}, kMaxLayers);
  read_equal_heads(config, model, {"num_attention_heads"}, "hidden_size");
  model.max_positions = read_size(config, {"max_position_embeddings"}, kMaxPositions);
  model.position_offset = 2;
  model.tie_word_embeddings = config.boolean_or("tie_word_embeddings", true);
  const bool bias = config.boolean_or("enable_bias", true);
  model.attention.qkv_bias = model.attention.out_bias = bias;
  model.mlp = {.units = read_size(config, {"ffn_dim"}),
               .activation = Activation::relu,
               .gated = false,
               .in_bias = bias,
               .out_bias = bias};
  if (auto name = config.find("activation_function")) model.mlp.activation = read_activation(*name);
  model.norm = {.kind = NormConfig::Kind::layer, .epsilon = 1e-5, .bias = true};
  const int64_t width = config.integer_or("word_embed_proj_dim", model.hidden_size, 1, kMaxDim);
  const bool norm_before = config.boolean_or("do_layer_norm_before", true);
  const bool no_final_norm = config.boolean_or("_remove_final_layer_norm", false) || !norm_before;
  must_be(config, "layer_norm_elementwise_affine", true);
  must_be(config, "learned_embeddings", true);  // Galactica says so
  model.names = {.embedding = "model.decoder.embed_tokens",
                 .positions = "model.decoder.embed_positions",
                 .final_norm = "model.decoder.final_layer_norm",
                 .head = "lm_head",
                 .block = "model.decoder.layers.",
                 .attention_norm = "self_attn_layer_norm",
                 .mlp_norm = "final_layer_norm",
                 .qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
                 .mlp_in = {"fc1"},
                 .out = "self_attn.out_proj",
                 .mlp_out = "fc2",
                 .qkv_layer = "self_attn.qkv_proj",
                 .attention_layer = "self_attn",
                 .mlp_in_layer = "fc1",
                 .activation_layer = "fc1",
                 .embedding_layer = "model.decoder.embedding"};
  TensorNames& names = model.names;
  if (no_final_norm) names.final_norm = "";
  if (!norm_before) {
    names.attention_sum_norm = std::exchange(names.attention_norm, "");
    names.mlp_sum_norm = std::exchange(names.mlp_norm, "");
  }
  if (width == model.hidden_size) return;
  model.embedding_size = width;
  names.project_in = "model.decoder.project_in";
  names.project_out = "model.decoder.project_out";
}

const Family kOpt{"opt", read_opt};

}  // namespace sator::families
