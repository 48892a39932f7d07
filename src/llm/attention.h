// The two kernels that a paged KV cache calls and the work of each, as tensor functions written in TVMScript. Their parameters are those of
// runtime/kv_cache.h.
#pragma once

#include "tir/nodes.h"

namespace sator::llm {

struct AttentionShape {
  int64_t num_qo_heads = 0;  ///< H
  int64_t num_kv_heads = 0;  ///< G; query head h reads key and value head h // (H // G)
  int64_t head_dim = 0;      ///< D
  int64_t rotary_dim = 0;    ///< R: even, at most D; 0 for no rotary embedding
  DType cache_dtype = f32;   ///< of the pages: float32, float16 or bfloat16
  bool narrow = false;       ///< queries and the weights of values are rounded to it too, before each product
  int64_t window = 0;        ///< a token sees itself and the window - 1 positions before it; 0: all
  double soft_cap = 0;       ///< scores become cap * tanh(score / cap) before the mask; 0: they do not
  bool biased = false;       ///< scores get an addition by head and key position
  bool sinks = false;        ///< a score of each head joins the softmax, and has no value; not with `biased`
  bool interleaved = false;  ///< elements 2 j and 2 j + 1 are rotated together, not j and j + R / 2

  /// Products of bfloat16 are summed in pairs (T.dot2), and pages hold what is one pair side by side.
  bool in_pairs() const { return narrow && cache_dtype == bf16 && head_dim % 2 == 0; }
};

/// Writes the keys and values of a step into their pages; with rotary embedding, rotates queries and keys first.
tir::PrimFuncRef kv_append_kernel(const AttentionShape& shape);

/// The same as one affine block for each thing that is written, on pages that are not in pairs: the work that the cost engine reads.
tir::PrimFuncRef kv_append_work(const AttentionShape& shape);

/// Causal attention of a step's tokens over the pages of their sequences, by the online softmax: one pass over the
/// cache, 16 positions at a time, sums in f32.
/// Source: Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022.
tir::PrimFuncRef attention_kernel(const AttentionShape& shape);

/// What attention computes when the page table is left out, as an affine function over [n, H, kv_len]: the work that the
/// cost engine reads. Token i stands at position kv_len - n + i; later positions, and those before its window, are no work. (The
/// kernel computes whole pages: 8 tokens together go up to the end of the last one's page, with a window from the start of the block of
/// 4 pages in which the first one's begins; it masks what lies outside.) The attribute sator.one_pass says that the kernel above,
/// which runs, makes it in one pass over keys and values.
/// Parameters: q [n, H, D], k [G, kv_len, D], v [G, kv_len, D], bias [H, kv_len] if `biased`, sinks [H] if `sinks`, o [n, H, D],
/// the scale of the scores.
tir::PrimFuncRef attention_work(const AttentionShape& shape);

}  // namespace sator::llm
