// SmolLM3: Llama, of which every fourth layer has no rotary embedding.
#include "base/text.h"
#include "frontend/families/table.h"

namespace sator::families {

static const LlamaDefaults kSmollm3Defaults = {.tied = true,
                                               .positions = 32768,
                                               .kv_heads = 4,
                                               .any_mlp_bias = true,
                                               .rope = {.theta = 2e6},
                                               .window = {.use = WindowRules::Use::if_used}};

static void read_smollm3(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, kSmollm3Defaults);
  AttentionConfig& a = model.attention;
  const int64_t interval = config.integer_or("no_rope_layer_interval", 4, 1, kMaxLayers);
  if (auto rotated = config.find("no_rope_layers")) {  // 1 for a layer that is rotated
    int64_t layer = 0;
    rotated->each([&](const JsonAt& at) {
      if (at.integer(0, 1) == 0 && layer < model.layers) a.unrotated_layers.push_back(layer);
      ++layer;
    });
    if (layer < model.layers)
      rotated->fail(text("has ", layer, " entries"), text("one for each of the ", model.layers, " layers"));
  } else {
    for (int64_t layer = interval - 1; layer < model.layers; layer += interval) a.unrotated_layers.push_back(layer);
  }
  if (a.window > 0 && !config.find("layer_types")) {
    a.window_layers = a.unrotated_layers;
    if (a.window_layers.empty()) a.window = 0;
  }
}

const Family kSmollm3{"smollm3", read_smollm3};

}  // namespace sator::families
