#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/file.h"

namespace sator {

/// The non-linearity of an MLP, by its formula:
///   gelu_tanh  0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))   (config: gelu_new, gelu_pytorch_tanh,
///   gelu_fast) gelu_erf   0.5 x (1 + erf(x / sqrt 2))                       (config: gelu) silu       x / (1
///   + exp(-x))                                 (config: silu, swish)
enum class Activation { gelu_tanh, gelu_erf, relu, silu };

/// How the rotary frequencies f of a model trained on a short context are stretched.
///   linear   f / factor
///   llama3   f where the wavelength 2 pi / f is below original_positions / high_freq_factor, f / factor
///   where it is above
///            original_positions / low_freq_factor, a linear blend of both in between
/// Source: Llama 3.1's `apply_scaling`, as in Hugging Face's `modeling_rope_utils`.
struct RopeScaling {
  enum class Kind { none, linear, llama3 };
  Kind kind = Kind::none;
  double factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  int64_t original_positions = 0;                    // llama3

  bool operator==(const RopeScaling&) const = default;
};

/// GPT-2: learned positions, LayerNorm before each half, fused c_attn with bias, `Conv1D` weights stored [in,
/// out].
struct Gpt2Config {
  int64_t hidden_size = 0, layers = 0, heads = 0;
  int64_t intermediate_size = 0;  // n_inner, else 4 * n_embd
  double layer_norm_eps = 1e-5;
  Activation activation = Activation::gelu_tanh;
  bool scale_attn_weights = true;                // scores / sqrt(head_dim)
  bool scale_attn_by_inverse_layer_idx = false;  // scores / (layer + 1) besides
  int64_t own_head_dim = 0;                      // of a part of a model that chips share; 0: hidden_size / heads
  int64_t head_dim() const { return own_head_dim > 0 ? own_head_dim : hidden_size / heads; }
};

/// Llama: rotary positions (rotate-half), RMSNorm, grouped key/value heads, gated MLP.
struct LlamaConfig {
  int64_t hidden_size = 0, intermediate_size = 0, layers = 0;
  int64_t heads = 0, kv_heads = 0;
  int64_t head_dim = 0;  // given, else hidden_size / heads
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000;
  RopeScaling rope_scaling;
  bool attention_bias = false, mlp_bias = false;
  Activation activation = Activation::silu;
};

/// What `config.json` of a Hugging Face folder says of a causal language model.
struct ModelConfig {
  std::string model_type;  // as the file spells it
  std::variant<Gpt2Config, LlamaConfig> family;
  int64_t vocab_size = 0;
  int64_t max_positions = 0;  // the longest context
  bool tie_word_embeddings = false;
  std::vector<int64_t> eos_token_ids;  // none, one or several; may lie outside the vocabulary
  std::optional<int64_t> bos_token_id;
};

/// The folder of a model that is given by its folder or by its `config.json` or `mlc-chat-config.json`, as MLC-LLM's
/// commands take it: "." for the bare name of such a file.
/// Errors: there is no such path; it is a file of another name.
fs::path model_folder(const fs::path& given);

/// Reads `config.json` of a folder, or the file itself; nothing else is opened. A folder without one is read by its
/// `mlc-chat-config.json`.
/// Errors: the file is missing or malformed; the model type or something that changes its arithmetic (an
/// activation, a rotary scaling, a sliding window, cross attention, weights quantized already) is not
/// supported; a size is missing, not positive, absurd, or does not divide (heads into hidden_size, kv heads
/// into heads).
ModelConfig read_model_config(const fs::path& folder);

/// The model types that read_model_config knows.
std::vector<std::string> supported_model_types();

/// What `generation_config.json` suggests; all of it may be absent, and so may the file.
struct GenerationConfig {
  std::vector<int64_t> eos_token_ids;
  std::optional<int64_t> bos_token_id, pad_token_id;
  std::optional<bool> do_sample;
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int64_t> top_k, no_repeat_ngram_size, max_new_tokens;
  std::optional<int64_t> max_length;  // tokens of prompt and answer together, where max_new_tokens is not given
  /// What the file asks for that would change the result and is not done here, in words: "num_beams 4". Names that nobody
  /// knows are among them.
  std::vector<std::string> not_done;
};

/// Errors: the file exists and is malformed, or a value is out of its range.
GenerationConfig read_generation_config(const fs::path& folder);

}  // namespace sator
