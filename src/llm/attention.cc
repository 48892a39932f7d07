#include "llm/attention.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "base/text.h"
#include "runtime/paged_sequences.h"
#include "tir/parse.h"

namespace sator::llm {

namespace {

static_assert(runtime::PagedSequences::kPageSize == 16, "the kernels below are written for pages of 16 positions");

using Values = std::vector<std::pair<std::string, std::string>>;

Values shape_values(const AttentionShape& s) {
  auto num = [](int64_t v) { return text(v); };
  const bool pairs = s.in_pairs();
  return {{"K_PAGES", pairs ? "(pages, {G}, {D2}, 16, 2)" : "(pages, {G}, {D}, 16)"},
          {"V_PAGES", pairs ? "(pages, {G}, 8, {D}, 2)" : "(pages, {G}, 16, {D})"},
          {"K_PAGE", pairs ? "0:{D2}, 0:16, 0:2" : "0:{D}, 0:16"},
          {"V_PAGE", pairs ? "0:8, 0:{D}, 0:2" : "0:16, 0:{D}"},
          {"H", num(s.num_qo_heads)},
          {"G", num(s.num_kv_heads)},
          {"D", num(s.head_dim)},
          {"D2", num(s.head_dim / 2)},
          {"R", num(s.rotary_dim)},
          {"R2", num(s.rotary_dim / 2)},
          {"HG", num(s.num_qo_heads + s.num_kv_heads)},
          {"QKV", num(s.num_qo_heads + 2 * s.num_kv_heads)},
          {"SHARE", num(s.num_qo_heads / s.num_kv_heads)},
          {"T", s.cache_dtype.name()}};
}

/// Functions are read once: the programs of a model's schemes have the same.
tir::PrimFuncRef kernel(const char* source, const AttentionShape& s) {
  static std::mutex one_at_a_time;
  static std::unordered_map<std::string, tir::PrimFuncRef> known;
  std::string program = filled(source, shape_values(s));
  const std::lock_guard lock(one_at_a_time);
  tir::PrimFuncRef& func = known[program];
  if (!func) func = tir::parse_function(std::move(program));
  return func;
}

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
def kv_append_work(qkv_handle: T.handle, slots_handle: T.handle, k_pages_handle: T.handle, v_pages_handle: T.handle):
    T.func_attr({"tir.noalias": T.bool(True), "sator.trusted_indices": 1})
    n = T.int64()
    pages = T.int64()
    qkv = T.match_buffer(qkv_handle, (n, {QKV}, {D}), "float32")
    slots = T.match_buffer(slots_handle, (n,), "int32")
    k_pages = T.match_buffer(k_pages_handle, (pages, {G}, {D}, 16), "{T}")
    v_pages = T.match_buffer(v_pages_handle, (pages, {G}, 16, {D}), "{T}")
    for t in T.parallel(n):
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

constexpr const char* kAppendRotatedWork = R"(
@T.prim_func
def kv_append_work(qkv_handle: T.handle, positions_handle: T.handle, rope_handle: T.handle, slots_handle: T.handle, q_handle: T.handle, k_pages_handle: T.handle, v_pages_handle: T.handle):
    T.func_attr({"tir.noalias": T.bool(True), "sator.trusted_indices": 1})
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
    for t in T.parallel(n):
        for h, d in T.grid({H}, {D}):
            with T.block("query"):
                vt = T.axis.spatial(n, t)
                vh = T.axis.spatial({H}, h)
                vd = T.axis.spatial({D}, d)
                T.reads(positions[vt], rope[0:limit, 0:{R}], qkv[vt, vh, 0:{D}])
                T.writes(q[vt, vh, vd])
                q[vt, vh, vd] = {ROTATED_QUERY}
        for g, d in T.grid({G}, {D}):
            with T.block("key"):
                vt = T.axis.opaque(n, t)
                vg = T.axis.spatial({G}, g)
                vd = T.axis.spatial({D}, d)
                T.reads(positions[vt], rope[0:limit, 0:{R}], slots[vt], qkv[vt, {H} + vg, 0:{D}])
                T.writes(k_pages[0:pages, vg, vd, 0:16])
                k_pages[slots[vt] // 16, vg, vd, slots[vt] % 16] = T.cast({ROTATED_KEY}, "{T}")
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

// Attention of {R} query rows of one sequence, tokens of one head or heads of one token that share keys, by blocks of {B} pages:
//   scores  {SR} rows x {KB} pages at a time, sums in registers; K is stored transposed, so 16 positions are one vector
//   softmax carried along: the largest score of each row, the sum of its weights (lane by lane), the weighted values
//   values  {VR} rows x {DC} elements at a time, sums in registers
// A position after its query's own scores -1e30 and weighs nothing, as do the pages that fill up the last block.
// Holes beside the shape's: {S} ends the names of buffers, {TOKEN} and {HEAD} are those of row r, {LAST} is the token of the last
// row, {QUERY} its element d, {ROUND} rounds the weights of the values, {SEEN} says which positions it sees. {FROM} is the first block
// with a position that row 0, the earliest, sees. Where a window masks a whole block for a later row, its weights are wiped
// out by the first block with a position that is seen: each row sees its own.
constexpr const char* kRows = R"(
last{S}: T.int32 = positions[{LAST}]
table{S}: T.int32 = page_indptr[token_seq[{LAST}]]
for r in range({R}):
    running{S}[r] = {FIRST_PEAK}
    for d in T.vectorized({D}):
        rows{S}[r, d] = {QUERY}
    for j in T.vectorized(16):
        total{S}[r, j] = T.float32(0)
{FIRST_WEIGHT}    for d in T.vectorized({D}):
        acc{S}[r, d] = T.float32(0)
for p in range({FROM}, last{S} // {16B} + 1):
    pages{S}: T.int32 = T.min({B}, last{S} // 16 + 1 - p * {B})
    for b in range((pages{S} + {KB} - 1) // {KB}):
        for w in range({R} // {SR}):
            for e, y, x in T.grid({KS}, {SR}, {KB}):
                for j in T.vectorized(16):
                    sum{S}[e, y, x, j] = T.float32(0)
            for d in range({DK} // {KS}):
                for e in T.unroll({KS}):
                    for y in T.unroll({SR}):
                        for x in T.unroll({KB}):
                            for j in T.vectorized(16):
                                sum{S}[e, y, x, j] = {ADD_SCORE}
            for y in T.unroll({SR}):
                r: T.int32 = w * {SR} + y
                for x in T.unroll({KB}):
                    for j in T.vectorized(16):
                        scores{S}[r, b * {KB} + x, j] = T.if_then_else({SEEN}, {SUM}, T.float32(-1e30))
    for r in range({R}):
        for j in T.vectorized(16):
            top{S}[j] = scores{S}[r, 0, j]
        for b in range(1, pages{S}):
            for j in T.vectorized(16):
                top{S}[j] = T.max(top{S}[j], scores{S}[r, b, j])
        for j in T.vectorized(8):
            top{S}[j] = T.max(top{S}[j], top{S}[j + 8])
        for j in T.vectorized(4):
            top{S}[j] = T.max(top{S}[j], top{S}[j + 4])
        for j in T.vectorized(2):
            top{S}[j] = T.max(top{S}[j], top{S}[j + 2])
        peak{S}[r] = T.max(T.max(top{S}[0], top{S}[1]), running{S}[r])
    for r in T.vectorized({R}):
        scale{S}[r] = T.exp(running{S}[r] - peak{S}[r])
    for r in T.vectorized({R}):
        running{S}[r] = peak{S}[r]
    for r in range({R}):
        for j in T.vectorized(16):
            total{S}[r, j] = total{S}[r, j] * scale{S}[r]
        for b in range(pages{S}):
            for j in T.vectorized(16):
                scores{S}[r, b, j] = T.exp(scores{S}[r, b, j] - peak{S}[r])
            for j in T.vectorized(16):
                total{S}[r, j] = total{S}[r, j] + scores{S}[r, b, j]
{ROUND}
    for y, z in T.grid({R} // {VR}, {D} // {DC}):
        for r in T.unroll({VR}):
            for d in T.vectorized({DC}):
                part{S}[0, r, d] = acc{S}[y * {VR} + r, z * {DC} + d] * scale{S}[y * {VR} + r]
            for e in T.unroll({VS} - 1):
                for d in T.vectorized({DC}):
                    part{S}[e + 1, r, d] = T.float32(0)
        for b in range(pages{S}):
            for j in range({JV} // {VS}):
                for e in T.unroll({VS}):
                    for r in T.unroll({VR}):
                        for d in T.vectorized({DC}):
                            part{S}[e, r, d] = {ADD_VALUE}
        for r in T.unroll({VR}):
            for d in T.vectorized({DC}):
                acc{S}[y * {VR} + r, z * {DC} + d] = {PART}
for r in range({R}):
    for j in T.vectorized(8):
        total{S}[r, j] = total{S}[r, j] + total{S}[r, j + 8]
    for j in T.vectorized(4):
        total{S}[r, j] = total{S}[r, j] + total{S}[r, j + 4]
    for j in T.vectorized(2):
        total{S}[r, j] = total{S}[r, j] + total{S}[r, j + 2]
    for d in T.vectorized({D}):
        o[{TOKEN}, {HEAD}, d] = acc{S}[r, d] * (T.float32(1) / (total{S}[r, 0] + total{S}[r, 1]))
)";

// The addition to the score of a key, by its position; less the one at the query's own position, which changes no weight
// and keeps the scores small.
constexpr const char* kBiasHandle = "bias_handle: T.handle, ";
constexpr const char* kBiasBuffer = R"(    limit = T.int64()
    bias = T.match_buffer(bias_handle, ({H}, limit), "float32")
)";
constexpr const char* kBiasRead = ", bias[0:{H}, 0:limit]";

// A sink is a position before all others that has no value: its score is the first peak, its weight beside that 1.
constexpr const char* kSinksHandle = "sinks_handle: T.handle, ";
constexpr const char* kSinksBuffer = R"(    sinks = T.match_buffer(sinks_handle, ({H},), "float32")
)";
constexpr const char* kSinksRead = ", sinks[0:{H}]";
constexpr const char* kSinkWeight = "    total{S}[r, 0] = T.float32(1)\n";

// What one step adds: a product to a score, a weighted element to a value; and the same of two.
constexpr const char* kQuery = "q[{TOKEN}, {HEAD}, d] * sm_scale";
constexpr const char* kNarrowQuery = R"(T.cast(T.cast(q[{TOKEN}, {HEAD}, d], "{T}"), "float32") * sm_scale)";
constexpr const char* kAddScore =
    "sum{S}[e, y, x, j] + rows{S}[w * {SR} + y, d * {KS} + e] * T.cast(k_pages[{K_PAGE_OF_STEP}, d * {KS} + e, j], "
    "\"float32\")";
constexpr const char* kAddValue =
    "part{S}[e, r, d] + scores{S}[y * {VR} + r, b, j * {VS} + e] * T.cast(v_pages[{V_PAGE_OF_STEP}, j * {VS} + e, "
    "z * {DC} + d], \"float32\")";
constexpr const char* kNarrowWeights = R"(
            for j in T.vectorized(16):
                scores{S}[r, b, j] = T.cast(T.cast(scores{S}[r, b, j], "{T}"), "float32"))";

constexpr const char* kQueryOfPairs = R"(T.cast(q[{TOKEN}, {HEAD}, d], "{T}"))";
constexpr const char* kAddScoreOfPairs =
    "T.dot2(sum{S}[e, y, x, j], rows{S}[w * {SR} + y, T.ramp((d * {KS} + e) * 2, 1, 2)], "
    "k_pages[{K_PAGE_OF_STEP}, d * {KS} + e, j, T.ramp(0, 1, 2)])";
constexpr const char* kAddValueOfPairs =
    "T.dot2(part{S}[e, r, d], weights{S}[y * {VR} + r, b, T.ramp((j * {VS} + e) * 2, 1, 2)], "
    "v_pages[{V_PAGE_OF_STEP}, j * {VS} + e, z * {DC} + d, T.ramp(0, 1, 2)])";
constexpr const char* kWeightsOfPairs = R"(
            for j in T.vectorized(16):
                weights{S}[r, b, j] = T.cast(scores{S}[r, b, j], "{T}"))";
constexpr const char* kPageOfScores =
    "page_table[table{S} + T.min(p * {B} + b * {KB} + x, last{S} // 16)], vh // T.int64({SHARE})";
constexpr const char* kPageOfValues = "page_table[table{S} + p * {B} + b], vh // T.int64({SHARE})";

constexpr const char* kRowBuffers = R"(
rows{S} = T.alloc_buffer(({R}, {D}), "{ROW_T}", scope="local")
sum{S} = T.alloc_buffer(({KS}, {SR}, {KB}, 16), scope="local")
scores{S} = T.alloc_buffer(({R}, {B}, 16), scope="local")
{WEIGHT_BUFFER}top{S} = T.alloc_buffer((16,), scope="local")
total{S} = T.alloc_buffer(({R}, 16), scope="local")
running{S} = T.alloc_buffer(({R},), scope="local")
peak{S} = T.alloc_buffer(({R},), scope="local")
scale{S} = T.alloc_buffer(({R},), scope="local")
part{S} = T.alloc_buffer(({VS}, {VR}, {DC}), scope="local")
acc{S} = T.alloc_buffer(({R}, {D}), scope="local")
)";

constexpr const char* kWeightBuffer = R"(weights{S} = T.alloc_buffer(({R}, {B}, 16), "{T}", scope="local")
)";

// Tokens go by tiles of {TILE}: together where they are of one sequence and at least half of a tile is there (rows beyond
// the last token repeat it), else one by one, each with {HEADS} heads of those that share keys and values: the first one's turn
// is all of theirs. Late tiles cost more than early ones, so that both ends take turns:
// workers get neighbouring tiles.
constexpr const char* kAttention = R"(
@T.prim_func
def attention(q_handle: T.handle, token_seq_handle: T.handle, positions_handle: T.handle, q_indptr_handle: T.handle, kv_lengths_handle: T.handle, page_indptr_handle: T.handle, page_table_handle: T.handle, k_pages_handle: T.handle, v_pages_handle: T.handle, {EXTRA_HANDLE}o_handle: T.handle, sm_scale: T.float32):
    T.func_attr({"tir.noalias": T.bool(True), "tir.is_scheduled": 1, "sator.trusted_indices": 1})
    n = T.int64(is_size_var=True)
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
    k_pages = T.match_buffer(k_pages_handle, {K_PAGES}, "{T}")
    v_pages = T.match_buffer(v_pages_handle, {V_PAGES}, "{T}")
{EXTRA_BUFFER}    o = T.match_buffer(o_handle, (n, {H}, {D}), "float32")
    for i in T.parallel((n + T.int64({TILE} - 1)) // T.int64({TILE}) * T.int64({H})):
        with T.block("attention"):
            vi = T.axis.spatial((n + T.int64({TILE} - 1)) // T.int64({TILE}) * T.int64({H}), i)
            T.reads(q[0:n, 0:{H}, 0:{D}], token_seq[0:n], positions[0:n], page_indptr[0:b1], page_table[0:m], k_pages[0:pages, 0:{G}, {K_PAGE}], v_pages[0:pages, 0:{G}, {V_PAGE}]{EXTRA_READ})
            T.writes(o[0:n, 0:{H}, 0:{D}])
{BUFFERS}
            tiles: T.int64 = (n + T.int64({TILE} - 1)) // T.int64({TILE})
            vh: T.int64 = vi // tiles
            turn: T.int64 = vi % tiles
            t: T.int64 = T.if_then_else(turn % T.int64(2) == T.int64(0), turn // T.int64(2), tiles - T.int64(1) - turn // T.int64(2)) * T.int64({TILE})
            if t + T.int64({TILE} // 2) <= n and token_seq[t] == token_seq[T.min(t + T.int64({TILE} - 1), n - T.int64(1))]:
{TILE_BODY}
            elif vh % T.int64({SHARE}) % T.int64({HEADS}) == 0:
                for s in range(T.min(T.int64({TILE}), n - t)):
{TOKEN_BODY}
)";

constexpr const char* kAttentionWork = R"(
@T.prim_func
def attention_work(q_handle: T.handle, k_handle: T.handle, v_handle: T.handle, {EXTRA_HANDLE}o_handle: T.handle, sm_scale: T.float32):
    T.func_attr({"tir.noalias": T.bool(True), "sator.one_pass": 1})
    n = T.int64()
    kv_len = T.int64()
    q = T.match_buffer(q_handle, (n, {H}, {D}), "float32")
    k = T.match_buffer(k_handle, ({G}, kv_len, {D}), "{T}")
    v = T.match_buffer(v_handle, ({G}, kv_len, {D}), "{T}")
{EXTRA_BUFFER}    o = T.match_buffer(o_handle, (n, {H}, {D}), "float32")
    s = T.alloc_buffer((n, {H}, kv_len), "float32")
    largest = T.alloc_buffer((n, {H}), "float32")
    e = T.alloc_buffer((n, {H}, kv_len), "float32")
    total = T.alloc_buffer((n, {H}), "float32")
    weighted = T.alloc_buffer((n, {H}, {D}), "float32")
{NARROW_Q}
    for {h}, i, j, d in T.grid({HEADS}, n, kv_len, {D}):
        with T.block("scores"):
            {vh}, vi, vj, vd = T.axis.remap("{S}SSR", [{h}, i, j, d])
            with T.init():
                s[vi, {HEAD}, vj] = T.float32(0)
            if {ATTENDED}:
                s[vi, {HEAD}, vj] = s[vi, {HEAD}, vj] + {Q} * T.cast(k[{GROUP}, vj, vd], "float32")
{SCALED}    for {h}, i, j in T.grid({HEADS}, n, kv_len):
        with T.block("largest"):
            {vh}, vi, vj = T.axis.remap("{S}SR", [{h}, i, j])
            with T.init():
                largest[vi, {HEAD}] = {FIRST_LARGEST}
            if {ATTENDED}:
                largest[vi, {HEAD}] = T.max(largest[vi, {HEAD}], {SCORE}[vi, {HEAD}, vj])
    for {h}, i, j in T.grid({HEADS}, n, kv_len):
        with T.block("exponentials"):
            {vh}, vi, vj = T.axis.remap("{S}SS", [{h}, i, j])
            if {ATTENDED}:
                e[vi, {HEAD}, vj] = T.exp({EXPONENT})
    for {h}, i, j in T.grid({HEADS}, n, kv_len):
        with T.block("total"):
            {vh}, vi, vj = T.axis.remap("{S}SR", [{h}, i, j])
            with T.init():
                total[vi, {HEAD}] = {FIRST_TOTAL}
            if {ATTENDED}:
                total[vi, {HEAD}] = total[vi, {HEAD}] + e[vi, {HEAD}, vj]
{NARROW_E}
    for {h}, i, d, j in T.grid({HEADS}, n, {D}, kv_len):
        with T.block("values"):
            {vh}, vi, vd, vj = T.axis.remap("{S}SSR", [{h}, i, d, j])
            with T.init():
                weighted[vi, {HEAD}, vd] = T.float32(0)
            if {ATTENDED}:
                weighted[vi, {HEAD}, vd] = weighted[vi, {HEAD}, vd] + {E} * T.cast(v[{GROUP}, vj, vd], "float32")
    for {h}, i, d in T.grid({HEADS}, n, {D}):
        with T.block("attention"):
            {vh}, vi, vd = T.axis.remap("{S}SS", [{h}, i, d])
            o[vi, {HEAD}, vd] = weighted[vi, {HEAD}, vd] / total[vi, {HEAD}]
)";

constexpr const char* kWorkBiasBuffer = R"(    bias = T.match_buffer(bias_handle, ({H}, kv_len), "float32")
)";
constexpr const char* kScaledScores = R"(    scaled = T.alloc_buffer((n, {H}, kv_len), "float32")
    for {h}, i, j in T.grid({HEADS}, n, kv_len):
        with T.block("scaled"):
            {vh}, vi, vj = T.axis.remap("{S}SS", [{h}, i, j])
            if {ATTENDED}:
                scaled[vi, {HEAD}, vj] = s[vi, {HEAD}, vj] * sm_scale{ADDED}
)";
constexpr const char* kExponent = "(s[vi, {HEAD}, vj] - largest[vi, {HEAD}]) * sm_scale";
constexpr const char* kScaledExponent = "scaled[vi, {HEAD}, vj] - largest[vi, {HEAD}]";

constexpr const char* kNarrowQueries = R"(
    q16 = T.alloc_buffer((n, {H}, {D}), "{T}")
    for {h}, i, d in T.grid({HEADS}, n, {D}):
        with T.block("narrow_queries"):
            {vh}, vi, vd = T.axis.remap("{S}SS", [{h}, i, d])
            q16[vi, {HEAD}, vd] = T.cast(q[vi, {HEAD}, vd], "{T}"))";
constexpr const char* kNarrowExponentials = R"(
    e16 = T.alloc_buffer((n, {H}, kv_len), "{T}")
    for {h}, i, j in T.grid({HEADS}, n, kv_len):
        with T.block("narrow_exponentials"):
            {vh}, vi, vj = T.axis.remap("{S}SS", [{h}, i, j])
            if {ATTENDED}:
                e16[vi, {HEAD}, vj] = T.cast(e[vi, {HEAD}, vj], "{T}"))";

constexpr int64_t kTile = 8;          // query rows that pass over the cache together
constexpr int64_t kHeads = 4;         // heads of one token that pass over the cache together
constexpr int64_t kPagesOfBlock = 4;  // pages between two corrections of the running maximum

/// How a number of query rows is computed: the holes of kRows. The sums of one step are as many vectors as keep the
/// multipliers busy, and no more than there are registers.
struct Rows {
  std::string suffix, first;  ///< of buffers' names; the token of row 0
  bool of_one_token = false;  ///< rows are heads
  int64_t rows = 1;
  int64_t score_rows = 1, score_sums = 1, score_pages = 1;  ///< of one step: rows, sums for each score, pages
  int64_t value_rows = 1, value_sums = 1, value_columns = 1;
};

std::string rows_text(const char* source, const Rows& r, const AttentionShape& shape) {
  auto num = [](int64_t v) { return text(v); };
  std::string sum = text("sum", r.suffix, "[0, y, x, j]"), part = text("part", r.suffix, "[0, r, d]");
  if (r.score_sums == 2) sum += text(" + sum", r.suffix, "[1, y, x, j]");
  if (r.value_sums == 2) part += text(" + part", r.suffix, "[1, r, d]");
  const char* at = "(p * {B} + b * {KB} + x) * 16 + j";
  if (shape.in_pairs()) sum = text("(", sum, ") * sm_scale");
  std::string seen = text(at, " <= positions[{TOKEN}]");
  std::string from = "0";
  if (shape.window > 0) {
    seen += text(" and positions[{TOKEN}] - (", at, ") < ", shape.window);
    from = text("T.max(positions[", r.first, "] - ", shape.window - 1, ", 0) // {16B}");
  }
  if (shape.soft_cap != 0) {
    const std::string cap = text("T.float32(", shape.soft_cap, ")");
    sum = text("T.tanh((", sum, ") / ", cap, ") * ", cap);
  }
  if (shape.biased) sum = text(sum, " + (bias[{HEAD}, ", at, "] - bias[{HEAD}, positions[{TOKEN}]])");
  // Rows beyond the last token, or the last head that shares the keys, repeat it.
  const int64_t share = shape.num_qo_heads / shape.num_kv_heads;
  std::string token = r.first, last = r.first, head = "vh";
  if (!r.of_one_token) {
    token = text("T.min(", r.first, " + r, n - T.int64(1))");
    last = text("T.min(", r.first, " + T.int64(", r.rows - 1, "), n - T.int64(1))");
  } else if (r.rows > 1) {
    head = share % r.rows == 0 ? "(vh + r)" : text("(vh + T.min(r, T.int64(", share - 1, ") - vh % T.int64({SHARE})))");
  }
  return filled(source,
                {{"FIRST_PEAK", shape.sinks ? "sinks[{HEAD}]" : "T.float32(-1e30)"},
                 {"FIRST_WEIGHT", shape.sinks ? kSinkWeight : ""},
                 {"SUM", sum},
                 {"SEEN", seen},
                 {"FROM", from},
                 {"QUERY",
                  shape.in_pairs() ? kQueryOfPairs
                  : shape.narrow   ? kNarrowQuery
                                   : kQuery},
                 {"ROUND",
                  shape.in_pairs() ? kWeightsOfPairs
                  : shape.narrow   ? kNarrowWeights
                                   : ""},
                 {"ADD_SCORE", shape.in_pairs() ? kAddScoreOfPairs : kAddScore},
                 {"ADD_VALUE", shape.in_pairs() ? kAddValueOfPairs : kAddValue},
                 {"ROW_T", shape.in_pairs() ? "{T}" : "float32"},
                 {"WEIGHT_BUFFER", shape.in_pairs() ? kWeightBuffer : ""},
                 {"K_PAGE_OF_STEP", kPageOfScores},
                 {"V_PAGE_OF_STEP", kPageOfValues},
                 {"DK", num(shape.in_pairs() ? shape.head_dim / 2 : shape.head_dim)},
                 {"JV", num(shape.in_pairs() ? 8 : 16)},
                 {"S", r.suffix},
                 {"TOKEN", token},
                 {"HEAD", head},
                 {"LAST", last},
                 {"PART", part},
                 {"R", num(r.rows)},
                 {"B", num(kPagesOfBlock)},
                 {"16B", num(kPagesOfBlock * 16)},
                 {"SR", num(r.score_rows)},
                 {"KB", num(r.score_pages)},
                 {"KS", num(r.score_sums)},
                 {"VR", num(r.value_rows)},
                 {"VS", num(r.value_sums)},
                 {"DC", num(r.value_columns)}});
}

std::string indented(const std::string& source, size_t spaces) {
  std::string out;
  for (size_t at = 0; at < source.size();) {
    size_t end = std::min(source.find('\n', at), source.size());
    if (end > at) out += std::string(spaces, ' ') + source.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

/// The largest number up to `limit` that divides n.
int64_t largest_divisor(int64_t n, int64_t limit) {
  int64_t d = std::min(n, limit);
  while (n % d != 0) --d;
  return d;
}

void check(const AttentionShape& s) {
  if (s.num_kv_heads < 1 || s.num_qo_heads % s.num_kv_heads != 0 || s.head_dim < 1 || s.rotary_dim < 0 ||
      s.rotary_dim % 2 != 0 || s.rotary_dim > s.head_dim || (s.interleaved && s.rotary_dim == 0) || s.window < 0 ||
      s.soft_cap < 0 || (s.narrow && s.cache_dtype == f32) || (s.biased && s.sinks))
    internal_error("attention: heads or sizes that do not fit each other");
}

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
  check(shape);
  const bool rotated = shape.rotary_dim > 0;
  const Values values = {{"ROPE_HANDLES", rotated ? kRopeHandles : ""},
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
  return kernel(filled(kAppend, values).c_str(), shape);
}

tir::PrimFuncRef kv_append_work(const AttentionShape& shape) {
  check(shape);
  if (shape.rotary_dim == 0) return kernel(kAppendWork, shape);
  const char* partner = shape.head_dim % 2 == 0 ? kPartner : kPartnerOfOdd;
  const std::string rotated = shape.interleaved ? filled(kRotatedPairs, {{"PARTNER", partner}}) : kRotatedHalves;
  return kernel(
      filled(kAppendRotatedWork,
             {{"ROTATED_QUERY", filled(rotated, {{"X", "vh"}})}, {"ROTATED_KEY", filled(rotated, {{"X", "{H} + vg"}})}})
          .c_str(),
      shape);
}

tir::PrimFuncRef attention_kernel(const AttentionShape& shape) {
  check(shape);
  const int64_t d = shape.head_dim;
  const int64_t heads = std::min(kHeads, shape.num_qo_heads / shape.num_kv_heads);
  const int64_t score_steps = shape.in_pairs() ? d / 2 : d;
  const Rows token{.suffix = "_1",
                   .first = "(t + s)",
                   .of_one_token = true,
                   .rows = heads,
                   .score_rows = heads,
                   .score_sums = score_steps % 2 == 0 ? 2 : 1,
                   .score_pages = heads > 2 ? kPagesOfBlock / 2 : kPagesOfBlock,
                   .value_rows = heads,
                   .value_sums = heads > 2 ? 1 : 2,
                   .value_columns = largest_divisor(d, 64)};
  // As many sums for each score and value as one token has, so that a row has the same bits in a tile and alone.
  const Rows tile{.suffix = "_n",
                  .first = "t",
                  .rows = kTile,
                  .score_rows = kTile / token.score_sums,
                  .score_sums = token.score_sums,
                  .score_pages = 2,
                  .value_rows = kTile / token.value_sums,
                  .value_sums = token.value_sums,
                  .value_columns = largest_divisor(d, 32)};
  auto rows = [&](const char* source, const Rows& r) { return rows_text(source, r, shape); };
  Values values = {{"BUFFERS", indented(rows(kRowBuffers, tile) + rows(kRowBuffers, token), 12)},
                   {"TILE_BODY", indented(rows(kRows, tile), 16)},
                   {"TOKEN_BODY", indented(rows(kRows, token), 20)},
                   {"EXTRA_HANDLE",
                    shape.biased  ? kBiasHandle
                    : shape.sinks ? kSinksHandle
                                  : ""},
                   {"EXTRA_BUFFER",
                    shape.biased  ? kBiasBuffer
                    : shape.sinks ? kSinksBuffer
                                  : ""},
                   {"EXTRA_READ",
                    shape.biased  ? kBiasRead
                    : shape.sinks ? kSinksRead
                                  : ""},
                   {"HEADS", text(heads)},
                   {"TILE", text(kTile)}};
  return kernel(filled(kAttention, values).c_str(), shape);
}

tir::PrimFuncRef attention_work(const AttentionShape& shape) {
  check(shape);
  const bool scaled = shape.biased || shape.sinks;  // what joins the scores is as large as they are then
  std::string attended = "vj <= vi + kv_len - n";
  if (shape.window > 0) attended += text(" and vi + kv_len - n < vj + ", shape.window);
  Values values = {{"EXTRA_HANDLE",
                    shape.biased  ? kBiasHandle
                    : shape.sinks ? kSinksHandle
                                  : ""},
                   {"EXTRA_BUFFER",
                    shape.biased  ? kWorkBiasBuffer
                    : shape.sinks ? kSinksBuffer
                                  : ""},
                   {"SCALED", scaled ? kScaledScores : ""},
                   {"ADDED", shape.biased ? " + bias[{HEAD}, vj]" : ""},
                   {"SCORE", scaled ? "scaled" : "s"},
                   {"EXPONENT", scaled ? kScaledExponent : kExponent},
                   {"FIRST_LARGEST", shape.sinks ? "sinks[{HEAD}]" : "T.float32(-3.4e38)"},
                   {"FIRST_TOTAL", shape.sinks ? "T.exp(sinks[{HEAD}] - largest[vi, {HEAD}])" : "T.float32(0)"},
                   {"NARROW_Q", shape.narrow ? kNarrowQueries : ""},
                   {"NARROW_E", shape.narrow ? kNarrowExponentials : ""},
                   {"Q", shape.narrow ? R"(T.cast(q16[vi, {HEAD}, vd], "float32"))" : "q[vi, {HEAD}, vd]"},
                   {"E", shape.narrow ? R"(T.cast(e16[vi, {HEAD}, vj], "float32"))" : "e[vi, {HEAD}, vj]"}};
  // Heads that share keys and values are rows beside each other.
  const bool shared = shape.num_qo_heads > shape.num_kv_heads;
  const Values heads = {{"h", shared ? "g, r" : "h"},
                        {"vh", shared ? "vg, vr" : "vh"},
                        {"HEADS", shared ? "{G}, {SHARE}" : "{H}"},
                        {"S", shared ? "SS" : "S"},
                        {"HEAD", shared ? "vg * {SHARE} + vr" : "vh"},
                        {"GROUP", shared ? "vg" : "vh"},
                        {"ATTENDED", attended}};
  values.insert(values.end(), heads.begin(), heads.end());
  return kernel(filled(kAttentionWork, values).c_str(), shape);
}

}  // namespace sator::llm
