#include "llm/attention.h"

#include "base/text.h"
#include "llm/attention_text.h"

namespace sator::llm {

namespace {

// Attention of {R} query rows of one sequence, tokens of one head or heads of one token that share keys, by blocks of {B} pages:
//   scores  {SR} rows x {KB} pages at a time, sums in registers; K is stored transposed, so 16 positions are one vector
//   softmax carried along: the largest score of each row, the sum of its weights (lane by lane), the weighted values
//   values  {VR} rows x {DC} elements at a time, sums in registers
// A position after its query's own scores -1e30 and weighs nothing, as do the pages that fill up the last block.
// Holes beside the shape's and the rows' (row_holes): {QUERY} is element d of row r, {ROUND} rounds the weights of the values; {VALUE_LINES}
// and {KEY_LINES} are asked for in advance (Asking), none where rows are many.
constexpr const char* kRows = R"(
last{S}: T.int32 = positions[{LAST}]
table{S}: T.int32 = page_indptr[token_seq[{LAST}]]
for r in range({R}):
    running{S}[r] = {FIRST_PEAK}
    for d in T.vectorized({D}):
        rows{S}[r, d] = {QUERY}
    for j in T.vectorized(16):
        total{S}[r, j] = T.float32(0)
    {FIRST_WEIGHT}
    for d in T.vectorized({D}):
        acc{S}[r, d] = T.float32(0)
for p in range({FROM}, last{S} // {16B} + 1):
    pages{S}: T.int32 = T.min({B}, last{S} // 16 + 1 - p * {B})
    for b in range((pages{S} + {KB} - 1) // {KB}):
        for w in range({R} // {SR}):
            for e, y, x in T.grid({KS}, {SR}, {KB}):
                for j in T.vectorized(16):
                    sum{S}[e, y, x, j] = T.float32(0)
            for d in range({DK} // {KS}):
                for x in T.unroll({KB}):
                    for l in T.unroll({VALUE_LINES}):
                        {ASK_FOR_VALUES}
                for e in T.unroll({KS}):
                    for y in T.unroll({SR}):
                        for x in T.unroll({KB}):
                            for j in T.vectorized(16):
                                sum{S}[e, y, x, j] = {ADD_SCORE}
            for y in T.unroll({SR}):
                r: T.int32 = w * {SR} + y
                for x in T.unroll({KB}):
                    for j in T.vectorized(16):
                        scores{S}[r, b * {KB} + x, j] = T.if_then_else({SEEN}, {SCORE}, T.float32(-1e30))
    for r in range({R}):
        for j in T.vectorized(16):
            top{S}[j] = scores{S}[r, 0, j]
        for b in range(1, pages{S}):
            for j in T.vectorized(16):
                top{S}[j] = T.max(top{S}[j], scores{S}[r, b, j])
{PEAKS}
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
                    for l in T.unroll({KEY_LINES}):
                        {ASK_FOR_KEYS}
                    for r in T.unroll({VR}):
                        for d in T.vectorized({DC}):
                            part{S}[e, r, d] = {ADD_VALUE}
        for r in T.unroll({VR}):
            for d in T.vectorized({DC}):
                acc{S}[y * {VR} + r, z * {DC} + d] = {PART}
for r in range({R}):
{STORE}
)";

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

constexpr const char* kPageOfNextKeys =
    "page_table[table{S} + T.min((p + 1) * {B} + b, last{S} // 16)], vh // T.int64({SHARE})";

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
{LOOPS})";

constexpr const char* kReads =
    "q[0:n, 0:{H}, 0:{D}], token_seq[0:n], positions[0:n], page_indptr[0:b1], page_table[0:m], "
    "k_pages[0:pages, 0:{G}, {K_PAGE}], v_pages[0:pages, 0:{G}, {V_PAGE}]{EXTRA_READ}";

// In pairs, where the CPU has matrix tiles, they multiply.
constexpr const char* kBothWays = R"(
if T.has_matrix_tiles():
{ON_TILES}
else:
{IN_VECTORS}
)";

// Tokens go by tiles of {TILE}: together where they are of one sequence and at least half of a tile is there (rows beyond
// the last token repeat it), else one by one, each with {HEADS} heads of those that share keys and values: the first one's turn
// is all of theirs. Late tiles cost more than early ones, so that both ends take turns:
// workers get neighbouring tiles.
constexpr const char* kInVectors = R"(
for i in T.parallel((n + T.int64({TILE} - 1)) // T.int64({TILE}) * T.int64({H})):
    with T.block("attention"):
        vi = T.axis.spatial((n + T.int64({TILE} - 1)) // T.int64({TILE}) * T.int64({H}), i)
        T.reads({READS})
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

constexpr int64_t kTile = 8;  // query rows that pass over the cache together

/// How a number of query rows is computed: the holes of kRows. The sums of one step are as many vectors as keep the
/// multipliers busy, and no more than there are registers.
struct Rows : QueryRows {
  int64_t score_rows = 1, score_sums = 1, score_pages = 1;  ///< of one step: rows, sums for each score, pages
  int64_t value_rows = 1, value_sums = 1, value_columns = 1;
};

std::string rows_text(const char* source, const Rows& r, const AttentionShape& shape) {
  auto num = [](int64_t v) { return text(v); };
  const Asking ask(shape);
  std::string sum = text("sum", r.suffix, "[0, y, x, j]"), part = text("part", r.suffix, "[0, r, d]");
  if (r.score_sums == 2) sum += text(" + sum", r.suffix, "[1, y, x, j]");
  if (r.value_sums == 2) part += text(" + part", r.suffix, "[1, r, d]");
  if (shape.in_pairs()) sum = text("(", sum, ") * sm_scale");
  const Holes texts = {
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
      {"ASK_FOR_VALUES", ask.statement("v_pages", kPageOfScores, "d * {KS} * 16 + l * {LINE}")},
      {"ASK_FOR_KEYS", ask.statement("k_pages", kPageOfNextKeys, "(z * {JV} + j * {VS} + e) * {DC} + l * {LINE}")},
      {"PART", part}};
  const Holes numbers = {{"DK", num(shape.in_pairs() ? shape.head_dim / 2 : shape.head_dim)},
                         {"JV", num(shape.in_pairs() ? 8 : 16)},
                         {"SR", num(r.score_rows)},
                         {"KB", num(r.score_pages)},
                         {"KS", num(r.score_sums)},
                         {"VR", num(r.value_rows)},
                         {"VS", num(r.value_sums)},
                         {"DC", num(r.value_columns)},
                         {"VALUE_LINES", num(r.of_one_token ? ask.lines(r.score_sums * 16) : 0)},
                         {"KEY_LINES", num(r.of_one_token ? ask.lines(r.value_columns) : 0)},
                         {"LINE", num(ask.units_of_line)}};
  const Holes of_row = row_holes(shape, r, "(p * {B} + b * {KB} + x) * 16 + j", sum);
  return filled(filled(filled(source, texts), of_row), numbers);
}

std::string in_vectors(const AttentionShape& shape) {
  const int64_t d = shape.head_dim, heads = heads_together(shape);
  const int64_t score_steps = shape.in_pairs() ? d / 2 : d;
  const Rows token{{.suffix = "_1", .first = "(t + s)", .of_one_token = true, .rows = heads},
                   /*score_rows=*/heads,
                   /*score_sums=*/score_steps % 2 == 0 ? 2 : 1,
                   /*score_pages=*/heads > 2 ? kPagesOfBlock / 2 : kPagesOfBlock,
                   /*value_rows=*/heads,
                   /*value_sums=*/heads > 2 ? 1 : 2,
                   /*value_columns=*/largest_divisor(d, 64)};
  // As many sums for each score and value as one token has, so that a row has the same bits in a tile and alone.
  const Rows tile{{.suffix = "_n", .first = "t", .rows = kTile},
                  /*score_rows=*/kTile / token.score_sums,
                  /*score_sums=*/token.score_sums,
                  /*score_pages=*/2,
                  /*value_rows=*/kTile / token.value_sums,
                  /*value_sums=*/token.value_sums,
                  /*value_columns=*/largest_divisor(d, 32)};
  auto rows = [&](const char* source, const Rows& r) { return rows_text(source, r, shape); };
  return filled(kInVectors,
                {{"BUFFERS", indented(rows(kRowBuffers, tile) + rows(kRowBuffers, token), 8)},
                 {"TILE_BODY", indented(rows(kRows, tile), 12)},
                 {"TOKEN_BODY", indented(rows(kRows, token), 16)},
                 {"TILE", text(kTile)}});
}

}  // namespace

tir::PrimFuncRef attention_kernel(const AttentionShape& shape) {
  check_shape(shape);
  std::string loops = in_vectors(shape);
  if (shape.in_pairs())
    loops =
        filled(kBothWays, {{"ON_TILES", indented(attention_on_tiles(shape), 4)}, {"IN_VECTORS", indented(loops, 4)}});
  const ExtraParam extra = extra_param(shape);
  const Holes values = {{"LOOPS", indented(loops, 4)},
                        {"READS", kReads},
                        {"EXTRA_HANDLE", extra.handle},
                        {"EXTRA_BUFFER", extra.buffer},
                        {"EXTRA_READ", extra.read},
                        {"HEADS", text(heads_together(shape))}};
  return attention_function(filled(kAttention, values), shape);
}

}  // namespace sator::llm
