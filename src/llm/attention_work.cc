#include "base/text.h"
#include "llm/attention_text.h"

namespace sator::llm {

namespace {

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

}  // namespace

tir::PrimFuncRef attention_work(const AttentionShape& shape) {
  check_shape(shape);
  const bool scaled = shape.biased || shape.sinks;  // what joins the scores is as large as they are then
  std::string attended = "vj <= vi + kv_len - n";
  if (shape.window > 0) attended += text(" and vi + kv_len - n < vj + ", shape.window);
  const ExtraParam extra = extra_param(shape);
  Holes values = {{"EXTRA_HANDLE", extra.handle},
                  {"EXTRA_BUFFER", shape.biased ? kWorkBiasBuffer : extra.buffer},
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
  const Holes heads = {{"h", shared ? "g, r" : "h"},
                       {"vh", shared ? "vg, vr" : "vh"},
                       {"HEADS", shared ? "{G}, {SHARE}" : "{H}"},
                       {"S", shared ? "SS" : "S"},
                       {"HEAD", shared ? "vg * {SHARE} + vr" : "vh"},
                       {"GROUP", shared ? "vg" : "vh"},
                       {"ATTENDED", attended}};
  values.insert(values.end(), heads.begin(), heads.end());
  return attention_function(filled(kAttentionWork, values), shape);
}

}  // namespace sator::llm
