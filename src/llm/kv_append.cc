#include "base/text.h"
#include "llm/attention_text.h"

namespace sator::llm {

namespace {

// A token's keys and values go to their slot in their pages; with rotary embedding, queries and keys are rotated first. 16 tokens, a
// page of a sequence perhaps, go head by head, for a page of one head is near then. A key is rounded in a row of its own, for its
// elements lie apart in a page. Values in pairs of positions are written two tokens at a time, by the
// first of them: no other writes a part of its pairs then.
constexpr const char* kAppend = R"(
@T.prim_func
def kv_append(qkv_handle: T.handle, {ROPE_HANDLES}slots_handle: T.handle, {QUERY_HANDLE}k_pages_handle: T.handle, v_pages_handle: T.handle):
    T.func_attr({"tir.noalias": T.bool(True), "tir.is_scheduled": 1, "sator.trusted_indices": 1})
    n = T.int64()
    pages = T.int64()
    qkv = T.match_buffer(qkv_handle, (n, {QKV}, {D}), "float32")
{ROPE_BUFFERS}    slots = T.match_buffer(slots_handle, (n,), "int32")
{QUERY_BUFFER}    k_pages = T.match_buffer(k_pages_handle, {K_PAGES}, "{T}")
    v_pages = T.match_buffer(v_pages_handle, {V_PAGES}, "{T}")
    for i in T.parallel((n + T.int64(15)) // T.int64(16)):
        with T.block("tokens"):
            vi = T.axis.opaque((n + T.int64(15)) // T.int64(16), i)
            T.reads({ROPE_READS}slots[0:n], qkv[0:n, 0:{QKV}, 0:{D}])
            T.writes({QUERY_WRITES}k_pages[0:pages, 0:{G}, {K_PAGE}], v_pages[0:pages, 0:{G}, {V_PAGE}])
            key = T.alloc_buffer(({D},), "{T}", scope="local")
            first: T.int64 = vi * T.int64(16)
            tokens: T.int64 = T.min(T.int64(16), n - first)
{QUERIES}            for g, s in T.grid({G}, tokens):
                t: T.int64 = first + s
                page: T.int32 = slots[t] // 16
                offset: T.int32 = slots[t] % 16
{KEY}{STORE_KEY}{STORE_VALUE})";

constexpr const char* kRopeHandles = "positions_handle: T.handle, rope_handle: T.handle, ";
constexpr const char* kRopeBuffers = R"(    limit = T.int64()
    positions = T.match_buffer(positions_handle, (n,), "int32")
    rope = T.match_buffer(rope_handle, (limit, {R}), "float32")
)";
constexpr const char* kRopeReads = "positions[0:n], rope[0:limit, 0:{R}], ";
constexpr const char* kQueryHandle = "q_handle: T.handle, ";
constexpr const char* kQueryBuffer = R"(    q = T.match_buffer(q_handle, (n, {H}, {D}), "float32")
)";
constexpr const char* kQueryWrites = "q[0:n, 0:{H}, 0:{D}], ";
constexpr const char* kQueries = R"(            for r, h in T.grid(tokens, {H}):
                t: T.int64 = first + r
{QUERY}
)";

constexpr const char* kStoreKey = R"(
                for d in range({D}):
                    k_pages[page, g, d, offset] = key[d]
)";
constexpr const char* kStoreValue = R"(
                for d in T.vectorized({D}):
                    v_pages[page, g, offset, d] = T.cast(qkv[t, {HG} + g, d], "{T}")
)";
constexpr const char* kStoreKeyInPairs = R"(
                for d in range({D2}):
                    for e in T.vectorized(2):
                        k_pages[page, g, d, offset, e] = key[d * 2 + e]
)";
constexpr const char* kStoreValueInPairs = R"(
                if offset % 2 == 0 and t + 1 < n and slots[T.min(t + 1, n - 1)] == slots[t] + 1:
                    for d in T.vectorized({D}):
                        v_pages[page, g, offset // 2, d, T.ramp(0, 1, 2)] = T.reinterpret("bfloat16x2", T.bitwise_or(T.cast(T.reinterpret("uint16", T.cast(qkv[t, {HG} + g, d], "{T}")), "uint32"), T.shift_left(T.cast(T.reinterpret("uint16", T.cast(qkv[T.min(t + 1, n - 1), {HG} + g, d], "{T}")), "uint32"), T.uint32(16))))
                elif offset % 2 == 0 or t == 0 or slots[T.max(t - 1, 0)] + 1 != slots[t]:
                    for d in range({D}):
                        v_pages[page, g, offset // 2, d, offset % 2] = T.cast(qkv[t, {HG} + g, d], "{T}")
)";

// The {D} elements of a rotated head {X} into {TO}[.., d]. Row p of `rope` holds the cosines, then the sines; element j is paired with
// j + R/2 (Llama's order), or 2 j with 2 j + 1 (GPT-J's). Elements from R on are not rotated.
constexpr const char* kRotateHalves = R"(
for d in T.vectorized({R2}):
    {TO}d] = {CAST}qkv[t, {X}, d] * rope[positions[t], d] - qkv[t, {X}, d + {R2}] * rope[positions[t], {R2} + d]{CAST_END}
