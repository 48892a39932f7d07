#pragma once

// The two kernels of kv_cache.h in plain C++, straight from their description there: what a compiled model brings, for
// tests. Sizes come from the shapes; scores are summed in double.
#include <bit>
#include <cmath>
#include <vector>

#include "base/float16.h"
#include "runtime/executable_builder.h"
#include "runtime/vm.h"

namespace sator::runtime::testing {

struct KVShape {
  int64_t qo_heads, kv_heads, dim;
  int64_t rope = 0;  // R; 0: none
  DType dtype = f32;
  bool narrow = false;       // queries and weights of values are rounded to dtype
  bool biased = false;       // scores get bias[h, position of the key]
  bool sinks = false;        // a score of each head joins the softmax, and has no value; not with `biased`
  bool interleaved = false;  // elements 2 j and 2 j + 1 are a pair, not j and j + R / 2
  int64_t window = 0;        // a token sees itself and the window - 1 positions before it; 0: all
  bool in_pairs = false;     // pages hold the numbers of a pair side by side

  // Of element d at position `offset` of a page, for key and value head g.
  int64_t key_at(int64_t page, int64_t g, int64_t d, int64_t offset) const {
    const int64_t pair = in_pairs ? 2 : 1;
    return ((page * kv_heads + g) * (dim / pair) + d / pair) * 16 * pair + offset * pair + d % pair;
  }
  int64_t value_at(int64_t page, int64_t g, int64_t d, int64_t offset) const {
    const int64_t pair = in_pairs ? 2 : 1;
    return ((page * kv_heads + g) * (16 / pair) + offset / pair) * dim * pair + d * pair + offset % pair;
  }
};

inline float load(const void* pages, DType dtype, int64_t at) {
  if (dtype == f32) return static_cast<const float*>(pages)[at];
  const uint16_t bits = static_cast<const uint16_t*>(pages)[at];
  return dtype == f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

inline void store(void* pages, DType dtype, int64_t at, float value) {
  if (dtype == f32)
    static_cast<float*>(pages)[at] = value;
  else
    static_cast<uint16_t*>(pages)[at] = dtype == f16 ? f32_to_f16(value) : f32_to_bf16(value);
}

/// `values[0]` is n. Buffers as listed in kv_cache.h.
inline int32_t kv_append_kernel(const KVShape& s, void* const* buffers, const int64_t* values) {
  const bool rope = s.rope > 0;
  auto* qkv = static_cast<const float*>(buffers[0]);
  auto* positions = static_cast<const int32_t*>(rope ? buffers[1] : nullptr);
  auto* table = static_cast<const float*>(rope ? buffers[2] : nullptr);
  auto* slots = static_cast<const int32_t*>(buffers[rope ? 3 : 1]);
  auto* q = static_cast<float*>(rope ? buffers[4] : nullptr);
  void* k_pages = buffers[rope ? 5 : 2];
  void* v_pages = buffers[rope ? 6 : 3];
  const int64_t rows = s.qo_heads + 2 * s.kv_heads, half = s.rope / 2;
  for (int64_t t = 0; t < values[0]; ++t) {
    auto rotated = [&](int64_t row, int64_t d) {
      const float* x = qkv + (t * rows + row) * s.dim;
      if (d >= s.rope) return x[d];
      const int64_t j = s.interleaved ? d / 2 : d % half;
      const int64_t first = s.interleaved ? 2 * j : j, second = s.interleaved ? 2 * j + 1 : j + half;
      float c = table[positions[t] * s.rope + j], sine = table[positions[t] * s.rope + half + j];
      return d == first ? x[first] * c - x[second] * sine : x[second] * c + x[first] * sine;
    };
    int64_t page = slots[t] / 16, offset = slots[t] % 16;
    for (int64_t d = 0; d < s.dim; ++d) {
      if (rope)
        for (int64_t h = 0; h < s.qo_heads; ++h) q[(t * s.qo_heads + h) * s.dim + d] = rotated(h, d);
      for (int64_t g = 0; g < s.kv_heads; ++g) {
        store(k_pages, s.dtype, s.key_at(page, g, d, offset), rotated(s.qo_heads + g, d));
        store(v_pages,
              s.dtype,
              s.value_at(page, g, d, offset),
              qkv[(t * rows + s.qo_heads + s.kv_heads + g) * s.dim + d]);
      }
    }
  }
  return 0;
}

/// `values` are n, h, the bits of sm_scale and, where scores are biased, B. Reads all 64 positions of a block and masks, as a
/// vectorised kernel does.
inline int32_t attention_kernel(const KVShape& s, void* const* buffers, const int64_t* values, SatorContext* ctx) {
  auto* q = static_cast<const float*>(buffers[0]);
  auto* token_seq = static_cast<const int32_t*>(buffers[1]);
  auto* positions = static_cast<const int32_t*>(buffers[2]);
  auto* page_indptr = static_cast<const int32_t*>(buffers[5]);
  auto* page_table = static_cast<const int32_t*>(buffers[6]);
  auto* bias = static_cast<const float*>(s.biased ? buffers[9] : nullptr);
  auto* sinks = static_cast<const float*>(s.sinks ? buffers[9] : nullptr);
  auto* o = static_cast<float*>(buffers[s.biased || s.sinks ? 10 : 9]);
  const int64_t n = values[0], q_rows = values[1];
  const double scale = std::bit_cast<double>(values[2]);
  auto rounded = [&](float x) {
    uint32_t kept = 0;
    if (s.narrow) store(&kept, s.dtype, 0, x);
    return s.narrow ? load(&kept, s.dtype, 0) : x;
  };
  auto* scores = static_cast<double*>(ctx->workspace_push(ctx, 8 * (n > 0 ? 1 << 16 : 0)));
  for (int64_t t = 0; t < n; ++t)
    for (int64_t h = 0; h < s.qo_heads; ++h) {
      int64_t g = h / (s.qo_heads / s.kv_heads), length = positions[t] + 1, padded = (length + 15) / 16 * 16;
      // Of the block that the window begins in.
      const int64_t first = s.window > 0 ? std::max<int64_t>(length - s.window, 0) / 64 * 64 : 0;
      auto is_seen = [&](int64_t p) { return p < length && (s.window == 0 || length - p <= s.window); };
      auto page_of = [&](int64_t p) { return page_table[page_indptr[token_seq[t]] + p / 16]; };
      double max = sinks ? sinks[h] : -1e300, sum = 0;
      for (int64_t p = first; p < padded; ++p) {
        double dot = 0;
        for (int64_t d = 0; d < s.dim; ++d)
          dot += static_cast<double>(rounded(q[(t * q_rows + h) * s.dim + d])) *
                 load(buffers[7], s.dtype, s.key_at(page_of(p), g, d, p % 16));
        scores[p] = is_seen(p) ? dot * scale + (bias ? bias[h * values[3] + p] : 0) : -1e300;
        max = std::max(max, scores[p]);
      }
      if (sinks) sum = std::exp(sinks[h] - max);
      for (int64_t p = first; p < padded; ++p) sum += scores[p] = std::exp(scores[p] - max);
      for (int64_t d = 0; d < s.dim; ++d) {
        double y = 0;
        for (int64_t p = first; p < padded; ++p)
          y += rounded(static_cast<float>(scores[p])) * load(buffers[8], s.dtype, s.value_at(page_of(p), g, d, p % 16));
        o[(t * s.qo_heads + h) * s.dim + d] = static_cast<float>(y / sum);
      }
    }
  ctx->workspace_pop(ctx, scores);
  return 0;
}

struct KVKernels {
  int32_t kv_append, attention;
};

/// Adds the kernels "kv_append" and "attention" with the signatures of kv_cache.h for these sizes; `ending` ends their names.
inline KVKernels add_kv_kernels(ExecutableBuilder& b, KernelTable& table, const KVShape& s,
                                const std::string& ending = "") {
  auto extent = [](int64_t e) { return KernelDim::constant(e); };
  auto value = [](int64_t index) { return KernelDim::symbolic(index); };
  const int64_t pair = s.in_pairs ? 2 : 1;
  std::vector<KernelDim> k{KernelDim::any(), extent(s.kv_heads), extent(s.dim / pair), extent(16)};
  std::vector<KernelDim> v{KernelDim::any(), extent(s.kv_heads), extent(16 / pair), extent(s.dim)};
  if (s.in_pairs) k.push_back(extent(2)), v.push_back(extent(2));
  auto tensor = [](const char* name, DType dtype, std::vector<KernelDim> dims) {
    return KernelParam{.name = name, .dtype = dtype, .dims = std::move(dims)};
  };
  std::vector<KernelParam> append{tensor("qkv", f32, {value(0), extent(s.qo_heads + 2 * s.kv_heads), extent(s.dim)})};
  if (s.rope > 0) {
    append.push_back(tensor("positions", i32, {value(0)}));
    append.push_back(tensor("rope", f32, {KernelDim::any(), extent(s.rope)}));
  }
  append.push_back(tensor("slots", i32, {value(0)}));
  if (s.rope > 0) append.push_back(tensor("q", f32, {value(0), extent(s.qo_heads), extent(s.dim)}));
  append.push_back(tensor("k_pages", s.dtype, k));
  append.push_back(tensor("v_pages", s.dtype, v));
  int32_t kv_append =
      b.kernel("kv_append" + ending, {.params = append, .values = {{.name = "n", .param = 0, .dim = 0}}});
  table.add_host("kv_append" + ending, [s](void* const* buffers, const int64_t* values, SatorContext*) {
    return kv_append_kernel(s, buffers, values);
  });
  std::vector<KernelParam> attend{tensor("q", f32, {value(0), value(1), extent(s.dim)}),
                                  tensor("token_seq", i32, {value(0)}),
                                  tensor("positions", i32, {value(0)}),
                                  tensor("q_indptr", i32, {KernelDim::any()}),
                                  tensor("kv_lengths", i32, {KernelDim::any()}),
                                  tensor("page_indptr", i32, {KernelDim::any()}),
                                  tensor("page_table", i32, {KernelDim::any()}),
                                  tensor("k_pages", s.dtype, k),
                                  tensor("v_pages", s.dtype, v)};
  if (s.biased) attend.push_back(tensor("bias", f32, {extent(s.qo_heads), value(3)}));
  if (s.sinks) attend.push_back(tensor("sinks", f32, {extent(s.qo_heads)}));
  attend.push_back(tensor("o", f32, {value(0), extent(s.qo_heads), extent(s.dim)}));
  const auto last = static_cast<int32_t>(attend.size());
  attend.push_back({.name = "sm_scale", .dtype = f32, .is_tensor = false, .value = 2});
  std::vector<KernelValue> values{
      {.name = "n", .param = 0, .dim = 0}, {.name = "h", .param = 0, .dim = 1}, {.name = "sm_scale", .param = last}};
  if (s.biased) values.push_back({.name = "B", .param = 9, .dim = 1});
  int32_t attention = b.kernel("attention" + ending, {.params = std::move(attend), .values = std::move(values)});
  table.add_host("attention" + ending, [s](void* const* buffers, const int64_t* values, SatorContext* ctx) {
    return attention_kernel(s, buffers, values, ctx);
  });
  return {kv_append, attention};
}

}  // namespace sator::runtime::testing
