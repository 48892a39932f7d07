#include "frontend/gguf_architectures.h"

#include "base/error.h"

namespace sator {

static const std::vector<GgufArchitecture>& architectures() {
  static const std::vector<GgufArchitecture> rows = {
      {.name = "llama", .model_type = "llama", .pairs_neighbours = true, .with_experts = "mixtral"},
      {"qwen2", "qwen2", {}},
      {"qwen3", "qwen3", {}},
      {"qwen2moe", "qwen2_moe", {}},
      {.name = "qwen3moe", .model_type = "qwen3_moe", .given = {{"norm_topk_prob", true}}},
      {.name = "gpt-oss", .model_type = "gpt_oss", .mlp_norm = "post_attention_norm", .whole_yarn_ramp = false},
      {"gemma", "gemma", {}},
      {"gemma2",
       "gemma2",
       {{"attn_logit_softcapping", "attn_logit_softcapping"}, {"final_logit_softcapping", "final_logit_softcapping"}}},
      {"gemma3",
       "gemma3_text",
       {{"final_logit_softcapping", "final_logit_softcapping"}, {"rope.freq_base_swa", "rope_local_base_freq"}}},
      {.name = "command-r",
       .model_type = "cohere",
       .keys = {{kGgufLayerNormEpsilon, "layer_norm_eps"}, {"logit_scale", "logit_scale"}},
       .given = {{"logit_scale", 1}}},
      {"cohere2", "cohere2", {{kGgufLayerNormEpsilon, "layer_norm_eps"}, {"logit_scale", "logit_scale", true}}},
      {.name = "smollm3", .model_type = "smollm3", .pairs_neighbours = true, .given = {{"no_rope_layer_interval", 4}}},
      {"glm4", "glm4", {}},
      {.name = "phi2", .model_type = "phi", .keys = {{kGgufLayerNormEpsilon, "layer_norm_eps"}}, .needs_head = true},
      {"phi3", "phi3", {}},
      {.name = "gpt2",
       .model_type = "gpt2",
       .keys = {{kGgufLayerNormEpsilon, "layer_norm_epsilon"}},
       .given = {{"activation_function", "gelu_new"}},
       .has_rotary = false,
       .spelled = {{"intermediate_size", "n_inner"}}},
      // The files of these two do not say which GELU it is: llama.cpp knows the one by tanh.
      {.name = "gptneox",
       .model_type = "gpt_neox",
       .keys = {{kGgufLayerNormEpsilon, "layer_norm_eps"}, {"use_parallel_residual", "use_parallel_residual", true}},
       .given = {{"hidden_act", "gelu_pytorch_tanh"}},
       .needs_head = true,
       .spelled = {{"rope_theta", "rotary_emb_base"}, {"partial_rotary_factor", "rotary_pct"}}},
      {.name = "falcon",
       .model_type = "falcon",
       .keys = {{kGgufLayerNormEpsilon, "layer_norm_epsilon"}},
       .given = {{"activation", "gelu_pytorch_tanh"}, {"new_decoder_architecture", true}},
       .attention_norm = "attn_norm_2",
       .mlp_norm = "attn_norm",
       .spelled = {{"num_key_value_heads", "num_kv_heads"}, {"intermediate_size", "ffn_hidden_size"}}},
      {.name = "bloom",
       .model_type = "bloom",
       .keys = {{kGgufLayerNormEpsilon, "layer_norm_epsilon"}},
       .has_rotary = false,
       .spelled = {{"max_position_embeddings", "seq_length"}}},
      {.name = "starcoder2",
       .model_type = "starcoder2",
       .keys = {{kGgufLayerNormEpsilon, "norm_epsilon"}},
       .spelled = {{"attention_bias", "use_bias"}}},
      {.name = "stablelm",
       .model_type = "stablelm",
       .keys = {{kGgufLayerNormEpsilon, "layer_norm_eps"}, {"use_parallel_residual", "use_parallel_residual"}},
       .spelled = {{"attention_bias", "use_qkv_bias"}}},
      {"olmo2", "olmo2", {}},
      {"granite",
       "granite",
       {{"embedding_scale", "embedding_multiplier"},
        {"residual_scale", "residual_multiplier"},
        {"attention.scale", "attention_multiplier"},
        {"logit_scale", "logits_scaling"}},
       true},
      {.name = "deepseek2",
       .model_type = "deepseek_v2",
       .keys = {{"attention.kv_lora_rank", "kv_lora_rank", true},
                {"attention.q_lora_rank", "q_lora_rank"},
                {"leading_dense_block_count", "first_k_dense_replace"},
                {"expert_shared_count", "n_shared_experts", true},
                {"expert_group_count", "n_group"},
                {"expert_group_used_count", "topk_group"},
                {"expert_weights_scale", "routed_scaling_factor"}}},
  };
  return rows;
}

void fail_gguf_key(const GgufFile& file, const std::string& key, const std::string& problem, const std::string& needs) {
  fail({.what = text(file.path().string(), ": ", key, " ", problem), .needs = needs});
}

const GgufArchitecture& architecture_of_gguf(const GgufFile& file) {
  const Json* name = file.find_value("general.architecture");
  if (!name || !name->is_string()) fail_gguf_key(file, "general.architecture", "is missing", "a model's file");
  std::vector<std::string_view> known;
  for (const GgufArchitecture& row : architectures()) {
    if (row.name == name->get<std::string>()) return row;
    known.push_back(row.name);
  }
  fail_gguf_key(file,
                "general.architecture",
                text("is ", string_literal(name->get<std::string>()), ", which is not supported"),
                text("one of ", join(known, ", ")));
}

}  // namespace sator