for d in T.vectorized({R2}):
    {TO}d + {R2}] = {CAST}qkv[t, {X}, d + {R2}] * rope[positions[t], d] + qkv[t, {X}, d] * rope[positions[t], {R2} + d]{CAST_END}
)";
constexpr const char* kRotatePairs = R"(
for d in range({R2}):
    {TO}d * 2] = {CAST}qkv[t, {X}, d * 2] * rope[positions[t], d] - qkv[t, {X}, d * 2 + 1] * rope[positions[t], {R2} + d]{CAST_END}
    {TO}d * 2 + 1] = {CAST}qkv[t, {X}, d * 2 + 1] * rope[positions[t], d] + qkv[t, {X}, d * 2] * rope[positions[t], {R2} + d]{CAST_END}
)";
constexpr const char* kCopyRest = R"(
for d in T.vectorized({D} - {R}):
    {TO}d + {R}] = {CAST}qkv[t, {X}, d + {R}]{CAST_END}
)";

// What kv_append computes as blocks of one affine store each, on pages that are not in pairs: the work that the cost engine reads.
constexpr const char* kAppendWork = R"(
@T.prim_func
def kv_append_work(qkv_handle: T.handle, {ROPE_HANDLES}slots_handle: T.handle, {QUERY_HANDLE}k_pages_handle: T.handle, v_pages_handle: T.handle):
    T.func_attr({"tir.noalias": T.bool(True), "sator.trusted_indices": 1})
    n = T.int64()
    pages = T.int64()
    qkv = T.match_buffer(qkv_handle, (n, {QKV}, {D}), "float32")
{ROPE_BUFFERS}    slots = T.match_buffer(slots_handle, (n,), "int32")
{QUERY_BUFFER}    k_pages = T.match_buffer(k_pages_handle, (pages, {G}, {D}, 16), "{T}")
    v_pages = T.match_buffer(v_pages_handle, (pages, {G}, 16, {D}), "{T}")
    for t in T.parallel(n):
{QUERIES}        for g, d in T.grid({G}, {D}):
            with T.block("key"):
                vt = T.axis.opaque(n, t)
                vg = T.axis.spatial({G}, g)
                vd = T.axis.spatial({D}, d)
                T.reads({KEY_READS})
                T.writes(k_pages[0:pages, vg, vd, 0:16])
                k_pages[slots[vt] // 16, vg, vd, slots[vt] % 16] = T.cast({KEY}, "{T}")
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
constexpr const char* kQueriesWork = R"(        for h, d in T.grid({H}, {D}):
            with T.block("query"):
                vt = T.axis.spatial(n, t)
                vh = T.axis.spatial({H}, h)
                vd = T.axis.spatial({D}, d)
                T.reads(positions[vt], rope[0:limit, 0:{R}], qkv[vt, vh, 0:{D}])
                T.writes(q[vt, vh, vd])
                q[vt, vh, vd] = {ROTATED_QUERY}
)";
constexpr const char* kCopiedKey = "qkv[vt, {H} + vg, vd]";
constexpr const char* kCopiedKeyReads = "slots[vt], qkv[vt, {H} + vg, vd]";
constexpr const char* kRotatedKeyReads = "positions[vt], rope[0:limit, 0:{R}], slots[vt], qkv[vt, {H} + vg, 0:{D}]";

