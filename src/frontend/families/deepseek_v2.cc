// DeepSeek-V2: latent attention; experts of which the first layers have none, chosen from a few groups, beside one that every
// token takes.
#include "base/error.h"
#include "frontend/families/table.h"

namespace sator::families {

static const DeepseekDefaults kDeepseekV2Defaults = {.positions = 2048,
                                                     .query_rank = 1536,
                                                     .shared_experts = 2,
                                                     .groups = 1,
                                                     .open_groups = 1,
                                                     .dense_layers = 0,
                                                     .expert_scale = 1};

static void read_deepseek_v2(const JsonAt& config, ModelConfig& model) {
  read_deepseek_like(config, model, kDeepseekV2Defaults);
  ExpertsConfig& e = model.experts;
  const std::string method = config.find("topk_method") ? config.at("topk_method").string() : "greedy";
  if (method != "greedy" && method != "group_limited_greedy")
    config.at("topk_method").fail(text("is ", string_literal(method)), "greedy or group_limited_greedy");
  if (method == "greedy") e.groups = e.open_groups = 1;
  // Transformers' router has no such sum; DeepSeek's own leaves out the scale where there is one.
  must_be(config, "norm_topk_prob", false);
  must_be(config, "scoring_func", "softmax");
}

const Family kDeepseekV2{"deepseek_v2", read_deepseek_v2};

}  // namespace sator::families
