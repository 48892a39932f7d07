#pragma once

#include <algorithm>

#include "runtime/paged_sequences.h"
#include "runtime/vm.h"

// The paged KV cache: keys and values of all layers in pages of 16 positions, shared by the sequences of a
// batch. Each layer has pages of each:
//
//   k_pages  T[P, G, D, 16]   transposed, so that scores are computed at full width
//   v_pages  T[P, G, 16, D]
//
// or, where the kernels sum products in pairs (KVCacheConfig::in_pairs; D is even), with the numbers of a pair side by side:
//
//   k_pages  T[P, G, D / 2, 16, 2]   elements 2 i and 2 i + 1 of a key
//   v_pages  T[P, G, 8, D, 2]        positions 2 i and 2 i + 1
//
// T is float32, or float16 or bfloat16 to halve the bytes. Layers that see equally far share a pool: one page table, in which a page id means
// the same place in each of them. Where they see a window, pages before it are given back as a sequence grows, in blocks of
// 64 positions (from a multiple of 64 on); the page table has 0 in their place, and no kernel may read there.
// Positions of a page beyond a sequence's length hold finite numbers (unless the model itself wrote others there): a kernel
// may load all 16 and mask the scores.
//
// The cache computes nothing itself. It calls two kernels of the compiled program, each through the virtual
// machine, so that the profiler sees them. Sizes:
//
//   n  tokens of the step, over all its sequences, in their order
//   b  sequences of the step
//   m  entries of the step's page table
//   H  num_qo_heads        D  head_dim        P  num_pages        L  max_total_seq_len
//   G  num_kv_heads; query head h reads key and value head h // (H // G)
//
// kv_append writes the keys and values of the step. Parameters, in this order, without rotary embedding:
//
//   qkv      float32[n, H + 2 * G, D]   per token: H query heads, G key heads, G value heads
//   slots    int32[n]                   token t goes to page slots[t] // 16, offset slots[t] % 16
//   k_pages  T[P, G, D, 16]             written at [page, :, :, offset]; or in pairs
//   v_pages  T[P, G, 16, D]             written at [page, :, offset, :]; or in pairs
//
// kv_append, with rotary embedding of the first R (even) elements of each head:
//
//   qkv        float32[n, H + 2 * G, D]
//   positions  int32[n]                 of each token in its sequence, from 0
//   rope       float32[L, R]            row p: cos(p * inv_freq[j]) for j < R/2, then the R/2 sines; only the rows of
//                                       positions that a sequence has reached are filled
//   slots      int32[n]
//   q          float32[n, H, D]         written: the rotated queries
//   k_pages    T[P, G, D, 16]           written with the rotated keys
//   v_pages    T[P, G, 16, D]           written
//
//   In Llama's order of elements, with c and s of the token's row and j < R/2:
//     y[j] = x[j] * c[j] - x[j + R/2] * s[j],  y[j + R/2] = x[j + R/2] * c[j] + x[j] * s[j]
//   Which elements form a pair is the kernel's business. Layers may have other tables, or none, with kernels to match.
//
// attention of the step's tokens over all earlier positions of their sequences, themselves included:
//
//   q            float32[n, h, D]   h >= H: the queries are the first H heads of each token. Without rotary
//                                   embedding this is qkv itself, h = H + 2 * G; with it, h = H
//   token_seq    int32[n]           which sequence of the step token t belongs to, 0 .. b-1
//   positions    int32[n]           token t attends to positions 0 .. positions[t] of its sequence
//   q_indptr     int32[b + 1]       sequence i has tokens q_indptr[i] .. q_indptr[i+1]-1, perhaps none
//   kv_lengths   int32[b]           positions of sequence i, those of this step included
//   page_indptr  int32[b + 1]       sequence i has the entries page_indptr[i] .. page_indptr[i+1]-1 of
//   page_table   int32[m]           page ids: its position p is in page_table[page_indptr[i] + p // 16]
//   k_pages      T[P, G, D, 16]
//   v_pages      T[P, G, 16, D]
//   bias         float32[H, B]      only with linear biases (ALiBi): what is added to the score of head h and the key at
//                                   position p; B is a multiple of 64, for kernels read four pages at a time
//   sinks        float32[H]         only with sinks: a score that joins the softmax of each head, and has no value
//   o            float32[n, H, D]   written: softmax(sm_scale * q K^T + bias, sinks) V
//   sm_scale     float32            a scalar parameter
//
// The record of an attention call carries, beside the kernel's symbolic sizes, `num_sequences` (b), `kv_len`
// (the longest kv_lengths) and `scores` (the sum of positions[t] + 1 over tokens: key-query pairs per query
// head).
namespace sator::runtime {

/// What the engine does with any per-sequence state of a model.
class KVState : public Object {
 public:
  /// Forgets all sequences, and the step if one is open.
  virtual void clear() = 0;
  virtual void add_sequence(int64_t id) = 0;
  virtual void remove_sequence(int64_t id) = 0;
  /// The child begins with the first `position` positions of the parent, all of them for -1; they share
  /// memory until one of them writes.
  virtual void fork_sequence(int64_t parent, int64_t child, int64_t position = -1) = 0;
  /// Drops the last n positions.
  virtual void popn(int64_t id, int64_t n) = 0;
  /// Opens a step: sequence ids[i] will receive append_lengths[i] tokens from each layer. The lengths count
  /// from now on. Errors (nothing has changed then): a step is open; an unknown or repeated id; more than
  /// prefill_chunk_size tokens, or none; the cache is full.
  virtual void begin_forward(std::span<const int64_t> ids, std::span<const int64_t> append_lengths) = 0;
  virtual void end_forward() = 0;
};

struct KVCacheConfig {
  int64_t max_num_sequences = 1;
  int64_t max_total_seq_len = 0;   ///< positions over all sequences, and of one sequence at most
  int64_t prefill_chunk_size = 0;  ///< tokens of one step at most
  int64_t num_layers = 0;
  int64_t num_qo_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  DType dtype = f32;          ///< of the pages: float32, float16 or bfloat16
  Ref<Tensor> rope_inv_freq;  ///< float32[R / 2], angle per position; null for no rotary embedding
  double rope_scale = 1;      ///< factor on cos and sin (YaRN's attention factor)
  Ref<Tensor> alibi_slopes;   ///< float32[H]: the bias is slope * position; null for none
  double alibi_scale = 1;     ///< factor on the bias
  DType alibi_dtype = f32;    ///< that slopes, positions and their products are rounded to: float32 or bfloat16
  int64_t window = 0;         ///< a token sees itself and the window - 1 positions before it; 0: all
  bool in_pairs = false;      ///< pages hold the numbers of a pair side by side
};

/// In bytecode:
///   vm.builtin.paged_attention_kv_cache_create(
///       shape(max_num_sequences, max_total_seq_len, prefill_chunk_size, page_size = 16),
///       num_layers, num_qo_heads, num_kv_heads, head_dim, rope_inv_freq | nothing, rope_scale, dtype,
///       kv_append, attention,
///       alibi_slopes | nothing, alibi_scale, alibi_dtype, window, in_pairs (0 or 1),
///       (rope_inv_freq | nothing, rope_scale, kv_append, attention, window, shape(layers that have these))...) -> cache
///   vm.builtin.kv_state_clear(cache), kv_state_add_sequence(cache, id), kv_state_remove_sequence(cache, id),
///   kv_state_fork_sequence(cache, parent, child[, position]), kv_state_popn(cache, id, n),
///   kv_state_begin_forward(cache, shape(ids), shape(append_lengths)), kv_state_end_forward(cache)
///   vm.builtin.attention_kv_cache_attention_with_fused_qkv(cache, layer, sm_scale, qkv[, sinks], o)
///   vm.builtin.attention_kv_cache_get_query_positions(cache) -> int32[n]
///   vm.builtin.attention_kv_cache_get_num_available_pages(cache) -> integer
///   vm.builtin.attention_kv_cache_get_total_sequence_length(cache) -> integer
///   vm.builtin.attention_kv_cache_debug_get_kv(cache, id, begin, end) -> (k, v)
/// A decode step allocates nothing when qkv and o come in the shapes of the kernels.
class PagedKVCache final : public KVState {
 public:
  /// What some layers have in the place of the configuration's rotary embedding, window and the first kernels.
  struct OtherLayers {
    Ref<Tensor> rope_inv_freq;
    double rope_scale = 1;
    int32_t kv_append = -1, attention = -1;
    int64_t window = 0;
    Dims layers;
  };
  /// `kv_append` and `attention` are indices of kernels in the function table of `vm`'s executable.
  /// Errors: a size below 1; heads that do not divide; a dtype other than float32 and float16; a table of frequencies that
  /// does not fit the head; slopes that do not fit the heads; kernels with another number of parameters; no such layer; memory
  /// is out.
  static Ref<PagedKVCache> create(VirtualMachine& vm, const KVCacheConfig& config, int32_t kv_append, int32_t attention,
                                  const std::vector<OtherLayers>& others = {});

