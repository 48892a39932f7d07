// What a causal language model is, as data: sizes, the parts of its blocks, and what its tensors are called. A family of
// models (families/) reads its config.json into this; graph, parameters, costs and links follow from it and from nothing else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace sator {

/// The non-linearity of an MLP, by its formula:
///   gelu_tanh  0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))   (config: gelu_new, gelu_pytorch_tanh, gelu_fast)
///   gelu_erf   0.5 x (1 + erf(x / sqrt 2))                       (config: gelu)
///   silu       x / (1 + exp(-x))                                 (config: silu, swish)
enum class Activation { gelu_tanh, gelu_erf, relu, silu };

inline constexpr int64_t kMaxPositions = int64_t{1} << 28;  // more are a mistake or an attack

/// How the rotary frequencies f of a model trained on a short context are stretched.
///   linear    f / factor
///   llama3    f where the wavelength 2 pi / f is below original_positions / high_freq_factor, f / factor where it is above
///             original_positions / low_freq_factor, a linear blend of both in between
///   dynamic   a larger base, from the context bound: theta (factor * bound / original - (factor - 1))^(d / (d - 2)); as
///             trained up to original_positions
///   yarn      f / factor where f turns less than beta_slow times over original_positions, f where it turns more than
///             beta_fast times, a linear ramp over the dimensions in between; cos and sin times attention_factor
///   longrope  f / short_factor, or f / long_factor where the context bound is beyond original_positions; cos and sin times
///             attention_factor
/// Sources: Llama 3.1's `apply_scaling`; Peng et al., "YaRN", 2023; Ding et al., "LongRoPE", 2024; the defaults are those of
/// Hugging Face's `modeling_rope_utils`. What depends on the context depends on its bound, and is chosen once.
struct RopeScaling {
  enum class Kind { none, linear, llama3, dynamic, yarn, longrope };
  Kind kind = Kind::none;
  double factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  int64_t original_positions = 0;                    // all but linear
  double beta_fast = 32, beta_slow = 1;              // yarn
  bool truncate = true;                              // yarn: the ramp begins and ends at whole dimensions
  double attention_factor = 1;                       // yarn, longrope
  std::vector<double> short_factor, long_factor;     // longrope: one for each pair

  /// So many positions times the factor, at most kMaxPositions.
  int64_t stretched(int64_t positions) const {
    return static_cast<int64_t>(std::min(static_cast<double>(positions) * factor, static_cast<double>(kMaxPositions)));
  }
  bool operator==(const RopeScaling&) const = default;
};

/// Rotary embedding of the first `dims` elements of each head; element j is paired with j + dims / 2, or, interleaved,
/// element 2 j with 2 j + 1.
struct Rope {
  double theta = 10000;
  int64_t dims = 0;  // even
  bool interleaved = false;
  RopeScaling scaling;
};

/// Attention with linear biases: slope * position of the key is added to each score. With p the largest power of two not
/// above the number of heads, the first p heads have the slopes 2^(-8 i / p), i = 1, 2, ..., and the others 2^(-4 i / p),
/// i = 1, 3, 5, ...
/// Source: Press et al., "Train Short, Test Long", 2022, and the code beside it.
struct Alibi {
  bool scaled = false;       // by the scale of the scores too (Falcon)
  bool in_bfloat16 = false;  // slopes, positions and their products are rounded to bfloat16 (Falcon)
};

/// (x - mean) / sqrt(variance + epsilon) * w + b for `layer`, x / sqrt(mean of squares + epsilon) * w for `rms`.
struct NormConfig {
  enum class Kind { layer, rms };
  Kind kind = Kind::rms;
  double epsilon = 1e-6;
  bool bias = false;         // b; of `layer` alone
  double weight_offset = 0;  // added to w: 1 where checkpoints hold w - 1 (Gemma)
};

/// Keys and values of all heads are made of one latent vector c of `rank` numbers a token, beside which stands one key r of
/// `rope->dims` numbers, which is rotated and which all heads share. For head h
///   score = q_rotated[h] . r + q_plain[h] . (K[h] c),    value = V[h] c,    K[h] [plain_dim, rank], V[h] [value_dim, rank]
/// and, as q . (K c) = (K^T q) . c, the cache holds r and c alone: one head of keys for all, whose values are c.
/// Source: DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1.
struct LatentAttention {
  int64_t rank = 0, plain_dim = 0, value_dim = 0;
  int64_t query_rank = 0;      // queries are made of a latent vector of their own, of so many numbers; 0: of the token
  double norm_epsilon = 1e-6;  // of the norms of the latent vectors
};

