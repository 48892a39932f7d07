// What GPT-2 and GPT-J share.
#include "frontend/families/keys.h"

namespace sator::families {

void read_gpt2_like(const JsonAt& config, ModelConfig& model) {
  model.hidden_size = read_size(config, {"n_embd", "hidden_size"});
  model.layers = read_size(config, {"n_layer", "num_hidden_layers"}, kMaxLayers);
  read_equal_heads(config, model, {"n_head", "num_attention_heads"}, "n_embd");
  model.mlp = {.units = config.integer_or("n_inner", 4 * model.hidden_size, 1, 4 * kMaxDim),
               .activation = Activation::gelu_tanh,
               .gated = false,
               .in_bias = true,
               .out_bias = true};
  if (auto name = config.find("activation_function")) model.mlp.activation = read_activation(*name);
  model.norm = {
      .kind = NormConfig::Kind::layer, .epsilon = positive_or(config, "layer_norm_epsilon", 1e-5), .bias = true};
}

}  // namespace sator::families