  void clear() override;
  void add_sequence(int64_t id) override;
  void remove_sequence(int64_t id) override;
  void fork_sequence(int64_t parent, int64_t child, int64_t position = -1) override;
  void popn(int64_t id, int64_t n) override;
  void begin_forward(std::span<const int64_t> ids, std::span<const int64_t> append_lengths) override;
  void end_forward() override;

  /// One layer of the open step: appends its keys and values, then writes the attention to `o`.
  ///   qkv  float32, n * (H + 2 * G) * D elements in the order of [n, H + 2 * G, D]
  ///   o    float32, n * H * D elements in the order of [n, H, D]
  ///   sinks  float32[H]; null: the kernels take none
  /// Errors: no step is open; no such layer; another number of elements; what the kernels report.
  void attention_with_fused_qkv(VirtualMachine& vm, int64_t layer, double sm_scale, const Value& qkv, const Value& o,
                                const Value& sinks = {});
  /// int32[n], the position of each token of the open step. It shows other positions after the next
  /// begin_forward.
  Ref<Tensor> get_query_positions() const;
  /// Of the pool that has the fewest.
  int64_t num_available_pages() const;
  /// Over all sequences.
  int64_t total_sequence_length() const { return sequences().total_length(); }
  int64_t sequence_length(int64_t id) const { return sequences().length(id); }
  /// Whether a sequence can be cut back to its first `length` positions: no layer has given back what the next token sees.
  bool can_go_on_from(int64_t id, int64_t length) const;
  /// Positions [begin, end) of a sequence as float32 tensors [num_layers, end - begin, G, D].
  /// Errors: positions that are not there, or were given back in some layer.
  struct KeysAndValues {
    Ref<Tensor> k, v;
  };
  KeysAndValues debug_get_kv(int64_t id, int64_t begin, int64_t end) const;

