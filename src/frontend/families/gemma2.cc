// Gemma 2: Gemma with norms around each half, capped scores and logits, and a window in every other layer.
#include "frontend/families/table.h"

namespace sator::families {

static void read_gemma2(const JsonAt& config, ModelConfig& model) {
  LlamaDefaults defaults = gemma_defaults();
  defaults.window = {.use = WindowRules::Use::where_given, .positions = 4096, .full_every = 2};
  read_gemma_with_norms_around(config, model, defaults, 50, 30);
}

const Family kGemma2{"gemma2", read_gemma2};

}  // namespace sator::families
