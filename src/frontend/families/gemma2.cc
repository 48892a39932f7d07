// Gemma 2: Gemma with norms around each half, capped scores and logits, and a window in every other layer.
#include <nlohmann/json.hpp>

#include "frontend/families/table.h"

namespace sator::families {

static void read_gemma2(const JsonAt& config, ModelConfig& model) {
  read_gemma_with_norms_around(config, model);
  slide_all_but_every(2, config, model);
  // A file that says nothing of them has them.
  model.attention.soft_cap =
      config.json().contains("attn_logit_softcapping") ? positive_or(config, "attn_logit_softcapping", 0) : 50;
  if (!config.json().contains("final_logit_softcapping")) model.final_soft_cap = 30;
  refuse_foreign(config, {"query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping"});
}

const Family kGemma2{"gemma2", read_gemma2};

}  // namespace sator::families
