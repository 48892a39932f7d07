// What DeepSeek-V2 and V3 share: latent attention, and experts by group.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "frontend/families/keys.h"

namespace sator::families {

namespace {

void read_latent_attention(const JsonAt& config, ModelConfig& model, const DeepseekDefaults& defaults) {
  AttentionConfig& a = model.attention;
  LatentAttention& l = a.latent.emplace();
  l.rank = read_size(config, {"kv_lora_rank"});
  l.plain_dim = read_size(config, {"qk_nope_head_dim"});
  l.value_dim = read_size(config, {"v_head_dim"});
  if (auto rank = config.find("q_lora_rank"))
    l.query_rank = rank->integer(1, kMaxDim);
  else if (!config.has("q_lora_rank"))
    l.query_rank = defaults.query_rank;
  a.heads = read_size(config, {"num_attention_heads"});
  if (config.integer_or("num_key_value_heads", a.heads, 1, kMaxDim) != a.heads)
    config.at("num_key_value_heads")
        .fail("differs from num_attention_heads", "as many: all heads share one latent vector");
  a.kv_heads = 1;
  const int64_t rotated = read_size(config, {"qk_rope_head_dim"});
  a.head_dim = rotated;
  read_rope(config, model, {});
  a.rope->interleaved = true;
  must_be(config, "head_dim", rotated);  // as Transformers 5 writes them beside the parts
  must_be(config, "qk_head_dim", l.plain_dim + rotated);
  a.head_dim = rotated + l.rank;
  if (a.heads * std::max(a.head_dim, l.plain_dim + l.value_dim) > kMaxDim)
    config.fail(text("has ", a.heads, " heads"), text("heads times their elements <= ", kMaxDim));
  a.scale = 1 / std::sqrt(static_cast<double>(l.plain_dim + rotated));
  // What a stretched rotary embedding leaves to the scores.
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (auto rope = config.find(key); rope && rope->json().is_object())
      if (auto all = rope->find("mscale_all_dim"); all && a.rope->scaling.kind != RopeScaling::Kind::none) {
        const double factor = a.rope->scaling.factor;
        const double m = factor <= 1 || all->number() == 0 ? 1 : 0.1 * all->number() * std::log(factor) + 1;
        a.scale *= m * m;
        break;
      }
  // Transformers gives both norms 1e-6, whatever the file says of others (DeepseekV3RMSNorm).
  l.norm_epsilon = 1e-6;
  TensorNames& n = model.names;
  n.query_up = l.query_rank > 0 ? "self_attn.q_b_proj" : "self_attn.q_proj";
  if (l.query_rank > 0) n.query_down = "self_attn.q_a_proj", n.query_norm = "self_attn.q_a_layernorm";
  n.latent_down = "self_attn.kv_a_proj_with_mqa";
  n.latent_norm = "self_attn.kv_a_layernorm";
  n.key_up = "self_attn.k_b_proj.*.weight";
  n.value_up = "self_attn.v_b_proj.*.weight";
  // By head: the rows that make its key, then those that make its value.
  const int64_t both = l.plain_dim + l.value_dim;
  n.expert_stacks = {
      {.all = "self_attn.kv_b_proj.weight", .each = n.key_up, .transposed = true, .rows = l.plain_dim, .stride = both},
      {.all = "self_attn.kv_b_proj.weight",
       .each = n.value_up,
       .rows = l.value_dim,
       .first = l.plain_dim,
       .stride = both}};
}

void read_grouped_experts(const JsonAt& config, ModelConfig& model, const DeepseekDefaults& defaults) {
  ExpertsConfig& e = model.experts;
  if (config.has("n_routed_experts") && !config.find("n_routed_experts")) return;  // null: a dense model
  e.count = read_size(config, {"n_routed_experts"});
  e.per_token = read_size(config, {"num_experts_per_tok"});
  e.units = read_size(config, {"moe_intermediate_size"});
  e.groups = config.integer_or("n_group", config.has("n_group") ? 1 : defaults.groups, 1, kMaxDim);
  const int64_t open = config.integer_or("topk_group", defaults.open_groups, 1, kMaxDim);
  e.open_groups = e.groups > 1 ? open : 1;
  e.scale = positive_or(config, "routed_scaling_factor", defaults.expert_scale);
  must_divide(config, "n_group", e.groups, "n_routed_experts", e.count);
  if (e.open_groups > e.groups)
    config.fail(text("has ", e.groups, " groups, of which a token takes ", e.open_groups, " (topk_group)"),
                "topk_group: at most all of them");
  if (e.per_token > e.open_groups * (e.count / e.groups))
    config.at("num_experts_per_tok")
        .fail(text("is ", e.per_token, " of ", e.open_groups * (e.count / e.groups), " experts that may be chosen"),
              "at most all of them");
  const int64_t shared = config.has("n_shared_experts") ? 0 : defaults.shared_experts;
  e.shared_units = config.integer_or("n_shared_experts", shared, 0, kMaxLayers) * e.units;
  const int64_t dense = config.integer_or("first_k_dense_replace", defaults.dense_layers, 0, kMaxLayers);
  for (int64_t layer = 0; layer < std::min(dense, model.layers); ++layer) e.dense_layers.push_back(layer);
  must_be(config, "moe_layer_freq", int64_t{1});  // every layer from first_k_dense_replace on has experts
  name_experts(model, "mlp", "gate_proj", "up_proj", "down_proj");
  model.names.shared_in = {"mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj"};
  model.names.shared_in_layer = "mlp.shared_experts.gate_up_proj";
  model.names.shared_out = "mlp.shared_experts.down_proj";
}

}  // namespace

void read_deepseek_like(const JsonAt& config, ModelConfig& model, const DeepseekDefaults& defaults) {
  read_llama_blocks(config, model, {.positions = defaults.positions});
  read_latent_attention(config, model, defaults);
  read_grouped_experts(config, model, defaults);
}

}  // namespace sator::families
