// OPT: learned positions that begin at 2, LayerNorm before each half, ReLU.
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
  if (auto width = config.find("word_embed_proj_dim"); width && width->integer() != model.hidden_size)
    width->fail(text("is ",
                     width->integer(),
                     ", where hidden_size is ",
                     model.hidden_size,
                     ": projections around the blocks are not supported"),
                "word_embed_proj_dim equal to hidden_size");
  for (const char* key : {"do_layer_norm_before", "layer_norm_elementwise_affine"})
    if (auto given = config.find(key); given && !given->boolean())
      given->fail("is false, which is not supported", text(key, ": true"));
  must_be(config, "_remove_final_layer_norm", false);
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
}

const Family kOpt{"opt", read_opt};

}  // namespace sator::families
