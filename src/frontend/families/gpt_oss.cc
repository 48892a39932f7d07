// gpt-oss: experts with biases behind a clamped gate, which are stacked in one tensor; scores that compete with a learned one
// (sinks), and a window in every other layer.
#include "frontend/families/table.h"

namespace sator::families {

static void read_gpt_oss(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model);
  slide_all_but_every(2, config, model);
  AttentionConfig& a = model.attention;
  a.qkv_bias = a.out_bias = config.boolean_or("attention_bias", true);
  model.mlp.clamped = {.limit = positive_or(config, "swiglu_limit", 7),
                       .alpha = positive_or(config, "swiglu_alpha", 1.702)};
  model.mlp.in_bias = model.mlp.out_bias = true;
  read_experts(config, model);
  // The softmax is of the chosen experts' scores alone, which is that of all, divided by their sum.
  model.experts.normalized = true;
  model.experts.router_bias = true;
  TensorNames& names = model.names;
  names.sinks = "self_attn.sinks";
  names.router = "mlp.router";
  names.expert_in_layer = "mlp.experts.gate_up_proj";
  names.expert_out_layer = "mlp.experts.down_proj";
  names.expert_in = {"mlp.experts.*.gate_up_proj.weight"};
  names.expert_in_bias = {"mlp.experts.*.gate_up_proj.bias"};
  names.expert_out = "mlp.experts.*.down_proj.weight";
  names.expert_out_bias = "mlp.experts.*.down_proj.bias";
  names.gate_up_by_unit = true;
  names.expert_stacks = {{.all = names.expert_in_layer, .each = names.expert_in.front(), .transposed = true},
                         {.all = names.expert_in_layer + "_bias", .each = names.expert_in_bias.front()},
                         {.all = names.expert_out_layer, .each = names.expert_out, .transposed = true},
                         {.all = names.expert_out_layer + "_bias", .each = names.expert_out_bias}};
  refuse_foreign(config, {"num_local_experts", "num_experts", "swiglu_limit", "swiglu_alpha"});
}

const Family kGptOss{"gpt_oss", read_gpt_oss};

}  // namespace sator::families
