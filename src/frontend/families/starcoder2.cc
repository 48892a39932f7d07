// StarCoder2: LayerNorm, biases everywhere, a plain MLP, rotary embedding, a sliding window.
#include "frontend/families/table.h"

namespace sator::families {

static const LlamaDefaults kStarcoder2Defaults = {
    .norm = {.kind = NormConfig::Kind::layer, .epsilon = 1e-5, .bias = true},
    .epsilon_key = "norm_epsilon",
    .mlp = {.activation = Activation::gelu_tanh, .gated = false},
    .tied = true,
    .positions = 4096,
    .kv_heads = 2,
    .attention_bias = {},
    .window = {.use = WindowRules::Use::where_given}};

static void read_starcoder2(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, kStarcoder2Defaults);
  const bool bias = config.boolean_or("use_bias", true);
  model.attention.qkv_bias = model.attention.out_bias = bias;
  model.mlp.in_bias = model.mlp.out_bias = bias;
  must_be(config, "norm_type", "layer_norm");
  must_be(config, "mlp_type", "default");
  // Left over in published files from the model before it; hidden_act and norm_epsilon say what holds.
  for (const char* key : {"activation_function", "layer_norm_epsilon"}) config.find(key);
  model.names.mlp_in = {"mlp.c_fc"};
  model.names.mlp_out = "mlp.c_proj";
  model.names.mlp_in_layer = model.names.activation_layer = "mlp.c_fc";
}

const Family kStarcoder2{"starcoder2", read_starcoder2};

}  // namespace sator::families