struct AttentionConfig {
  int64_t heads = 0, kv_heads = 0;  // query head h reads key and value head h // (heads // kv_heads)
  int64_t head_dim = 0;
  bool qkv_bias = false, out_bias = false;
  /// Norm of queries and keys before they are rotated: RMSNorm of each head with weights that the heads share, RMSNorm of all
  /// heads as one row, LayerNorm without bias of each head with weights of its own (Cohere; StableLM, where names.q_norm has `*`
  /// for the head), or LayerNorm of each head with weights and biases that the heads share (Phi).
  enum class QkNorm { none, head, row, own_head, shared_layer };
  QkNorm qk_norm = QkNorm::none;
  double scale = 1;                    // of the scores
  bool scale_by_layer = false;         // scores / (layer + 1) besides (GPT-2)
  double soft_cap = 0;                 // scores become cap * tanh(score / cap) before the mask; 0: they do not
  int64_t window = 0;                  // a token sees itself and the window - 1 positions before it; 0: all
  std::vector<int64_t> window_layers;  // that have it; empty: all of them
  std::optional<Rope> rope;
  std::optional<Rope> window_rope;        // of the layers with a window, where it is another; as many elements
  std::vector<int64_t> unrotated_layers;  // that have no rotary embedding
  std::optional<Alibi> alibi;
  std::optional<LatentAttention> latent;  // then head_dim is rope->dims + rank, and there is one head of keys
};

/// The gated activation of gpt-oss: g * sigmoid(alpha * g) * (u + 1) of g = min(gate(x), limit) and u = up(x), kept in
/// [-limit, limit].
struct ClampedGate {
  double limit = 7, alpha = 1.702;
};

/// down(act(gate(x)) * up(x)) where gated, down(act(up(x))) else.
struct MlpConfig {
  int64_t units = 0;
  Activation activation = Activation::silu;
  bool gated = true;
  bool in_bias = false, out_bias = false;
  std::optional<ClampedGate> clamped;  // in the place of act(gate(x)) * up(x)
};

/// Several MLPs in place of one, of which each token takes a few: sum over its experts e of weight[e] * mlp_e(x), and what all
/// tokens take. They are as MlpConfig says, but for their width.
///   scores = softmax(router(x));  the experts of a token are those of its `per_token` largest scores, which weigh them
struct ExpertsConfig {
  int64_t count = 0;  // 0: no layer has them
  int64_t per_token = 0;
  int64_t units = 0;
  bool router_bias = false;
  bool normalized = false;            // weights of a token are divided by their sum
  int64_t shared_units = 0;           // of the MLP that every token takes besides; 0: there is none
  bool shared_gate = false;           // its result times sigmoid(gate(x))
  std::vector<int64_t> dense_layers;  // that have a plain MLP instead
  /// Scores are sigmoids of the router's logits, each for itself, in place of their softmax.
  bool sigmoid = false;
  bool selection_bias = false;  // is added to the scores where experts are chosen, and not where they are weighed
  /// Consecutive experts that are chosen from together: of so many groups only `open_groups` are, those whose best expert (or
  /// whose best two together) has the largest score. 1: there are no groups.
  int64_t groups = 1, open_groups = 1;
  bool two_of_group = false;
  double scale = 1;  // of the weights
};

/// One tensor that holds a part of all experts (or heads) of a layer, and what it is called one by one.
struct ExpertStack {
  std::string all, each;    // behind "<block><number>."; `*` is the expert's number
  bool transposed = false;  // matrices are stored [in, out]
  /// Where the tensor is a matrix: each has `rows` of it, from row `first` of every `stride` on.
  int64_t rows = 0, first = 0, stride = 0;
};

