// What the readers of families share: keys of config.json, their ranges, and what is refused.
#pragma once

#include <initializer_list>

#include "base/json.h"
#include "frontend/model_config.h"

namespace sator::families {

// Larger values are mistakes or attacks, and products of any two of them stay far below 2^63.
inline constexpr int64_t kMaxDim = int64_t{1} << 24, kMaxLayers = 4096, kMaxPositions = int64_t{1} << 28;

/// One family: `model_type` of config.json, and the reader of its other keys.
struct Family {
  std::string_view model_type;
  void (*read)(const JsonAt& config, ModelConfig& model);
};
/// Every family, in the order of the documentation.
const std::vector<Family>& all();

Activation read_activation(const JsonAt& at);
/// The first of several spellings that is given. Errors: none is; a value below 1 or above `max`.
int64_t read_size(const JsonAt& config, std::initializer_list<std::string_view> names, int64_t max = kMaxDim);
double read_positive(const JsonAt& at);
double positive_or(const JsonAt& config, std::string_view name, double otherwise);
/// Refuses a switch that is on: what it asks for would change the arithmetic.
void refuse_if_true(const JsonAt& config, std::string_view name);
void must_divide(const JsonAt& config, std::string_view part, int64_t a, std::string_view whole, int64_t b);

/// Refuses keys by which other families scale or arrange what this one does not: a file that sets one was made for another
/// program.
///   but  those that the family reads itself
void refuse_foreign(const JsonAt& config, std::initializer_list<std::string_view> but = {});

/// What a family's rotary embedding is where the file does not say, and what the file may say.
struct RopeRules {
  double theta = 10000;
  double share = 1;                    // of each head that is rotated
  bool any_share = false;              // the file may name another one than the whole head
  std::optional<double> window_theta;  // layers with a window have an embedding of their own, of this base
};
/// Base, share and scaling of the rotary embedding; head_dim and max_positions are known. Files give it in the old spelling
/// (`rope_theta`, `rope_scaling`), the new (`rope_parameters`) or both; as in Transformers 5, `rope_scaling` goes before
/// `rope_parameters`, and a theta inside the dictionary before the one outside.
void read_rope(const JsonAt& config, ModelConfig& model, const RopeRules& rules = {});
/// Heads, their size and the rotary embedding as Llama and its relatives spell them: num_attention_heads,
/// num_key_value_heads, head_dim, rope_theta, rope_scaling, rope_parameters, partial_rotary_factor.
void read_attention(const JsonAt& config, ModelConfig& model);
/// As many heads of keys as of queries, by one of these keys; their size is what the hidden size leaves each.
///   whole  what the hidden size is called in errors
void read_equal_heads(const JsonAt& config, ModelConfig& model, std::initializer_list<std::string_view> names,
                      std::string_view whole);
/// sliding_window, use_sliding_window, and which layers have it: layer_types, max_window_layers, sliding_window_pattern; all
/// of them unless told.
void read_window(const JsonAt& config, ModelConfig& model);
/// Where the file has a window and does not name the layers, all but every so many have it, from the first on.
void slide_all_but_every(int64_t period, const JsonAt& config, ModelConfig& model);
/// Qwen's files have a window for nothing unless `use_sliding_window` says otherwise.
void no_window_unless_used(const JsonAt& config, ModelConfig& model);
/// What Llama's file says but for its attention: sizes, norm, MLP, and what tensors are called.
void read_llama_blocks(const JsonAt& config, ModelConfig& model);
/// Everything that Llama's file says; relatives read it, and change what is theirs.
void read_llama_like(const JsonAt& config, ModelConfig& model, const RopeRules& rope = {});
/// Experts as most files spell them: num_experts or num_local_experts, num_experts_per_tok, moe_intermediate_size (else
/// intermediate_size), norm_topk_prob; which layers have them: decoder_sparse_step, mlp_only_layers.
/// Errors: more experts for a token than there are.
void read_experts(const JsonAt& config, ModelConfig& model);
/// Their tensors "<half>.gate", "<half>.experts.<number>.<part>", by what gate, up and down are called.
void name_experts(ModelConfig& model, const std::string& half, const std::string& gate, const std::string& up,
                  const std::string& down);
/// The keys of read_experts that belong to no plain model.
inline constexpr std::initializer_list<std::string_view> kExpertKeys = {"num_experts", "num_local_experts"};
/// Sizes, a plain MLP with biases and LayerNorm as GPT-2's file spells them: n_embd, n_layer, n_head, n_inner,
/// activation_function, layer_norm_epsilon.
void read_gpt2_like(const JsonAt& config, ModelConfig& model);
/// BLOOM's names of tensors, but for the blocks' norms: queries, keys and values by group in one.
void name_bloom_like(ModelConfig& model);
/// Gemma's: norms of 1 + w, GELU, embeddings times sqrt(hidden_size), a tied head.
void read_gemma_like(const JsonAt& config, ModelConfig& model, const RopeRules& rope = {});
/// Gemma 2's and 3's: norms around each half, scores by query_pre_attn_scalar, capped logits.
void read_gemma_with_norms_around(const JsonAt& config, ModelConfig& model, const RopeRules& rope = {});
/// Cohere's: LayerNorm without bias, one for both halves of a block, which are parallel; interleaved rotary embedding, a tied
/// head, logits times logit_scale.
void read_cohere_like(const JsonAt& config, ModelConfig& model, const RopeRules& rope = {});

/// DeepSeek's: latent attention (kv_lora_rank, q_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim), experts chosen from
/// groups (n_routed_experts, n_group, topk_group), the first layers without.
void read_deepseek_like(const JsonAt& config, ModelConfig& model);

}  // namespace sator::families
