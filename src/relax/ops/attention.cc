// Scaled dot-product attention.
#include <cmath>

#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"
#include "relax/ops/table.h"

namespace sator::relax {

namespace {

using te::Indices;
using te::Tensor;

struct AttentionAttrs {
  std::optional<double> scale;             ///< nothing: 1 / sqrt(head dimension)
  std::optional<std::string> causal_mask;  ///< TopLeft: query i sees keys 0..i; BottomRight: the last query sees all
  std::optional<int64_t> window_size;  ///< of the keys that causal_mask leaves, how many a query sees: the last ones
  static constexpr auto fields() {
    return std::tuple{attr("scale", &AttentionAttrs::scale),
                      attr("causal_mask", &AttentionAttrs::causal_mask),
                      attr("window_size", &AttentionAttrs::window_size)};
  }
};

void check_mask(const AttentionAttrs& a, const CallInfo& in) {
  if (a.causal_mask && *a.causal_mask != "TopLeft" && *a.causal_mask != "BottomRight")
    in.fail({.what = text("causal_mask ", string_literal(*a.causal_mask)),
             .needs = "\"TopLeft\", \"BottomRight\" or None",
             .hint = "choose one of these"});
  if (a.window_size && !a.causal_mask)
    in.fail({.what = text("window_size ", *a.window_size, " without causal_mask"),
             .needs = "causal_mask, which says where the window ends",
             .hint = "pass causal_mask=\"BottomRight\""});
  if (a.window_size && *a.window_size < 1)
    in.fail({.what = text("window_size ", *a.window_size), .needs = "window_size >= 1", .hint = "a query sees itself"});
}

/// query [batch, n, heads, d], key [batch, m, kv heads, d], value [batch, m, kv heads, e], bias [batch, heads, n, m].
StructInfo infer_attention(const AttentionAttrs& a, const CallInfo& in) {
  check_mask(a, in);
  in.need_float(0);
  if (in.size() == 4)
    in.common_dtype({0, 1, 2, 3});
  else
    in.common_dtype({0, 1, 2});
  std::vector<std::vector<Expr>> s;
  for (size_t i = 0; i < in.size(); ++i) {
    const TensorInfo& t = in.tensor(i);
    auto shape = explicit_shape(t);
    if (t.ndim != 4 || !shape)
      in.fail({.what = text(in.op().inputs[i].name, " has rank ", t.ndim, " or an unknown shape"),
               .needs = "[batch, sequence, heads, dimension]",
               .hint = "reshape it to four dimensions"});
    s.push_back(*shape);
  }
  auto same = [&](const Expr& a, const Expr& b, const char* what) {
    if (in.differ(a, b))
      in.fail({.what = text(what, " differ"),
               .needs = text("equal ", what),
               .hint = "check the order of axes: [batch, sequence, heads, dimension]"});
  };
  same(s[0][0], s[1][0], "batch sizes of query and key");
  same(s[0][0], s[2][0], "batch sizes of query and value");
  same(s[1][1], s[2][1], "lengths of key and value");
  same(s[0][3], s[1][3], "head dimensions of query and key");
  for (size_t i : {1, 2}) {
    if (in.arith().prove(make<EQ>(s[i][2], dim(0))) && !in.arith().prove(make<EQ>(s[0][2], dim(0))))
      in.fail({.what = text(in.op().inputs[i].name, " has no heads"),
               .needs = "one head for each group of those of query",
               .hint = "check the number of heads"});
    // Sizes that are no numbers may be 0 when the program runs.
    const Expr heads = as_int(s[i][2]) ? s[i][2] : max(s[i][2], dim(1));
    if (!in.arith().prove_equal(s[0][2], s[i][2]) && in.differ(floormod(s[0][2], heads), dim(0)))
      in.fail({.what = text("the heads of query are no multiple of those of ", in.op().inputs[i].name),
               .needs = "a multiple",
               .hint = "check the number of heads"});
  }
  if (s.size() == 4) {
    const Expr wanted[] = {s[0][0], s[0][2], s[0][1], s[1][1]};
    for (size_t d = 0; d < 4; ++d) {
      if (d < 3 && is_one(s[3][d])) continue;
      same(s[3][d], wanted[d], "extents of bias and scores");
    }
  }
  const TensorInfo& query = in.tensor(0);
  return tensor_info({s[0][0], s[0][1], s[0][2], s[2][3]}, query.dtype, query.vdevice);
}

/// a [b, m, k] times b, which is [b, n, k] (transposed) or [b, k, n].
Tensor batch_matmul(const Tensor& a, const Tensor& b, bool transposed) {
  te::Naming naming{.name = transposed ? "T_batch_matmul_NT" : "T_batch_matmul_NN", .axes = {"b", "i", "j"}};
  return te::reduce(naming, {a.dim(0), a.dim(1), b.dim(transposed ? 1 : 2)}, [&](const Indices& i) {
    tir::IterVarRef k = te::reduce_axis(a.dim(2), "k");
    Indices at_b = transposed ? Indices{i[0], i[2], k->var} : Indices{i[0], k->var, i[2]};
    return te::reduce_sum(a({i[0], i[1], k->var}) * b(at_b), {k});
  });
}

/// [batch, sequence, heads, d] as [batch * all_heads, sequence, d]. Where t has fewer heads than `all_heads`, each of its
/// heads serves that many neighbouring ones (grouped-query attention).
/// Source: Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints", 2023.
Tensor merged_heads(const Tensor& t, const Expr& all_heads) {
  std::vector<Expr> shape{t.dim(0) * all_heads, t.dim(1), t.dim(3)};
  if (arith::Analyzer().prove_equal(t.dim(2), all_heads)) return reshape(transpose(t, {0, 2, 1, 3}), shape);
  return gather({.name = "T_grouped_heads"}, t, shape, [&](const Indices& i) {
    Expr head = floormod(i[0], all_heads), group = floordiv(all_heads, t.dim(2));
    return Indices{floordiv(i[0], all_heads), i[1], floordiv(head, group), i[2]};
  });
}

/// The softmax of scores [batch * heads, n, m] over those keys that each query sees; 0 for a query that sees none.
Tensor masked_softmax(const AttentionAttrs& a, const Tensor& scores) {
  DType dtype = scores.dtype();
  Expr least = te::min_value(dtype), zero = constant(0, dtype);
  // Query i sees the keys up to i, or up to i + m - n: the last query all of them.
  Expr offset = *a.causal_mask == "TopLeft" ? dim(0) : scores.dim(2) - scores.dim(1);
  auto seen = [&](const Indices& i) {
    Expr last = i[1] + offset;
    Expr out = le(i[2], last);
    return a.window_size ? logical_and(out, gt(i[2], last - dim(*a.window_size))) : out;
  };
  Tensor masked = te::compute(
      {.name = "T_masked"}, scores.shape(), [&](const Indices& i) { return select(seen(i), scores(i), least); });
  // Scores of -inf in a row that hides no key: their exponentials are 0, too.
  Tensor greatest =
      map({.name = "T_greatest"}, max(masked, Axes{-1}, true), [&](const Expr& v) { return sator::max(v, least); });
  Tensor e = exp(subtract(masked, greatest));
  Tensor kept =
      te::compute({.name = "T_seen"}, scores.shape(), [&](const Indices& i) { return select(seen(i), e(i), zero); });
  Tensor total = sum(kept, Axes{-1}, true);
  return te::compute({.name = "T_masked_softmax"}, scores.shape(), [&](const Indices& i) {
    Expr all = total({i[0], i[1], dim(0)});
    return select(eq(all, zero), zero, div(kept(i), all));
  });
}

/// softmax(query key^T * scale + bias) value, head by head.
Tensor compute_attention(const AttentionAttrs& a, const TeInputs& in) {
  const Tensor &query = in.tensor(0), &key = in.tensor(1), &value = in.tensor(2);
  DType dtype = query.dtype();
  Expr batch = query.dim(0), n = query.dim(1), heads = query.dim(2), m = value.dim(1), e = value.dim(3);
  Tensor p = batch_matmul(merged_heads(query, heads), merged_heads(key, heads), true);
  p = a.scale ? multiply(p, constant(*a.scale, dtype)) : divide(p, math("sqrt", cast_to(dtype, query.dim(3))));
  if (in.has(3)) p = reshape(add(reshape(p, {batch, heads, n, m}), in.tensor(3)), {batch * heads, n, m});
  Tensor s = a.causal_mask ? masked_softmax(a, p) : softmax(p, -1);
  Tensor out = batch_matmul(s, merged_heads(value, heads), false);
  return transpose(reshape(out, {batch, heads, n, e}), {0, 2, 1, 3});
}

/// attention(query, key, value, bias) is the op attention_bias.
RExpr build_attention(const OpDef& op, BoundArgs args) {
  if (args.inputs.size() > 3 && !args.inputs[3].is_none())
    return build_call(op_named("nn.attention_bias"), std::move(args));
  args.inputs.resize(3);
  return build_call(op, std::move(args));
}

/// queries [1, total n, heads, d] of several sequences laid end to end.
StructInfo infer_var_len(const AttentionAttrs& a, const CallInfo& in) {
  check_mask(a, in);
  auto s = explicit_shape(in.tensor(0)), v = explicit_shape(in.tensor(2));
  for (size_t i = 0; i < 3; ++i) in.need_rank(i, 4);
  if (!s || !v) return tensor_info(in.tensor(0).dtype, 4, in.tensor(0).vdevice);
  return tensor_info({(*s)[0], (*s)[1], (*s)[2], (*v)[3]}, in.tensor(0).dtype, in.tensor(0).vdevice);
}

}  // namespace

std::vector<OpDef> attention_ops() {
  auto attrs = attrs_of<AttentionAttrs>();
  InputDef bias{"bias", InputKind::tensor, true};
  auto any = InputKind::any;
  return {
      {.name = "nn.attention",
       .inputs = {{"query"}, {"key"}, {"value"}, bias},
       .attrs = attrs,
       .infer = with(infer_attention),
       .compute = with(compute_attention),
       .build = build_attention},
      {.name = "nn.attention_bias",
       .inputs = {{"query"}, {"key"}, {"value"}, {"bias"}},
       .attrs = attrs,
       .infer = with(infer_attention),
       .compute = with(compute_attention)},
      {.name = "nn.attention_var_len",
       .inputs = {{"queries"},
                  {"keys"},
                  {"values"},
                  {"seqstart_q"},
                  {"max_seqlen_q", any},
                  {"seqstart_k", any, true},
                  {"max_seqlen_k", any, true}},
       .attrs = attrs,
       .infer = with(infer_var_len)},
  };
}

}  // namespace sator::relax
