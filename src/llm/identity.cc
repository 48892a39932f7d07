#include "llm/identity.h"

#include "base/digest.h"
#include "base/text.h"
#include "relax/print.h"

namespace sator::llm {

namespace {

using Json = nlohmann::json;

const char* name_of(Activation activation) {
  switch (activation) {
    case Activation::gelu_tanh: return "gelu_tanh";
    case Activation::gelu_erf: return "gelu_erf";
    case Activation::relu: return "relu";
    case Activation::silu: return "silu";
  }
  return "unknown";
}

std::string join_numbers(const std::vector<double>& numbers) {
  std::vector<std::string> words;
  for (double n : numbers) words.push_back(text(n));
  return join(words, " ");
}

void add_norm(Json& out, const NormConfig& n) {
  const bool is_rms = n.kind == NormConfig::Kind::rms;
  out["norm"] = is_rms ? "rms" : "layer";
  out[is_rms ? "rms_norm_eps" : "layer_norm_epsilon"] = n.epsilon;
  out["norm.bias"] = n.bias, out["norm.weight_offset"] = n.weight_offset;
}

void add_rope(Json& out, const Rope& rope) {
  static constexpr const char* kKinds[] = {"none", "linear", "llama3", "dynamic", "yarn", "longrope"};
  const RopeScaling& s = rope.scaling;
  out["rope_theta"] = rope.theta, out["rope.dims"] = rope.dims, out["rope.interleaved"] = rope.interleaved;
  out["rope_scaling.rope_type"] = kKinds[static_cast<int>(s.kind)];
  if (s.kind == RopeScaling::Kind::none) return;
  out["rope_scaling.factor"] = s.factor;
  out["rope_scaling.low_freq_factor"] = s.low_freq_factor, out["rope_scaling.high_freq_factor"] = s.high_freq_factor;
  out["rope_scaling.original_max_position_embeddings"] = s.original_positions;
  out["rope_scaling.beta_fast"] = s.beta_fast, out["rope_scaling.beta_slow"] = s.beta_slow;
  out["rope_scaling.attention_factor"] = s.attention_factor, out["rope_scaling.truncate"] = s.truncate;
  out["rope_scaling.short_factor"] = join_numbers(s.short_factor);
  out["rope_scaling.long_factor"] = join_numbers(s.long_factor);
}

void add_attention(Json& out, const AttentionConfig& a) {
  static constexpr const char* kQkNorms[] = {"none", "head", "row", "own_head", "shared_layer"};
  out["num_attention_heads"] = a.heads, out["num_key_value_heads"] = a.kv_heads, out["head_dim"] = a.head_dim;
  out["attention.qkv_bias"] = a.qkv_bias, out["attention.out_bias"] = a.out_bias;
  out["attention.qk_norm"] = kQkNorms[static_cast<int>(a.qk_norm)];
  out["attention.scale"] = a.scale, out["attention.scale_by_layer"] = a.scale_by_layer;
  out["attention.soft_cap"] = a.soft_cap, out["sliding_window"] = a.window;
  out["sliding_window.layers"] = join_numbers({a.window_layers.begin(), a.window_layers.end()});
  if (a.rope) add_rope(out, *a.rope);
  if (a.window_rope) {
    Json own;
    add_rope(own, *a.window_rope);
    for (const auto& [name, value] : own.items()) out["sliding_window." + name] = value;
  }
  out["rope.unrotated_layers"] = join_numbers({a.unrotated_layers.begin(), a.unrotated_layers.end()});
  out["alibi"] = !a.alibi ? "none" : a.alibi->scaled ? "scaled" : "plain";
  if (a.alibi) out["alibi.in_bfloat16"] = a.alibi->in_bfloat16;
  if (a.latent) {
    out["attention.kv_lora_rank"] = a.latent->rank, out["attention.q_lora_rank"] = a.latent->query_rank;
    out["attention.qk_nope_head_dim"] = a.latent->plain_dim, out["attention.v_head_dim"] = a.latent->value_dim;
    out["attention.latent_norm_eps"] = a.latent->norm_epsilon;
  }
}

void add_experts(Json& out, const ExpertsConfig& e) {
  out["num_experts"] = e.count;
  if (e.count == 0) return;
  out["num_experts_per_tok"] = e.per_token, out["moe_intermediate_size"] = e.units;
  out["norm_topk_prob"] = e.normalized, out["experts.router_bias"] = e.router_bias;
  out["shared_expert_intermediate_size"] = e.shared_units, out["experts.shared_gate"] = e.shared_gate;
  out["experts.scores"] = e.sigmoid ? "sigmoid" : "softmax", out["experts.selection_bias"] = e.selection_bias;
  out["experts.groups"] = e.groups, out["experts.open_groups"] = e.open_groups;
  out["experts.two_of_group"] = e.two_of_group, out["experts.scale"] = e.scale;
  out["experts.dense_layers"] = join_numbers({e.dense_layers.begin(), e.dense_layers.end()});
}

std::string params_text(const std::vector<ParamSpec>& specs) {
  std::string all;
  for (const ParamSpec& s : specs) {
    all += text(s.name, " ", s.dtype, "[", s.shape, "]");
    // The same shapes hold rows in another order.
    const GroupedRows& rows = s.source.rows;
    if (rows.groups > 0) all += text(" of ", rows.groups, " groups of ", join(rows.parts, " + "), " rows");
    all += "\n";
  }
  return all;
}

/// Integers and floats alike as JSON writes them: 10000.0 is 10000.
std::string words_of(const Json& object, const std::string& name) {
  if (!object.contains(name)) return "nothing";
  const Json& value = object.at(name);
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? text(value.get<double>()) : value.dump();
}

}  // namespace

std::string graph_digest(const Program& program) {
  return digest_of(text(relax::to_script(*program.module, {.show_meta = true}), "\n", params_text(program.params)));
}

Json shaped_by(const ModelConfig& config, const Scheme& scheme, const Program& program) {
  Json out = {{"model_type", config.model_type},
              {"vocab_size", config.vocab_size},
              {"max_position_embeddings", config.max_positions},
              {"tie_word_embeddings", config.tie_word_embeddings},
              {"quantization", scheme.name},
              {"context_window_size", program.limits.context_window},
              {"prefill_chunk_size", program.limits.prefill_chunk},
              {"kv_cache_dtype", program.attention.front().cache_dtype.name()},
              {"parameters", digest_of(params_text(program.params))}};
  out["embedding_size"] = config.embedding_width();
  out["hidden_size"] = config.hidden_size, out["num_hidden_layers"] = config.layers;
  out["intermediate_size"] = config.mlp.units, out["hidden_act"] = name_of(config.mlp.activation);
  out["mlp.gated"] = config.mlp.gated, out["mlp.in_bias"] = config.mlp.in_bias,
  out["mlp.out_bias"] = config.mlp.out_bias;
  if (const auto& gate = config.mlp.clamped) out["swiglu_limit"] = gate->limit, out["swiglu_alpha"] = gate->alpha;
  out["parallel"] = config.parallel, out["head_bias"] = config.head_bias,
  out["position_offset"] = config.position_offset;
  out["embedding_scale"] = config.embedding_scale, out["residual_scale"] = config.residual_scale;
  out["logit_scale"] = config.logit_scale, out["final_soft_cap"] = config.final_soft_cap;
  add_norm(out, config.norm);
  add_attention(out, config.attention);
  add_experts(out, config.experts);
  return out;
}

std::vector<std::string> differences(const Json& a, const Json& b, const std::string& name_a,
                                     const std::string& name_b) {
  std::vector<std::string> out;
  Json all = a;
  all.update(b);
  for (const auto& [name, value] : all.items()) {
    const std::string in_a = words_of(a, name), in_b = words_of(b, name);
    if (in_a == in_b) continue;
    if (name == "parameters")
      out.emplace_back("parameters: other names, shapes or dtypes");
    else
      out.push_back(text(name, ": ", name_a, " ", in_a, ", ", name_b, " ", in_b));
  }
  return out;
}

}  // namespace sator::llm