  const KVCacheConfig& config() const { return config_; }
  /// Of the pool that has the most.
  int64_t num_pages() const { return std::ranges::max(pools_, {}, &Pool::num_pages).num_pages; }
  /// Of all pages.
  int64_t size_bytes() const;

 private:
  explicit PagedKVCache(const KVCacheConfig& config);
  void allocate_pages();
  void assign(const VirtualMachine& vm, const OtherLayers& to);  // to all layers where it names none
  void require_no_step(const char* what) const;
  void require_step(const char* what) const;
  void fill_step(std::span<const int64_t> ids, std::span<const int64_t> append_lengths);
  const PagedSequences& sequences() const { return pools_.front().sequences; }

  // An int32 tensor of fixed storage whose extent follows the step.
  struct StepTensor {
    Value value;  // holds the tensor
    Tensor* tensor = nullptr;
    int32_t* data = nullptr;
    void allocate(int64_t capacity);
    void resize(int64_t extent);
  };

  /// The cosines and sines of the positions. A row is filled before the first step that needs it: most sequences are far
  /// shorter than the longest that a model allows. Memory of rows that were never filled is not committed.
  struct RopeTable {
    RopeTable(const KVCacheConfig& config, const Tensor& frequencies, double factor);
    /// The rows of at least the first `positions` positions.
    void fill(int64_t positions);
    std::vector<float> inv_freq;  // R / 2
    double scale;
    Value rows;          // float32[max_total_seq_len, R]
    int64_t filled = 0;  // rows
  };

  /// Pages of the layers that see equally far.
  struct Pool {
    Pool(const KVCacheConfig& config, int64_t window);
    void fill_step(std::span<const int64_t> ids, std::span<const int64_t> append_lengths);
    int64_t window, num_pages;
    PagedSequences sequences;
    StepTensor slots, page_indptr, page_table;
  };
  size_t pool_of(int64_t window);
  template <class F>
  void for_each_page_tensor(const Pool& pool, F&& visit) const;

  KVCacheConfig config_;
  std::vector<Pool> pools_;  // every sequence is in all of them
  std::vector<RopeTable> rope_tables_;
  struct Layer {
    Value k_pages, v_pages;
    size_t pool = 0;
    Value rope;  // null: it is not rotated
    int32_t kv_append = -1, attention = -1;
    bool sinks = false;  // the attention takes them
  };
  std::vector<Layer> layers_;
  Value rotated_q_;  // where some layer is rotated
  Tensor* rotated_q_tensor_ = nullptr;
  Value bias_;  // null: none
  StepTensor positions_, token_seq_, q_indptr_, kv_lengths_;
  bool in_step_ = false;
  int64_t num_tokens_ = 0, longest_ = 0, scores_ = 0;  // of the step
};

}  // namespace sator::runtime
