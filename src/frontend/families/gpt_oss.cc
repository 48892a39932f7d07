// gpt-oss: experts with biases behind a clamped gate, which are stacked in one tensor; scores that compete with a learned one
// (sinks), and a window in every other layer.
#include <cmath>

#include "frontend/families/table.h"

namespace sator::families {

static const LlamaDefaults kGptOssDefaults = {
    .norm = {.epsilon = 1e-5},
    .mlp = {.in_bias = true, .out_bias = true},
    .positions = 131072,
    .kv_heads = 8,
    .head_dim = 64,
    .attention_bias = true,
    .rope = {.theta = 150000,
             .scaling = RopeScaling{.kind = RopeScaling::Kind::yarn,
                                    .factor = 32,
                                    .original_positions = 4096,
                                    .truncate = false,
                                    .attention_factor = 0.1 * std::log(32.0) + 1}},
    .window = {.use = WindowRules::Use::where_given, .positions = 128, .full_every = 2}};

static void read_gpt_oss(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, kGptOssDefaults);
  model.mlp.clamped = {.limit = positive_or(config, "swiglu_limit", 7),
                       .alpha = positive_or(config, "swiglu_alpha", 1.702)};
  read_experts(config, model, {.count = 128, .per_token = 4}, "intermediate_size");
  must_be(config, "experts_per_token", model.experts.per_token);  // the same in OpenAI's words
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
}

const Family kGptOss{"gpt_oss", read_gpt_oss};

}  // namespace sator::families
