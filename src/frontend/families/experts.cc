// Mixtures of experts as config.json spells them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "frontend/families/keys.h"

namespace sator::families {

void read_experts(const JsonAt& config, ModelConfig& model) {
  ExpertsConfig& e = model.experts;
  e.count = read_size(config, {"num_experts", "num_local_experts"});
  e.per_token = read_size(config, {"num_experts_per_tok"});
  if (e.per_token > e.count)
    config.at("num_experts_per_tok").fail(text("is ", e.per_token, " of ", e.count, " experts"), "at most all of them");
  e.units = read_size(config, {"moe_intermediate_size", "intermediate_size"});
  e.normalized = config.boolean_or("norm_topk_prob", false);
  std::vector<int64_t> dense;
  const int64_t step = config.integer_or("decoder_sparse_step", 1, 1, kMaxLayers);
  for (int64_t layer = 0; layer < model.layers; ++layer)
    if ((layer + 1) % step != 0) dense.push_back(layer);
  if (auto plain = config.find("mlp_only_layers"); plain && !plain->json().is_null())
    plain->each([&](const JsonAt& layer) {
      const int64_t i = layer.integer(0, kMaxLayers);
      if (std::ranges::find(dense, i) == dense.end()) dense.push_back(i);
    });
  std::ranges::sort(dense);
  e.dense_layers = std::move(dense);
}

void name_experts(ModelConfig& model, const std::string& half, const std::string& gate, const std::string& up,
                  const std::string& down) {
  TensorNames& names = model.names;
  const std::string expert = half + ".experts.*.";
  names.router = half + ".gate";
  names.expert_in = {expert + gate + ".weight", expert + up + ".weight"};
  names.expert_out = expert + down + ".weight";
  names.expert_in_layer = half + ".experts.gate_up_proj";
  names.expert_out_layer = text(half, ".experts.", down);
}

}  // namespace sator::families