/// What the tensors of a checkpoint are called, without ".weight" and ".bias". Those of a block come behind
/// "<block><number>.". A part without a name is not there.
struct TensorNames {
  std::string embedding, embedding_norm, positions, final_norm, head;
  std::string block;
  /// Norms: before attention, of its result, before the MLP, of its result. Parallel blocks without `mlp_norm` give both
  /// halves the first one's.
  std::string attention_norm, attention_post_norm, mlp_norm, mlp_post_norm;
  /// Norms of what comes out where attention, or the MLP, has been added: x = norm(x + half(x)).
  std::string attention_sum_norm, mlp_sum_norm;
  /// Matrices without bias, from embeddings to the blocks' width and from there to what the head sees.
  std::string project_in, project_out;
  /// Queries, keys and values: three tensors, or one that holds them in this order; gate and up likewise.
  std::vector<std::string> qkv, mlp_in;
  /// The one tensor holds them for each head of keys by itself: the queries that read it, the key, the value.
  bool qkv_by_group = false;
  std::string q_norm, k_norm;  // `*`: the number of a head, each of which has a tensor
  std::string out, mlp_out;
  /// Experts: whole names of tensors, with ".weight"; `*` is the expert's number.
  std::vector<std::string> expert_in, expert_in_bias;
  std::string expert_out, expert_out_bias;
  std::string router, shared_gate, shared_out;
  std::string selection_bias;  // whole name
  std::vector<std::string> shared_in;
  std::vector<ExpertStack> expert_stacks;  // where a file has experts so
  /// Of latent attention: queries down to their latent vector, its norm, up (or all at once); keys and values down to theirs with
  /// the shared key behind, its norm; what makes keys and values of it, by head (`*`, whole names).
  std::string query_down, query_norm, query_up, latent_down, latent_norm, key_up, value_up;
  /// The one tensor of gate and up holds for each unit its row of the gate, then that of up.
  bool gate_up_by_unit = false;
  /// A score for each head that joins the softmax, and takes its share of the weight from the values; whole name.
  std::string sinks;
  /// What layers of several tensors, and those without one, are called in reports.
  std::string qkv_layer, attention_layer, mlp_in_layer, activation_layer, embedding_layer;
  std::string expert_in_layer, expert_out_layer, shared_in_layer;
  bool transposed = false;  // matrices of the blocks are stored [in, out]
};

/// How another program quantized the matrices of a checkpoint (`quantization_config`).
///   gptq    `qweight`, `qzeros`, `scales`, `g_idx`: codes packed along the inputs
///   awq     `qweight`, `qzeros`, `scales`: codes packed along the outputs, in the order 0 2 4 6 1 3 5 7
///   packed  compressed-tensors: `weight_packed`, `weight_scale`, `weight_zero_point`, or int8 `weight` and `weight_scale`
///   fp8     `weight` of 8-bit floats with `weight_scale_inv` or `weight_scale`, which both are multiplied by
///   mxfp4   stacks of experts as `_blocks` of 32 codes with the exponents of their `_scales` (OCP Microscaling Formats 1.0)
struct StoredQuantization {
  enum class Method { gptq, awq, packed, fp8, mxfp4 };
  Method method = Method::gptq;
  int bits = 4;
  int64_t group = 0;  // inputs that share a scale; 0: all of a row
  bool symmetric = true;
  int64_t block_rows =
      0;  // fp8: outputs that share a scale, where `group` inputs do; 0: a scale for each output, or one
  std::string activations;          // what the file asks of activations, which stay floats here; empty: nothing
  bool zeros_less_one = true;       // GPTQ's first version stores zero points less 1
  bool reordered = false;           // a list says which group each input is of
  std::vector<std::string> unread;  // keys that are neither read nor known to tell only how the codes came about
};

/// What `config.json` of a Hugging Face folder says of a causal language model.
struct ModelConfig {
  std::string model_type;  // as the file spells it
  int64_t vocab_size = 0;
  int64_t max_positions = 0;  // the longest context, unless a longer one is asked for
  bool tie_word_embeddings = false;
  std::vector<int64_t> eos_token_ids;  // none, one or several; may lie outside the vocabulary
  std::optional<int64_t> bos_token_id;

  DType dtype = f32;           // that the model was made for: float32, float16 or bfloat16
  bool dtype_unknown = false;  // none is stated, and matrices have fewer than 32 bits a number; dtype is float32
  int64_t hidden_size = 0, layers = 0;
  int64_t embedding_size = 0;  // where names.project_in leads from another width to hidden_size; 0: it is hidden_size
  NormConfig norm;
  AttentionConfig attention;
  MlpConfig mlp;
  ExpertsConfig experts;
  bool parallel = false;  // x + attention(norm(x)) + mlp(norm(x))
  bool head_bias = false;
  int64_t position_offset = 0;  // of the table of learned positions, where names.positions is given
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  double final_soft_cap = 0;  // logits become cap * tanh(logit / cap)
  std::optional<StoredQuantization> quantization;
  TensorNames names;

  /// Elements of an embedding, and of what the head sees.
  int64_t embedding_width() const { return embedding_size > 0 ? embedding_size : hidden_size; }
  /// The most positions that may be asked for. Files differ in whether max_positions are those before a rotary embedding is stretched.
  int64_t longest_context() const {
    if (!attention.rope) return max_positions;
    const RopeScaling& s = attention.rope->scaling;
    const bool either_way = s.kind == RopeScaling::Kind::linear || s.kind == RopeScaling::Kind::dynamic;
    return either_way ? std::max(max_positions, s.stretched(max_positions)) : max_positions;
  }
  bool has_experts(int64_t layer) const {
    return experts.count > 0 && std::ranges::find(experts.dense_layers, layer) == experts.dense_layers.end();
  }
};

}  // namespace sator
