// What DeepSeek-V2 and V3 share: latent attention, and experts by group.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "frontend/families/keys.h"

namespace sator::families {

namespace {

void read_latent_attention(const JsonAt& config, ModelConfig& model) {
  AttentionConfig& a = model.attention;
  LatentAttention& l = a.latent.emplace();
  l.rank = read_size(config, {"kv_lora_rank"});
  l.plain_dim = read_size(config, {"qk_nope_head_dim"});
  l.value_dim = read_size(config, {"v_head_dim"});
  if (auto rank = config.find("q_lora_rank"); rank && !rank->json().is_null()) l.query_rank = rank->integer(1, kMaxDim);
  a.heads = read_size(config, {"num_attention_heads"});
  if (config.integer_or("num_key_value_heads", a.heads, 1, kMaxDim) != a.heads)
    config.at("num_key_value_heads")
        .fail("differs from num_attention_heads", "as many: all heads share one latent vector");
  a.kv_heads = 1;
  const int64_t rotated = read_size(config, {"qk_rope_head_dim"});
  a.head_dim = rotated;
  read_rope(config, model);
  a.rope->interleaved = config.boolean_or("rope_interleave", true);
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
  // Transformers gives both norms this one, whatever the file says of others.
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

void read_grouped_experts(const JsonAt& config, ModelConfig& model) {
  ExpertsConfig& e = model.experts;
  if (auto count = config.find("n_routed_experts"); !count || count->json().is_null()) return;  // a dense model
  e.count = read_size(config, {"n_routed_experts"});
  e.per_token = read_size(config, {"num_experts_per_tok"});
  e.units = read_size(config, {"moe_intermediate_size"});
  e.groups = config.find("n_group") && !config.at("n_group").json().is_null() ? read_size(config, {"n_group"}) : 1;
  e.open_groups = e.groups > 1 ? read_size(config, {"topk_group"}) : 1;
  e.scale = positive_or(config, "routed_scaling_factor", 1);
  must_divide(config, "n_group", e.groups, "n_routed_experts", e.count);
  if (e.open_groups > e.groups)
    config.at("topk_group").fail(text("is ", e.open_groups, " of ", e.groups, " groups"), "at most all of them");
  if (e.per_token > e.open_groups * (e.count / e.groups))
    config.at("num_experts_per_tok")
        .fail(text("is ", e.per_token, " of ", e.open_groups * (e.count / e.groups), " experts that may be chosen"),
              "at most all of them");
  if (auto shared = config.find("n_shared_experts"); shared && !shared->json().is_null())
    e.shared_units = shared->integer(0, kMaxLayers) * e.units;
  const int64_t dense = config.integer_or("first_k_dense_replace", 0, 0, kMaxLayers);
  for (int64_t layer = 0; layer < std::min(dense, model.layers); ++layer) e.dense_layers.push_back(layer);
  if (config.integer_or("moe_layer_freq", 1, 1, kMaxLayers) != 1)
    config.at("moe_layer_freq").fail("leaves out layers", "1: every layer from first_k_dense_replace on has experts");
  name_experts(model, "mlp", "gate_proj", "up_proj", "down_proj");
  model.names.shared_in = {"mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj"};
  model.names.shared_in_layer = "mlp.shared_experts.gate_up_proj";
  model.names.shared_out = "mlp.shared_experts.down_proj";
}

}  // namespace

void read_deepseek_like(const JsonAt& config, ModelConfig& model) {
  read_llama_blocks(config, model);
  read_latent_attention(config, model);
  read_grouped_experts(config, model);
  refuse_foreign(config, {"n_routed_experts", "kv_lora_rank"});
}

}  // namespace sator::families
