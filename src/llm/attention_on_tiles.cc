// Attention in pairs on matrix tiles: 32 tokens of a head pass over a block of four pages with a T.tile_product for the scores of each page,
// and one for the values, and the softmax between them runs in vectors. A page of keys lies as a tile reads it; those of values, which
// lie anywhere, are copied into panels first.
// Few tokens are summed in the same order in vectors, so that a row has the same bits in a tile and alone.
#include "base/text.h"
#include "llm/attention_text.h"

namespace sator::llm {

namespace {

// Holes beside the shape's and the rows': {DP} is the head's size, filled up with zeros to whole steps of 32; {WHOLE} the steps of it that
// are full, {ODD} what lies behind them, {FILL} what fills it up, {FROM_ZERO} whether there is nothing before {ODD}.
constexpr const char* kRowsOnTiles = R"(
last{S}: T.int32 = positions[{LAST}]
table{S}: T.int32 = page_indptr[token_seq[{LAST}]]
for r in range({R}):
    running{S}[r] = {FIRST_PEAK}
    peak{S}[r] = T.float32(0)
for r in range(many):
    for d in T.vectorized({D}):
        rows{S}[r, d] = T.cast(q[{TOKEN}, {HEAD}, d], "{T}")
    {FILL_ROW}
    for j in T.vectorized(16):
        total{S}[r, j] = T.float32(0)
    {FIRST_WEIGHT}
    for d in T.vectorized({DP}):
        acc{S}[r, d] = T.float32(0)
{FILL_PANELS}
for p in range({FROM}, last{S} // {16B} + 1):
    for x in range({B}):
        page: T.int32 = page_table[table{S} + T.min(p * {B} + x, last{S} // 16)]
        {WHOLE_KEYS}
        {ODD_KEYS}
        for b in range(8):
            for z in range({D} // 32):
                for d in T.vectorized(64):
                    values{S}[z, x * 8 + b, d // 2, d % 2] = v_pages[page, {GROUP}, b, z * 32 + d // 2, d % 2]
            {ODD_COLUMNS}
    for r in range(many):
        for b in T.unroll({B}):
            for j in T.vectorized(16):
                scores{S}[r, b, j] = T.if_then_else({SEEN}, {SCORE}, T.float32(-1e30))
        for j in T.vectorized(16):
            top{S}[j] = scores{S}[r, 0, j]
        for b in T.unroll({B} - 1):
            for j in T.vectorized(16):
                top{S}[j] = T.max(top{S}[j], scores{S}[r, b + 1, j])
{PEAKS}
    for r in range(many):
        for j in T.vectorized(16):
            total{S}[r, j] = total{S}[r, j] * scale{S}[r]
        for b in T.unroll({B}):
            for j in T.vectorized(16):
                scores{S}[r, b, j] = T.exp(scores{S}[r, b, j] - peak{S}[r])
            for j in T.vectorized(16):
                total{S}[r, j] = total{S}[r, j] + scores{S}[r, b, j]
            for j in T.vectorized(16):
                weights{S}[r, b, j] = T.cast(scores{S}[r, b, j], "{T}")
        for d in T.vectorized({DP}):
            acc{S}[r, d] = acc{S}[r, d] * scale{S}[r]
    T.evaluate(T.tile_product(T.address_of(acc{S}[0, 0]), {DP}, T.address_of(weights{S}[0, 0, 0]), {16B}, T.address_of(values{S}[0, 0, 0, 0]), {16B} * 32, many, {DP}, {16B}, 0, 0, 1, 0, 0, 0, 0))
for r in range(many):
{STORE}
)";

constexpr const char* kWholeKeys =
    "T.evaluate(T.tile_product(T.address_of(scores{S}[0, x, 0]), {16B}, T.address_of(rows{S}[0, 0]), {DP}, "
    "T.address_of(k_pages[page, {GROUP}, 0, 0, 0]), 32, many, 16, {WHOLE}, 0, 1, 1, 0, 0, 0, 0))";
constexpr const char* kOddKeys = R"(for d in range({ODD} // 2):
            for j in T.vectorized(32):
                keys{S}[d, j // 2, j % 2] = k_pages[page, {GROUP}, {WHOLE} // 2 + d, j // 2, j % 2]
        T.evaluate(T.tile_product(T.address_of(scores{S}[0, x, 0]), {16B}, T.address_of(rows{S}[0, {WHOLE}]), {DP}, T.address_of(keys{S}[0, 0, 0]), 32, many, 16, 32, 0, {FROM_ZERO}, 1, 0, 0, 0, 0)))";
constexpr const char* kFillRow = R"(for d in T.vectorized({FILL}):
        rows{S}[r, {D} + d] = T.cast(T.float32(0), "{T}"))";
constexpr const char* kFillPanels = R"(
for d in range({FILL} // 2):
    for j in T.vectorized(32):
        keys{S}[{ODD} // 2 + d, j // 2, j % 2] = T.cast(T.float32(0), "{T}")
for b in range(32):
    for d in T.vectorized({FILL} * 2):
        values{S}[{D} // 32, b, {ODD} + d // 2, d % 2] = T.cast(T.float32(0), "{T}")
)";
constexpr const char* kOddColumns = R"(for d in T.vectorized({ODD} * 2):
                values{S}[{D} // 32, x * 8 + b, d // 2, d % 2] = v_pages[page, {GROUP}, b, {D} // 32 * 32 + d // 2, d % 2])";

// Heads of one token, in the order of a tile's sums: over 32 elements those of even and those of odd ones apart.
constexpr const char* kHeadsOfToken = R"(
last{S}: T.int32 = positions[{LAST}]
table{S}: T.int32 = page_indptr[token_seq[{LAST}]]
for r in range({R}):
    running{S}[r] = {FIRST_PEAK}
    for d in T.vectorized({D}):
        rows{S}[r, d] = T.cast(T.cast(q[{TOKEN}, {HEAD}, d], "{T}"), "float32")
    for j in T.vectorized(16):
        total{S}[r, j] = T.float32(0)
    {FIRST_WEIGHT}
    for d in T.vectorized({D}):
        acc{S}[r, d] = T.float32(0)
for p in range({FROM}, last{S} // {16B} + 1):
    parts: T.int32 = (T.min({B}, last{S} // 16 + 1 - p * {B}) + {KB} - 1) // {KB}
    for b in range(parts):
        for y in T.unroll({R}):
            for x in T.unroll({KB}):
                for j in T.vectorized(16):
                    sum{S}[y, x, j] = T.float32(0)
        for w in range({DP} // 32):
            for y in T.unroll({R}):
                for x in T.unroll({KB}):
                    for j in T.vectorized(16):
                        even{S}[y, x, j] = T.float32(0)
                    for j in T.vectorized(16):
                        odd{S}[y, x, j] = T.float32(0)
            for d in range(T.min(16, {D2} - w * 16)):
                for x in T.unroll({KB}):
                    {ASK_FOR_VALUES}
                for y in T.unroll({R}):
                    for x in T.unroll({KB}):
                        for j in T.vectorized(16):
                            even{S}[y, x, j] = even{S}[y, x, j] + rows{S}[y, (w * 16 + d) * 2] * {EVEN_KEY}
                        for j in T.vectorized(16):
                            odd{S}[y, x, j] = odd{S}[y, x, j] + rows{S}[y, (w * 16 + d) * 2 + 1] * {ODD_KEY}
            for y in T.unroll({R}):
                for x in T.unroll({KB}):
                    for j in T.vectorized(16):
                        sum{S}[y, x, j] = sum{S}[y, x, j] + (even{S}[y, x, j] + odd{S}[y, x, j])
        for r in T.unroll({R}):
            for x in T.unroll({KB}):
                for j in T.vectorized(16):
                    scores{S}[r, b * {KB} + x, j] = T.if_then_else({SEEN}, {SCORE}, T.float32(-1e30))
    for r in range({R}):
        for j in T.vectorized(16):
            top{S}[j] = scores{S}[r, 0, j]
        for b in range(1, parts * {KB}):
            for j in T.vectorized(16):
                top{S}[j] = T.max(top{S}[j], scores{S}[r, b, j])
{PEAKS}
    for r in range({R}):
        for j in T.vectorized(16):
            total{S}[r, j] = total{S}[r, j] * scale{S}[r]
        for b in range(parts * {KB}):
            for j in T.vectorized(16):
                scores{S}[r, b, j] = T.exp(scores{S}[r, b, j] - peak{S}[r])
            for j in T.vectorized(16):
                total{S}[r, j] = total{S}[r, j] + scores{S}[r, b, j]
            for j in T.vectorized(16):
                scores{S}[r, b, j] = T.cast(T.cast(scores{S}[r, b, j], "{T}"), "float32")
    for z in range({D} // {DC}):
        for r in T.unroll({R}):
            for d in T.vectorized({DC}):
                part{S}[r, d] = acc{S}[r, z * {DC} + d] * scale{S}[r]
        for w in range(parts * {KB} // 2):
            for r in T.unroll({R}):
                for d in T.vectorized({DC}):
                    even_value{S}[r, d] = T.float32(0)
                for d in T.vectorized({DC}):
                    odd_value{S}[r, d] = T.float32(0)
            for x in range(2):
                page: T.int32 = page_table[table{S} + T.min(p * {B} + w * 2 + x, last{S} // 16)]
                for j in range(8):
                    for l in T.unroll({KEY_LINES}):
                        {ASK_FOR_KEYS}
                    for r in T.unroll({R}):
                        for d in T.vectorized({DC}):
                            even_value{S}[r, d] = even_value{S}[r, d] + scores{S}[r, w * 2 + x, j * 2] * {EVEN_VALUE}
                        for d in T.vectorized({DC}):
                            odd_value{S}[r, d] = odd_value{S}[r, d] + scores{S}[r, w * 2 + x, j * 2 + 1] * {ODD_VALUE}
            for r in T.unroll({R}):
                for d in T.vectorized({DC}):
                    part{S}[r, d] = part{S}[r, d] + (even_value{S}[r, d] + odd_value{S}[r, d])
        for r in T.unroll({R}):
            for d in T.vectorized({DC}):
                acc{S}[r, z * {DC} + d] = part{S}[r, d]
for r in range({R}):
{STORE}
)";

// A bfloat16 is the upper half of its float32.
constexpr const char* kEven =
    "T.reinterpret(\"float32\", T.shift_left(T.reinterpret(\"uint32\", {PAIR}), T.uint32(16)))";
constexpr const char* kOdd =
    "T.reinterpret(\"float32\", T.bitwise_and(T.reinterpret(\"uint32\", {PAIR}), T.uint32(0xffff0000)))";
constexpr const char* kPageOfKeys = "page_table[table{S} + T.min(p * {B} + b * {KB} + x, last{S} // 16)], {GROUP}";
constexpr const char* kPairOfKeys = "k_pages[{PAGE_OF_KEYS}, w * 16 + d, j, T.ramp(0, 1, 2)]";
constexpr const char* kPageOfLaterKeys =
    "page_table[table{S} + T.min((p + 1) * {B} + w * 2 + x, last{S} // 16)], {GROUP}";
constexpr const char* kPairOfValues = "v_pages[page, {GROUP}, j, z * {DC} + d, T.ramp(0, 1, 2)]";

constexpr const char* kBuffers = R"(
length = T.alloc_buffer((1,), "int64", scope="local")
rows_n = T.alloc_buffer(({R}, {DP}), "{T}", scope="local")
keys_n = T.alloc_buffer((16, 16, 2), "{T}", scope="local")
values_n = T.alloc_buffer(({DP} // 32, {B} * 8, 32, 2), "{T}", scope="local")
scores_n = T.alloc_buffer(({R}, {B}, 16), scope="local")
weights_n = T.alloc_buffer(({R}, {B}, 16), "{T}", scope="local")
top_n = T.alloc_buffer((16,), scope="local")
total_n = T.alloc_buffer(({R}, 16), scope="local")
running_n = T.alloc_buffer(({R},), scope="local")
peak_n = T.alloc_buffer(({R},), scope="local")
scale_n = T.alloc_buffer(({R},), scope="local")
acc_n = T.alloc_buffer(({R}, {DP}), scope="local")
rows_1 = T.alloc_buffer(({HEADS}, {D}), scope="local")
sum_1 = T.alloc_buffer(({HEADS}, {KB}, 16), scope="local")
even_1 = T.alloc_buffer(({HEADS}, {KB}, 16), scope="local")
odd_1 = T.alloc_buffer(({HEADS}, {KB}, 16), scope="local")
scores_1 = T.alloc_buffer(({HEADS}, {B}, 16), scope="local")
top_1 = T.alloc_buffer((16,), scope="local")
total_1 = T.alloc_buffer(({HEADS}, 16), scope="local")
running_1 = T.alloc_buffer(({HEADS},), scope="local")
peak_1 = T.alloc_buffer(({HEADS},), scope="local")
scale_1 = T.alloc_buffer(({HEADS},), scope="local")
part_1 = T.alloc_buffer(({HEADS}, {DC}), scope="local")
even_value_1 = T.alloc_buffer(({HEADS}, {DC}), scope="local")
odd_value_1 = T.alloc_buffer(({HEADS}, {DC}), scope="local")
acc_1 = T.alloc_buffer(({HEADS}, {D}), scope="local")
)";

// Tokens go by {R}; in these each run of one sequence goes on tiles where it is not short, else token by token, each with {HEADS} heads of
// those that share keys and values. Late tokens cost more than early ones, so that both ends take turns.
constexpr const char* kLoops = R"(
for i in T.parallel((n + T.int64({R} - 1)) // T.int64({R}) * T.int64({H})):
    with T.block("attention_on_tiles"):
        vi = T.axis.spatial((n + T.int64({R} - 1)) // T.int64({R}) * T.int64({H}), i)
        T.reads({READS})
        T.writes(o[0:n, 0:{H}, 0:{D}])
{BUFFERS}
        tiles: T.int64 = (n + T.int64({R} - 1)) // T.int64({R})
        vh: T.int64 = vi // tiles
        turn: T.int64 = vi % tiles
        t: T.int64 = T.if_then_else(turn % T.int64(2) == T.int64(0), turn // T.int64(2), tiles - T.int64(1) - turn // T.int64(2)) * T.int64({R})
        for s in range(T.min(T.int64({R}), n - t)):
            if s == T.int64(0) or token_seq[t + s] != token_seq[T.max(t + s - T.int64(1), T.int64(0))]:
                length[0] = T.int64(0)
                for u in range(T.min(T.int64({R}), n - t) - s):
                    if token_seq[t + s + u] == token_seq[t + s]:
                        length[0] = length[0] + T.int64(1)
                many: T.int64 = length[0]
                if many >= T.int64({FEW}):
{TILE_BODY}
                elif vh % T.int64({SHARE}) % T.int64({HEADS}) == 0:
                    for u in range(many):
{TOKEN_BODY}
)";

constexpr int64_t kTileRows = 32;  // of a tile product
/// Tokens from which on copying pages into panels takes less than passing over the cache for each of them.
constexpr int64_t kFew = 4;

}  // namespace

std::string attention_on_tiles(const AttentionShape& shape) {
  const int64_t d = shape.head_dim, filled_up = (d + 31) / 32 * 32, heads = heads_together(shape);
  const QueryRows tile{.suffix = "_n", .first = "(t + s)", .rows = kTileRows, .many = "many"};
  const QueryRows token{.suffix = "_1", .first = "(t + s + u)", .of_one_token = true, .rows = heads};
  const bool fills = d < filled_up;
  const Asking ask(shape);
  // Two heads and four pages, or four and two, keep both multipliers busy.
  const int64_t pages = heads > 2 ? kPagesOfBlock / 2 : kPagesOfBlock,
                columns = largest_divisor(d, heads > 2 ? 32 : 64);
  const Holes texts = {{"FILL_ROW", fills ? kFillRow : ""},
                       {"FILL_PANELS", fills ? kFillPanels : ""},
                       {"WHOLE_KEYS", d >= 32 ? kWholeKeys : ""},
                       {"ODD_KEYS", fills ? kOddKeys : ""},
                       {"ODD_COLUMNS", fills ? kOddColumns : ""},
                       {"EVEN_KEY", filled(kEven, {{"PAIR", kPairOfKeys}})},
                       {"ODD_KEY", filled(kOdd, {{"PAIR", kPairOfKeys}})},
                       {"EVEN_VALUE", filled(kEven, {{"PAIR", kPairOfValues}})},
                       {"ODD_VALUE", filled(kOdd, {{"PAIR", kPairOfValues}})},
                       {"ASK_FOR_VALUES", ask.statement("v_pages", kPageOfKeys, "(w * 16 + d) * 16")},
                       {"ASK_FOR_KEYS", ask.statement("k_pages", kPageOfLaterKeys, "(z * 8 + j) * {DC} + l * {LINE}")},
                       {"PAGE_OF_KEYS", kPageOfKeys},
                       {"GROUP", "vh // T.int64({SHARE})"}};
  const Holes numbers = {{"DP", text(filled_up)},
                         {"FILL", text(filled_up - d)},
                         {"ODD", text(d % 32)},
                         {"WHOLE", text(d / 32 * 32)},
                         {"FROM_ZERO", d < 32 ? "1" : "0"},
                         {"KB", text(pages)},
                         {"KEY_LINES", text(ask.lines(columns))},
                         {"LINE", text(ask.units_of_line)},
                         {"DC", text(columns)}};
  auto rows = [&](const char* source, const QueryRows& r, const char* at, const char* product) {
    const Holes of_row = row_holes(shape, r, at, text(product, " * sm_scale"));
    return filled(filled(filled(source, texts), of_row), numbers);
  };
  const std::string on_tile = rows(kRowsOnTiles, tile, "(p * {B} + b) * 16 + j", "scores{S}[r, b, j]"),
                    alone = rows(kHeadsOfToken, token, "(p * {B} + b * {KB} + x) * 16 + j", "sum{S}[r, x, j]");
  return filled(kLoops,
                {{"BUFFERS", indented(filled(filled(kBuffers, row_holes(shape, tile, "", "")), numbers), 8)},
                 {"TILE_BODY", indented(on_tile, 20)},
                 {"TOKEN_BODY", indented(alone, 24)},
                 {"R", text(kTileRows)},
                 {"FEW", text(kFew)}});
}

}  // namespace sator::llm
