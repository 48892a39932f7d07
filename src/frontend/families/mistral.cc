// Mistral: Llama, its first versions with a sliding window in every layer.
#include <cmath>

#include "frontend/families/table.h"

namespace sator::families {

static void read_mistral(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model);
  refuse_foreign(config);
}

const Family kMistral{"mistral", read_mistral};

}  // namespace sator::families
