// DeepSeek-V3 and R1: DeepSeek-V2 with scores that are sigmoids, and a bias that balances which experts are chosen.
#include "frontend/families/table.h"

namespace sator::families {

static void read_deepseek_v3(const JsonAt& config, ModelConfig& model) {
  read_deepseek_like(config, model);
  ExpertsConfig& e = model.experts;
  e.normalized = config.boolean_or("norm_topk_prob", true);
  e.sigmoid = e.selection_bias = e.two_of_group = true;
  model.names.selection_bias = "mlp.gate.e_score_correction_bias";
}

const Family kDeepseekV3{"deepseek_v3", read_deepseek_v3};

}  // namespace sator::families
