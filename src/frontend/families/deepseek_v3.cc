// DeepSeek-V3 and R1: DeepSeek-V2 with scores that are sigmoids, and a bias that balances which experts are chosen.
#include "frontend/families/table.h"

namespace sator::families {

static const DeepseekDefaults kDeepseekV3Defaults = {.positions = 4096,
                                                     .query_rank = 1536,
                                                     .shared_experts = 1,
                                                     .groups = 8,
                                                     .open_groups = 4,
                                                     .dense_layers = 3,
                                                     .expert_scale = 2.5};

static void read_deepseek_v3(const JsonAt& config, ModelConfig& model) {
  read_deepseek_like(config, model, kDeepseekV3Defaults);
  model.attention.rope->interleaved = config.boolean_or("rope_interleave", true);
  ExpertsConfig& e = model.experts;
  e.normalized = config.boolean_or("norm_topk_prob", true);
  e.sigmoid = e.selection_bias = e.two_of_group = true;
  must_be(config, "scoring_func", "sigmoid");
  must_be(config, "topk_method", "noaux_tc");
  model.names.selection_bias = "mlp.gate.e_score_correction_bias";
}

const Family kDeepseekV3{"deepseek_v3", read_deepseek_v3};

}  // namespace sator::families
