// What the readers of families share: keys of config.json, their ranges, and what is refused.
#pragma once

#include <initializer_list>

#include "base/json.h"
#include "frontend/model_config.h"

namespace sator::families {

// Larger values are mistakes or attacks, and products of any two of them stay far below 2^63.
inline constexpr int64_t kMaxDim = int64_t{1} << 24, kMaxLayers = 4096;

/// One family: `model_type` of config.json, and the reader of its other keys.
struct Family {
  std::string_view model_type;
  void (*read)(const JsonAt& config, ModelConfig& model);
};
/// Every family, in the order of the documentation.
const std::vector<Family>& all();

/// The activation of that name; nothing if it is not supported.
std::optional<Activation> activation_of(std::string_view name);
Activation read_activation(const JsonAt& at);
/// The first of several spellings that is given. Errors: none is; a value below 1 or above `max`.
int64_t read_size(const JsonAt& config, std::initializer_list<std::string_view> names, int64_t max = kMaxDim);
double read_positive(const JsonAt& at);
double positive_or(const JsonAt& config, std::string_view name, double otherwise);
/// Reads a key that has one value wherever the family computes what it says. Errors: it is given and has another.
void must_be(const JsonAt& config, std::string_view name, bool value);
void must_be(const JsonAt& config, std::string_view name, int64_t value);
void must_be(const JsonAt& config, std::string_view name, const char* value);
void must_divide(const JsonAt& config, std::string_view part, int64_t a, std::string_view whole, int64_t b);

/// What a family's rotary embedding is where the file does not say, and what the file may say.
struct RopeRules {
  double theta = 10000;
  double share = 1;                    // of each head that is rotated
  bool any_share = false;              // the file may name another one than the whole head
  std::optional<double> window_theta;  // layers with a window have an embedding of their own, of this base
  std::optional<RopeScaling> scaling;  // of a file that gives neither rope_scaling nor rope_parameters
  std::string_view theta_key = "rope_theta";
  std::string_view share_key = "partial_rotary_factor";
  int64_t original_positions = 0;  // that longrope was trained on, where the file does not say; 0: it has to
};

/// Which layers of a family have a sliding window, and of how many positions.
struct WindowRules {
  /// The family has none; where the file (or `positions`) gives one; where `use_sliding_window` is true besides.
  enum class Use { never, where_given, if_used };
  Use use = Use::never;
  int64_t positions = 0;    // where the file does not say; 0: there is none
  int64_t full_every = 0;   // every so many-th layer has none, where the file does not name the layers; 0: all have it
  bool any_period = false;  // `sliding_window_pattern` may give another period
  bool from_layer = false;  // only layers from `max_window_layers` on have it
};

/// What a family's file leaves out, where it is spelled as Llama's. Source: the configuration classes of Transformers 5.24.
struct LlamaDefaults {
  NormConfig norm;
  std::string_view epsilon_key = "rms_norm_eps";
  MlpConfig mlp;
  std::string_view activation_key = "hidden_act";
  bool tied = false;
  int64_t positions = 2048;
  int64_t kv_heads = 0;                        // 0: as many as of queries
  int64_t head_dim = 0;                        // 0: hidden_size / num_attention_heads
  std::optional<bool> attention_bias = false;  // nothing: no file has a say
  bool any_mlp_bias = false;                   // `mlp_bias` has a say
  RopeRules rope;
  WindowRules window;
};
/// Base, share and scaling of the rotary embedding; head_dim and max_positions are known. Files give it in the old spelling
/// (`rope_theta`, `rope_scaling`), the new (`rope_parameters`) or both; as in Transformers 5, `rope_scaling` goes before
/// `rope_parameters`, and a theta inside the dictionary before the one outside.
void read_rope(const JsonAt& config, ModelConfig& model, const RopeRules& rules = {});
/// Heads and their size as Llama and its relatives spell them: num_attention_heads, num_key_value_heads, head_dim.
void read_attention(const JsonAt& config, ModelConfig& model, const LlamaDefaults& defaults);
/// As many heads of keys as of queries, by one of these keys; their size is what the hidden size leaves each.
///   whole  what the hidden size is called in errors
void read_equal_heads(const JsonAt& config, ModelConfig& model, std::initializer_list<std::string_view> names,
                      std::string_view whole);
/// sliding_window, use_sliding_window, and which layers have it: layer_types, else as the rules say.
/// Errors: the family has no windows and the file asks for one.
void read_window(const JsonAt& config, ModelConfig& model, const WindowRules& rules);
/// What Llama's file says but for its attention: sizes, norm, MLP, and what tensors are called.
void read_llama_blocks(const JsonAt& config, ModelConfig& model, const LlamaDefaults& defaults);
/// Everything that Llama's file says; relatives read it, and change what is theirs.
void read_llama_like(const JsonAt& config, ModelConfig& model, const LlamaDefaults& defaults);

/// How many experts a family has where the file does not say, and for each token.
struct ExpertDefaults {
  int64_t count, per_token;
};
/// Experts as most files spell them: num_experts or num_local_experts, num_experts_per_tok.
///   units_key  their width: moe_intermediate_size or intermediate_size
/// Errors: more experts for a token than there are.
void read_experts(const JsonAt& config, ModelConfig& model, const ExpertDefaults& defaults, std::string_view units_key);
/// Qwen's: besides, norm_topk_prob, and which layers have experts: decoder_sparse_step, mlp_only_layers.
void read_qwen_experts(const JsonAt& config, ModelConfig& model, const ExpertDefaults& defaults);
/// Their tensors "<half>.gate", "<half>.experts.<number>.<part>", by what gate, up and down are called.
void name_experts(ModelConfig& model, const std::string& half, const std::string& gate, const std::string& up,
                  const std::string& down);
/// Sizes, a plain MLP with biases and LayerNorm as GPT-2's file spells them: n_embd, n_layer, n_head, n_inner,
/// activation_function, layer_norm_epsilon.
void read_gpt2_like(const JsonAt& config, ModelConfig& model);
/// BLOOM's names of tensors, but for the blocks' norms: queries, keys and values by group in one.
void name_bloom_like(ModelConfig& model);
/// What the files of all Gemmas leave out: norms of 1 + w, GELU, a tied head.
LlamaDefaults gemma_defaults();
/// Gemma's: embeddings times sqrt(hidden_size).
void read_gemma_like(const JsonAt& config, ModelConfig& model, const LlamaDefaults& defaults);
/// Gemma 2's and 3's: norms around each half, scores by query_pre_attn_scalar, capped scores and logits.
///   attention_cap, logit_cap  where the file does not say; 0: none
void read_gemma_with_norms_around(const JsonAt& config, ModelConfig& model, const LlamaDefaults& defaults,
                                  double attention_cap, double logit_cap);
/// What Cohere's files leave out: LayerNorm without bias, a tied head.
LlamaDefaults cohere_defaults();
/// Cohere's: one norm for both halves of a block, which are parallel; interleaved rotary embedding, logits times logit_scale.
void read_cohere_like(const JsonAt& config, ModelConfig& model, const LlamaDefaults& defaults);

/// What a DeepSeek's file leaves out.
struct DeepseekDefaults {
  int64_t positions, query_rank, shared_experts, groups, open_groups, dense_layers;
  double expert_scale;
};
/// DeepSeek's: latent attention (kv_lora_rank, q_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim), experts chosen from
/// groups (n_routed_experts, n_group, topk_group), the first layers without.
void read_deepseek_like(const JsonAt& config, ModelConfig& model, const DeepseekDefaults& defaults);

}  // namespace sator::families
