// The second half of a block: x [n, width] f32, normed, to what is added to the residual.
#pragma once

#include "frontend/model_config.h"
#include "llm/layers.h"

namespace sator::llm {

/// The tensors of one MLP, or of all experts' (Layers::Weight), and what its layers are called. Biases without a name are none.
struct MlpTensors {
  std::vector<std::string> in, in_bias;
  std::string out, out_bias;
  int64_t units = 0;
  std::string in_layer, activation_layer, out_layer;
  Layers::Weight::Experts experts = {};
};

/// down(act(gate(x)) * up(x)), or without a gate.
RExpr mlp(Layers& layers, const ModelConfig& config, const MlpTensors& tensors, const RExpr& x);

/// The MLP of layer i: the plain one, or its experts. Its result has the name mlp_result(config, i).
RExpr mlp_of_layer(Layers& layers, const ModelConfig& config, int64_t layer, const RExpr& x);
/// The layer that the result of a layer's MLP belongs to, "mlp.down_proj".
const std::string& mlp_result(const ModelConfig& config, int64_t layer);

/// The experts of layer i (ExpertsConfig). No product is computed in vain: the rows of tokens, once for each of their experts, are
/// sorted by expert, and each expert meets its own rows.
RExpr experts(Layers& layers, const ModelConfig& config, int64_t layer, const RExpr& x);

}  // namespace sator::llm
