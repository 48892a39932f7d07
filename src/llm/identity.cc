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

void add(Json& out, const Gpt2Config& c) {
  out["n_embd"] = c.hidden_size, out["n_layer"] = c.layers, out["n_head"] = c.heads;
  out["n_inner"] = c.intermediate_size, out["head_dim"] = c.head_dim();
  out["layer_norm_epsilon"] = c.layer_norm_eps;
  out["activation_function"] = name_of(c.activation);
  out["scale_attn_weights"] = c.scale_attn_weights;
  out["scale_attn_by_inverse_layer_idx"] = c.scale_attn_by_inverse_layer_idx;
}

void add(Json& out, const LlamaConfig& c) {
  out["hidden_size"] = c.hidden_size, out["intermediate_size"] = c.intermediate_size;
  out["num_hidden_layers"] = c.layers, out["num_attention_heads"] = c.heads;
  out["num_key_value_heads"] = c.kv_heads, out["head_dim"] = c.head_dim;
  out["rms_norm_eps"] = c.rms_norm_eps, out["rope_theta"] = c.rope_theta;
  out["hidden_act"] = name_of(c.activation);
  out["attention_bias"] = c.attention_bias, out["mlp_bias"] = c.mlp_bias;
  const RopeScaling& r = c.rope_scaling;
  static constexpr const char* kKinds[] = {"none", "linear", "llama3"};
  out["rope_scaling.rope_type"] = kKinds[static_cast<int>(r.kind)];
  if (r.kind == RopeScaling::Kind::none) return;
  out["rope_scaling.factor"] = r.factor;
  if (r.kind != RopeScaling::Kind::llama3) return;
  out["rope_scaling.low_freq_factor"] = r.low_freq_factor, out["rope_scaling.high_freq_factor"] = r.high_freq_factor;
  out["rope_scaling.original_max_position_embeddings"] = r.original_positions;
}

std::string params_text(const std::vector<ParamSpec>& specs) {
  std::string all;
  for (const ParamSpec& s : specs) all += text(s.name, " ", s.dtype, "[", s.shape, "]\n");
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
              {"kv_cache_dtype", program.attention.cache_dtype.name()},
              {"parameters", digest_of(params_text(program.params))}};
  std::visit([&](const auto& family) { add(out, family); }, config.family);
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