// Element vd of a rotated head {X}. Row p of `rope` holds the cosines, then the sines; element j is paired with j + R/2
// (Llama's order), or 2 j with 2 j + 1 (GPT-J's). Elements from R on are not rotated; their indices stay inside of the head.
// clang-format off
constexpr const char* kRotatedHalves =
    "T.if_then_else(vd < {R2}, qkv[vt, {X}, vd] * rope[positions[vt], vd % {R2}]"
    " - qkv[vt, {X}, (vd + {R2}) % {D}] * rope[positions[vt], {R2} + vd % {R2}], "
    "T.if_then_else(vd < {R}, qkv[vt, {X}, vd] * rope[positions[vt], vd % {R2}]"
    " + qkv[vt, {X}, (vd + {D} - {R2}) % {D}] * rope[positions[vt], {R2} + vd % {R2}], qkv[vt, {X}, vd]))";
constexpr const char* kRotatedPairs =
    "T.if_then_else(vd < {R}, qkv[vt, {X}, vd] * rope[positions[vt], vd // 2 % {R2}]"
    " + T.if_then_else(vd % 2 == 0, T.float32(-1), T.float32(1)) * qkv[vt, {X}, {PARTNER}]"
    " * rope[positions[vt], {R2} + vd // 2 % {R2}], qkv[vt, {X}, vd])";
// clang-format on
// The other of a pair. In a head of odd size the last element has none: there the index is kept inside, for nothing.
constexpr const char* kPartner = "vd // 2 * 2 + (1 - vd % 2)";
constexpr const char* kPartnerOfOdd = "(vd // 2 * 2 + (1 - vd % 2)) % {D}";

/// What writes a head of `shape` into a row: one that is rotated, or copied.
std::string row_of_head(const AttentionShape& shape, const char* to, const char* head, bool rounded, size_t spaces) {
  std::string source;
  if (shape.rotary_dim > 0) source = shape.interleaved ? kRotatePairs : kRotateHalves;
  if (shape.rotary_dim < shape.head_dim) source += kCopyRest;
  return indented(
      filled(source,
             {{"TO", to}, {"X", head}, {"CAST", rounded ? "T.cast(" : ""}, {"CAST_END", rounded ? R"(, "{T}"))" : ""}}),
      spaces);
}

}  // namespace

tir::PrimFuncRef kv_append_kernel(const AttentionShape& shape) {
  check_shape(shape);
  const bool rotated = shape.rotary_dim > 0;
  const Holes values = {{"ROPE_HANDLES", rotated ? kRopeHandles : ""},
                        {"ROPE_BUFFERS", rotated ? kRopeBuffers : ""},
                        {"ROPE_READS", rotated ? kRopeReads : ""},
                        {"QUERY_HANDLE", rotated ? kQueryHandle : ""},
                        {"QUERY_BUFFER", rotated ? kQueryBuffer : ""},
                        {"QUERY_WRITES", rotated ? kQueryWrites : ""},
                        {"QUERIES", rotated ? kQueries : ""},
                        {"QUERY", row_of_head(shape, "q[t, h, ", "h", false, 16)},
                        {"KEY", row_of_head(shape, "key[", "{H} + g", true, 16)},
                        {"STORE_KEY", shape.in_pairs() ? kStoreKeyInPairs : kStoreKey},
                        {"STORE_VALUE", shape.in_pairs() ? kStoreValueInPairs : kStoreValue}};
  return attention_function(filled(kAppend, values), shape);
}

tir::PrimFuncRef kv_append_work(const AttentionShape& shape) {
  check_shape(shape);
  const bool rotates = shape.rotary_dim > 0;
  const char* partner = shape.head_dim % 2 == 0 ? kPartner : kPartnerOfOdd;
  const std::string rotated = shape.interleaved ? filled(kRotatedPairs, {{"PARTNER", partner}}) : kRotatedHalves;
  const Holes values = {
      {"ROPE_HANDLES", rotates ? kRopeHandles : ""},
      {"ROPE_BUFFERS", rotates ? kRopeBuffers : ""},
      {"QUERY_HANDLE", rotates ? kQueryHandle : ""},
      {"QUERY_BUFFER", rotates ? kQueryBuffer : ""},
      {"QUERIES", rotates ? filled(kQueriesWork, {{"ROTATED_QUERY", filled(rotated, {{"X", "vh"}})}}) : ""},
      {"KEY_READS", rotates ? kRotatedKeyReads : kCopiedKeyReads},
      {"KEY", rotates ? filled(rotated, {{"X", "{H} + vg"}}) : kCopiedKey}};
  return attention_function(filled(kAppendWork, values), shape);
}

}  // namespace sator::llm
