#include "llm/attention_text.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "base/text.h"
#include "runtime/paged_sequences.h"
#include "tir/parse.h"

namespace sator::llm {

namespace {

static_assert(runtime::PagedSequences::kPageSize == 16, "the kernels are written for pages of 16 positions");

Holes holes_of(const AttentionShape& s) {
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

// The addition to the score of a key, by its position; less the one at the query's own position, which changes no weight
// and keeps the scores small.
constexpr ExtraParam kBias = {"bias_handle: T.handle, ",
                              R"(    limit = T.int64()
    bias = T.match_buffer(bias_handle, ({H}, limit), "float32")
)",
                              ", bias[0:{H}, 0:limit]"};

// A sink is a position before all others that has no value: its score is the first peak, its weight beside that 1.
constexpr ExtraParam kSinks = {"sinks_handle: T.handle, ",
                               R"(    sinks = T.match_buffer(sinks_handle, ({H},), "float32")
)",
                               ", sinks[0:{H}]"};

// From the largest scores of each lane to the row's, for each row; then what the new peak makes of all that was added up before.
constexpr const char* kPeaks = R"(        for j in T.vectorized(8):
            top{S}[j] = T.max(top{S}[j], top{S}[j + 8])
        for j in T.vectorized(4):
            top{S}[j] = T.max(top{S}[j], top{S}[j + 4])
        for j in T.vectorized(2):
            top{S}[j] = T.max(top{S}[j], top{S}[j + 2])
        peak{S}[r] = T.max(T.max(top{S}[0], top{S}[1]), running{S}[r])
    for r in T.vectorized({R}):
        scale{S}[r] = T.exp(running{S}[r] - peak{S}[r])
    for r in T.vectorized({R}):
        running{S}[r] = peak{S}[r])";

// A row's weighted values over the sum of its weights.
constexpr const char* kStore = R"(    for j in T.vectorized(8):
        total{S}[r, j] = total{S}[r, j] + total{S}[r, j + 8]
    for j in T.vectorized(4):
        total{S}[r, j] = total{S}[r, j] + total{S}[r, j + 4]
    for j in T.vectorized(2):
        total{S}[r, j] = total{S}[r, j] + total{S}[r, j + 2]
    for d in T.vectorized({D}):
        o[{TOKEN}, {HEAD}, d] = acc{S}[r, d] * (T.float32(1) / (total{S}[r, 0] + total{S}[r, 1])))";

}  // namespace

void check_shape(const AttentionShape& s) {
  if (s.num_kv_heads < 1 || s.num_qo_heads % s.num_kv_heads != 0 || s.head_dim < 1 || s.rotary_dim < 0 ||
      s.rotary_dim % 2 != 0 || s.rotary_dim > s.head_dim || (s.interleaved && s.rotary_dim == 0) || s.window < 0 ||
      s.soft_cap < 0 || (s.narrow && s.cache_dtype == f32) || (s.biased && s.sinks))
    internal_error("attention: heads or sizes that do not fit each other");
}

tir::PrimFuncRef attention_function(const std::string& source, const AttentionShape& shape) {
  static std::mutex one_at_a_time;
  static std::unordered_map<std::string, tir::PrimFuncRef> known;
  std::string program = filled(source, holes_of(shape));
  const std::lock_guard lock(one_at_a_time);
  tir::PrimFuncRef& func = known[program];
  if (!func) func = tir::parse_function(std::move(program));
  return func;
}

ExtraParam extra_param(const AttentionShape& shape) {
  if (shape.biased) return kBias;
  if (shape.sinks) return kSinks;
  return {};
}

Holes row_holes(const AttentionShape& shape, const QueryRows& r, const std::string& at, std::string score) {
  std::string seen = text(at, " <= positions[{TOKEN}]"), from = "0";
  if (shape.window > 0) {
    seen += text(" and positions[{TOKEN}] - (", at, ") < ", shape.window);
    from = text("T.max(positions[", r.first, "] - ", shape.window - 1, ", 0) // {16B}");
  }
  if (shape.soft_cap != 0) {
    const std::string cap = text("T.float32(", shape.soft_cap, ")");
    score = text("T.tanh((", score, ") / ", cap, ") * ", cap);
  }
  if (shape.biased) score = text(score, " + (bias[{HEAD}, ", at, "] - bias[{HEAD}, positions[{TOKEN}]])");
  const int64_t share = shape.num_qo_heads / shape.num_kv_heads;
  std::string token = r.first, last = r.first, head = "vh";
  if (!r.many.empty()) {
    token = text("(", r.first, " + r)");
    last = text("(", r.first, " + ", r.many, " - T.int64(1))");
  } else if (!r.of_one_token) {
    token = text("T.min(", r.first, " + r, n - T.int64(1))");
    last = text("T.min(", r.first, " + T.int64(", r.rows - 1, "), n - T.int64(1))");
  } else if (r.rows > 1) {
    head = share % r.rows == 0 ? "(vh + r)" : text("(vh + T.min(r, T.int64(", share - 1, ") - vh % T.int64({SHARE})))");
  }
  return {{"PEAKS", kPeaks},
          {"STORE", kStore},
          {"FIRST_PEAK", shape.sinks ? "sinks[{HEAD}]" : "T.float32(-1e30)"},
          {"FIRST_WEIGHT", shape.sinks ? "total{S}[r, 0] = T.float32(1)" : ""},
          {"SCORE", score},
          {"SEEN", seen},
          {"FROM", from},
          {"S", r.suffix},
          {"TOKEN", token},
          {"HEAD", head},
          {"LAST", last},
          {"R", text(r.rows)},
          {"B", text(kPagesOfBlock)},
          {"16B", text(kPagesOfBlock * 16)}};
}

Asking::Asking(const AttentionShape& shape)
    : units_of_line(64 / (shape.cache_dtype.bytes() * (shape.in_pairs() ? 2 : 1))), in_pairs(shape.in_pairs()) {}

std::string Asking::statement(const char* pages, const std::string& page, const std::string& at) const {
  return text(
      "T.evaluate(T.prefetch(T.address_of(", pages, "[", page, ", 0, ", at, in_pairs ? ", 0" : "", "]), 0, 3, 1))");
}

int64_t Asking::lines(int64_t units) const { return std::max<int64_t>(units / units_of_line, 1); }

int64_t heads_together(const AttentionShape& shape) {
  constexpr int64_t kMost = 4;
  return std::min(kMost, shape.num_qo_heads / shape.num_kv_heads);
}

int64_t largest_divisor(int64_t n, int64_t limit) {
  int64_t d = std::min(n, limit);
  while (n % d != 0) --d;
  return d;
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

}  // namespace sator::llm
