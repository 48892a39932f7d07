#include "llm/attention.h"

#include "tir/parse.h"

namespace sator::llm {

namespace {

/// The text with each {name} replaced by its value.
std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [name, value] : values) {
    std::string hole = "{" + name + "}";
    for (size_t at = text.find(hole); at != text.npos; at = text.find(hole, at + value.size()))
      text.replace(at, hole.size(), value);
  }
  return text;
}

tir::PrimFuncRef kernel(const char* source, const AttentionShape& s) {
  auto num = [](int64_t v) { return text(v); };
  return tir::parse_function(filled(source, {{"H", num(s.num_qo_heads)},
                                              {"G", num(s.num_kv_heads)},
                                              {"D", num(s.head_dim)},
                                              {"R", num(s.rotary_dim)},
                                              {"R2", num(s.rotary_dim / 2)},
                                              {"HG", num(s.num_qo_heads + s.num_kv_heads)},
                                              {"QKV", num(s.num_qo_heads + 2 * s.num_kv_heads)},
                                              {"SHARE", num(s.num_qo_heads / s.num_kv_heads)},
                                              {"GD", num(s.num_kv_heads * s.head_dim)},
                                              {"T", s.cache_dtype.name()}}));
}

constexpr const char* kAppend = R"(
@T.prim_func
def kv_append(qkv_handle: T.handle, slots_handle: T.handle, k_pages_handle: T.handle, v_pages_handle: T.handle):
    T.func_attr({"tir.noalias": T.bool(True), "tir.is_scheduled": 1})
    n = T.int64()
    pages = T.int64()
    qkv = T.match_buffer(qkv_handle, (n, {QKV}, {D}), "float32")
    slots = T.match_buffer(slots_handle, (n,), "int32")
    k_pages = T.match_buffer(k_pages_handle, (pages, {G}, {D}, 16), "{T}")
    v_pages = T.match_buffer(v_pages_handle, (pages, {G}, 16, {D}), "{T}")
    for t in range(n):
        for g, d in T.grid({G}, {D}):
            with T.block("key"):
                vt = T.axis.opaque(n, t)
                vg = T.axis.spatial({G}, g)
                vd = T.axis.spatial({D}, d)
                T.reads(slots[vt], qkv[vt, {H} + vg, vd])
                T.writes(k_pages[0:pages, vg, vd, 0:16])
                k_pages[slots[vt] // 16, vg, vd, slots[vt] % 16] = T.cast(qkv[vt, {H} + vg, vd], "{T}")
        for g in range({G}):
            for d in T.vectorized({D}):
                with T.block("value"):
                    vt = T.axis.opaque(n, t)
                    vg = T.axis.spatial({G}, g)
                    vd = T.axis.spatial({D}, d)
                    T.reads(slots[vt], qkv[vt, {HG} + vg, vd])
                    T.writes(v_pages[0:pages, vg, 0:16, vd])
                    v_pages[slots[vt] // 16, vg, slots[vt] % 16, vd] = T.cast(qkv[vt, {HG} + vg, vd], "{T}")
)";

// Row p of `rope` holds the cosines, then the sines; element j is paired with j + R/2 (Llama's order).
constexpr const char* kAppendRotated = R"(
@T.prim_func
def kv_append(qkv_handle: T.handle, positions_handle: T.handle, rope_handle: T.handle, slots_handle: T.handle, q_handle: T.handle, k_pages_handle: T.handle, v_pages_handle: T.handle):
    T.func_attr({"tir.noalias": T.bool(True), "tir.is_scheduled": 1})
    n = T.int64()
    pages = T.int64()
    limit = T.int64()
    qkv = T.match_buffer(qkv_handle, (n, {QKV}, {D}), "float32")
    positions = T.match_buffer(positions_handle, (n,), "int32")
    rope = T.match_buffer(rope_handle, (limit, {R}), "float32")
    slots = T.match_buffer(slots_handle, (n,), "int32")
    q = T.match_buffer(q_handle, (n, {H}, {D}), "float32")
    k_pages = T.match_buffer(k_pages_handle, (pages, {G}, {D}, 16), "{T}")
    v_pages = T.match_buffer(v_pages_handle, (pages, {G}, 16, {D}), "{T}")
    for t in range(n):
        for h, d in T.grid({H}, {D}):
            with T.block("query"):
                vt = T.axis.spatial(n, t)
                vh = T.axis.spatial({H}, h)
                vd = T.axis.spatial({D}, d)
                T.reads(positions[vt], rope[0:limit, 0:{R}], qkv[vt, vh, 0:{D}])
                T.writes(q[vt, vh, vd])
                q[vt, vh, vd] = T.if_then_else(vd < {R2}, qkv[vt, vh, vd] * rope[positions[vt], vd % {R2}] - qkv[vt, vh, (vd + {R2}) % {D}] * rope[positions[vt], {R2} + vd % {R2}], T.if_then_else(vd < {R}, qkv[vt, vh, vd] * rope[positions[vt], vd % {R2}] + qkv[vt, vh, (vd + {D} - {R2}) % {D}] * rope[positions[vt], {R2} + vd % {R2}], qkv[vt, vh, vd]))
        for g, d in T.grid({G}, {D}):
            with T.block("key"):
                vt = T.axis.opaque(n, t)
                vg = T.axis.spatial({G}, g)
                vd = T.axis.spatial({D}, d)
                T.reads(positions[vt], rope[0:limit, 0:{R}], slots[vt], qkv[vt, {H} + vg, 0:{D}])
                T.writes(k_pages[0:pages, vg, vd, 0:16])
                k_pages[slots[vt] // 16, vg, vd, slots[vt] % 16] = T.cast(T.if_then_else(vd < {R2}, qkv[vt, {H} + vg, vd] * rope[positions[vt], vd % {R2}] - qkv[vt, {H} + vg, (vd + {R2}) % {D}] * rope[positions[vt], {R2} + vd % {R2}], T.if_then_else(vd < {R}, qkv[vt, {H} + vg, vd] * rope[positions[vt], vd % {R2}] + qkv[vt, {H} + vg, (vd + {D} - {R2}) % {D}] * rope[positions[vt], {R2} + vd % {R2}], qkv[vt, {H} + vg, vd])), "{T}")
        for g in range({G}):
            for d in T.vectorized({D}):
                with T.block("value"):
                    vt = T.axis.opaque(n, t)
                    vg = T.axis.spatial({G}, g)
                    vd = T.axis.spatial({D}, d)
                    T.reads(slots[vt], qkv[vt, {HG} + vg, vd])
                    T.writes(v_pages[0:pages, vg, 0:16, vd])
                    v_pages[slots[vt] // 16, vg, slots[vt] % 16, vd] = T.cast(qkv[vt, {HG} + vg, vd], "{T}")
)";

// Per token and head: scores of 16 positions at once (K is stored transposed), their maximum and sum carried along, the
// weighted values accumulated at full width. Positions after the token's own score -1e30 and weigh nothing.
constexpr const char* kAttention = R"(
@T.prim_func
def attention(q_handle: T.handle, token_seq_handle: T.handle, positions_handle: T.handle, q_indptr_handle: T.handle, kv_lengths_handle: T.handle, page_indptr_handle: T.handle, page_table_handle: T.handle, k_pages_handle: T.handle, v_pages_handle: T.handle, o_handle: T.handle, sm_scale: T.float32):
    T.func_attr({"tir.noalias": T.bool(True), "tir.is_scheduled": 1})
    n = T.int64()
    b = T.int64()
    b1 = T.int64()
    m = T.int64()
    pages = T.int64()
    heads = T.int64()
    q = T.match_buffer(q_handle, (n, heads, {D}), "float32")
    token_seq = T.match_buffer(token_seq_handle, (n,), "int32")
    positions = T.match_buffer(positions_handle, (n,), "int32")
    q_indptr = T.match_buffer(q_indptr_handle, (b1,), "int32")
    kv_lengths = T.match_buffer(kv_lengths_handle, (b,), "int32")
    page_indptr = T.match_buffer(page_indptr_handle, (b1,), "int32")
    page_table = T.match_buffer(page_table_handle, (m,), "int32")
    k_pages = T.match_buffer(k_pages_handle, (pages, {G}, {D}, 16), "{T}")
    v_pages = T.match_buffer(v_pages_handle, (pages, {G}, 16, {D}), "{T}")
    o = T.match_buffer(o_handle, (n, {H}, {D}), "float32")
    for t_h in T.parallel(n * T.int64({H})):
        with T.block("attention"):
            vt = T.axis.spatial(n, t_h // T.int64({H}))
            vh = T.axis.spatial(T.int64({H}), t_h % T.int64({H}))
            T.reads(q[vt, vh, 0:{D}], token_seq[vt], positions[vt], page_indptr[0:b1], page_table[0:m], k_pages[0:pages, 0:{G}, 0:{D}, 0:16], v_pages[0:pages, 0:{G}, 0:16, 0:{D}])
            T.writes(o[vt, vh, 0:{D}])
            scores = T.alloc_buffer((16,), scope="local")
            top = T.alloc_buffer((16,), scope="local")
            total = T.alloc_buffer((16,), scope="local")
            running = T.alloc_buffer((1,), scope="local")
            scale = T.alloc_buffer((1,), scope="local")
            sums = T.alloc_buffer((1,), scope="local")
            acc = T.alloc_buffer(({D},), scope="local")
            running[0] = T.float32(-1e30)
            for j in T.vectorized(16):
                total[j] = T.float32(0)
            for d in T.vectorized({D}):
                acc[d] = T.float32(0)
            for p in range(positions[vt] // 16 + 1):
                page: T.int32 = page_table[page_indptr[token_seq[vt]] + p]
                for j in T.vectorized(16):
                    scores[j] = T.float32(0)
                for d in range({D}):
                    for j in T.vectorized(16):
                        scores[j] = scores[j] + q[vt, vh, d] * T.cast(k_pages[page, vh // T.int64({SHARE}), d, j], "float32")
                for j in T.vectorized(16):
                    scores[j] = T.if_then_else(p * 16 + j <= positions[vt], scores[j] * sm_scale, T.float32(-1e30))
                for j in T.vectorized(16):
                    top[j] = scores[j]
                for j in T.vectorized(8):
                    top[j] = T.max(top[j], top[j + 8])
                for j in T.vectorized(4):
                    top[j] = T.max(top[j], top[j + 4])
                for j in T.vectorized(2):
                    top[j] = T.max(top[j], top[j + 2])
                top[0] = T.max(T.max(top[0], top[1]), running[0])
                scale[0] = T.exp(running[0] - top[0])
                running[0] = top[0]
                for j in T.vectorized(16):
                    scores[j] = T.exp(scores[j] - running[0])
                for j in T.vectorized(16):
                    total[j] = total[j] * scale[0] + scores[j]
                for d in T.vectorized({D}):
                    acc[d] = acc[d] * scale[0]
                for j in range(16):
                    for d in T.vectorized({D}):
                        acc[d] = acc[d] + scores[j] * T.cast(v_pages[page, vh // T.int64({SHARE}), j, d], "float32")
            for j in T.vectorized(8):
                total[j] = total[j] + total[j + 8]
            for j in T.vectorized(4):
                total[j] = total[j] + total[j + 4]
            for j in T.vectorized(2):
                total[j] = total[j] + total[j + 2]
            sums[0] = T.float32(1) / (total[0] + total[1])
            for d in T.vectorized({D}):
                o[vt, vh, d] = acc[d] * sums[0]
)";

constexpr const char* kAttentionWork = R"(
@T.prim_func
def attention_work(q_handle: T.handle, k_handle: T.handle, v_handle: T.handle, o_handle: T.handle, sm_scale: T.float32):
    T.func_attr({"tir.noalias": T.bool(True)})
    n = T.int64()
    kv_len = T.int64()
    q = T.match_buffer(q_handle, (n, {H}, {D}), "float32")
    k = T.match_buffer(k_handle, ({G}, kv_len, {D}), "{T}")
    v = T.match_buffer(v_handle, ({G}, kv_len, {D}), "{T}")
    o = T.match_buffer(o_handle, (n, {H}, {D}), "float32")
    s = T.alloc_buffer((n, {H}, kv_len), "float32")
    largest = T.alloc_buffer((n, {H}), "float32")
    e = T.alloc_buffer((n, {H}, kv_len), "float32")
    total = T.alloc_buffer((n, {H}), "float32")
    weighted = T.alloc_buffer((n, {H}, {D}), "float32")
    for h, i, j, d in T.grid({H}, n, kv_len, {D}):
        with T.block("scores"):
            vh, vi, vj, vd = T.axis.remap("SSSR", [h, i, j, d])
            with T.init():
                s[vi, vh, vj] = T.float32(0)
            s[vi, vh, vj] = s[vi, vh, vj] + q[vi, vh, vd] * T.cast(k[vh // {SHARE}, vj, vd], "float32")
    for h, i, j in T.grid({H}, n, kv_len):
        with T.block("largest"):
            vh, vi, vj = T.axis.remap("SSR", [h, i, j])
            with T.init():
                largest[vi, vh] = T.float32(-3.4e38)
            largest[vi, vh] = T.max(largest[vi, vh], s[vi, vh, vj])
    for h, i, j in T.grid({H}, n, kv_len):
        with T.block("exponentials"):
            vh, vi, vj = T.axis.remap("SSS", [h, i, j])
            e[vi, vh, vj] = T.exp((s[vi, vh, vj] - largest[vi, vh]) * sm_scale)
    for h, i, j in T.grid({H}, n, kv_len):
        with T.block("total"):
            vh, vi, vj = T.axis.remap("SSR", [h, i, j])
            with T.init():
                total[vi, vh] = T.float32(0)
            total[vi, vh] = total[vi, vh] + e[vi, vh, vj]
    for h, i, d, j in T.grid({H}, n, {D}, kv_len):
        with T.block("values"):
            vh, vi, vd, vj = T.axis.remap("SSSR", [h, i, d, j])
            with T.init():
                weighted[vi, vh, vd] = T.float32(0)
            weighted[vi, vh, vd] = weighted[vi, vh, vd] + e[vi, vh, vj] * T.cast(v[vh // {SHARE}, vj, vd], "float32")
    for h, i, d in T.grid({H}, n, {D}):
        with T.block("attention"):
            vh, vi, vd = T.axis.remap("SSS", [h, i, d])
            o[vi, vh, vd] = weighted[vi, vh, vd] / total[vi, vh]
)";

void check(const AttentionShape& s) {
  if (s.num_kv_heads < 1 || s.num_qo_heads % s.num_kv_heads != 0 || s.head_dim < 1 || s.rotary_dim < 0 ||
      s.rotary_dim % 2 != 0 || s.rotary_dim > s.head_dim)
    internal_error("attention: heads or sizes that do not fit each other");
}

}  // namespace

tir::PrimFuncRef kv_append_kernel(const AttentionShape& shape) {
  check(shape);
  return kernel(shape.rotary_dim > 0 ? kAppendRotated : kAppend, shape);
}

tir::PrimFuncRef attention_kernel(const AttentionShape& shape) {
  check(shape);
  return kernel(kAttention, shape);
}

tir::PrimFuncRef attention_work(const AttentionShape& shape) {
  check(shape);
  return kernel(kAttentionWork, shape);
}

}  // namespace sator::llm
