// Mixtures of experts as config.json spells them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "frontend/families/keys.h"

namespace sator::families {

void read_experts(const JsonAt& config, ModelConfig& model, const ExpertDefaults& defaults,
                  std::string_view units_key) {
  ExpertsConfig& e = model.experts;
  e.count = defaults.count;
  for (const char* key : {"num_local_experts", "num_experts"}) e.count = config.integer_or(key, e.count, 1, kMaxDim);
  must_be(config, "num_local_experts", e.count);
  e.per_token = config.integer_or("num_experts_per_tok", defaults.per_token, 1, kMaxDim);
  if (e.per_token > e.count)
    config.fail(text("has ", e.count, " experts, of which a token takes ", e.per_token, " (num_experts_per_tok)"),
                "num_experts_per_tok: at most all of them");
  e.units = read_size(config, {units_key});
}

void read_qwen_experts(const JsonAt& config, ModelConfig& model, const ExpertDefaults& defaults) {
  read_experts(config, model, defaults, "moe_intermediate_size");
  ExpertsConfig& e = model.experts;
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
