// Gemma: Llama with norms of 1 + w, embeddings times sqrt(width), a tied head.
#include <cmath>

#include "frontend/families/table.h"

namespace sator::families {

static void read_gemma(const JsonAt& config, ModelConfig& model) {
  read_gemma_like(config, model);
  refuse_foreign(config);
}

const Family kGemma{"gemma", read_gemma};

}  // namespace sator::families
