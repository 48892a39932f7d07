// Command-R7B: Command-R with a window in three of four layers; the fourth sees everything and is not rotated.
#include <algorithm>

#include "frontend/families/table.h"

namespace sator::families {

static void read_cohere2(const JsonAt& config, ModelConfig& model) {
  read_cohere_like(config, model);
  AttentionConfig& a = model.attention;
  if (a.window == 0)
    config.fail("has no sliding window", "sliding_window, the positions that the layers with rotary embedding see");
  slide_all_but_every(4, config, model);
  for (int64_t layer = 0; layer < model.layers; ++layer)
    if (!a.window_layers.empty() && std::ranges::find(a.window_layers, layer) == a.window_layers.end())
      a.unrotated_layers.push_back(layer);
  refuse_foreign(config, {"logit_scale"});
}

const Family kCohere2{"cohere2", read_cohere2};

}  // namespace sator::families
