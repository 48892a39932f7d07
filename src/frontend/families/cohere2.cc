// Command-R7B: Command-R with a window in three of four layers; the fourth sees everything and is not rotated.
#include <algorithm>

#include "frontend/families/table.h"

namespace sator::families {

static void read_cohere2(const JsonAt& config, ModelConfig& model) {
  LlamaDefaults defaults = cohere_defaults();
  defaults.window = {.use = WindowRules::Use::where_given, .positions = 4096, .full_every = 4, .any_period = true};
  read_cohere_like(config, model, defaults);
  AttentionConfig& a = model.attention;
  if (a.window == 0)
    config.fail("has no sliding window", "sliding_window, the positions that the layers with rotary embedding see");
  // What the files say of the architecture in Cohere's own words.
  must_be(config, "position_embedding_type", "rope_gptj");
  must_be(config, "order_of_interleaved_layers", "local_attn_first");
  must_be(config, "use_parallel_block", true);
  must_be(config, "use_gated_activation", true);
  must_be(config, "use_embedding_sharing", model.tie_word_embeddings);
  // Transformers 5 writes layer_types, which say it of each layer, beside the period of old.
  if (config.find("layer_types"))
    config.find("layer_switch");
  else
    must_be(config, "layer_switch", config.integer_or("sliding_window_pattern", 4));
  for (int64_t layer = 0; layer < model.layers; ++layer)
    if (!a.window_layers.empty() && std::ranges::find(a.window_layers, layer) == a.window_layers.end())
      a.unrotated_layers.push_back(layer);
}

const Family kCohere2{"cohere2", read_cohere2};

}  // namespace sator::families
