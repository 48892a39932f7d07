// Maxima and means over windows, and means over an adaptive grid, in one to three dimensions.
#include <algorithm>

#include "relax/builder.h"
#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"
#include "relax/ops/layout.h"

namespace sator::relax {

namespace {

using te::Indices;
using te::Tensor;

template <int N>
constexpr std::string_view kLetters = N == 1   ? "NCW"
                                      : N == 2 ? "NCHW"
                                               : "NCDHW";

template <int N>
struct PoolAttrs {
  PerAxis<N> pool_size;
  PerAxis<N> strides;
  Padding<N> padding;
  PerAxis<N> dilation;
  bool ceil_mode = false;          ///< a window may reach beyond the end
  bool count_include_pad = false;  ///< padding counts in means
  std::string layout = std::string(kLetters<N>);
  std::optional<std::string> out_layout;
  static constexpr auto fields() {
    using A = PoolAttrs;
    return std::tuple{attr("pool_size", &A::pool_size),
                      attr("strides", &A::strides),
                      attr("padding", &A::padding),
                      attr("dilation", &A::dilation),
                      attr("ceil_mode", &A::ceil_mode),
                      attr("count_include_pad", &A::count_include_pad),
                      attr("layout", &A::layout),
                      attr("out_layout", &A::out_layout)};
  }
  const std::string& out() const { return out_layout ? *out_layout : layout; }
};

template <int N>
StructInfo infer_pool(const PoolAttrs<N>& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  Layout data = need_layout(in, a.layout, kLetters<N>), out = need_layout(in, a.out(), kLetters<N>);
  need_window(in, a.pool_size.v, a.strides.v, a.padding.v, a.dilation.v);
  auto shape = shape_in(in, 0, data, kLetters<N>);
  if (!shape) return tensor_info(x.dtype, out.rank(), x.vdevice);
  for (size_t d = 0; d < N; ++d) {
    Expr padded = (*shape)[d + 2] + (a.padding.v[d] + a.padding.v[d + N]);
    if (a.ceil_mode) padded = padded + (a.strides.v[d] - 1);
    const Expr reach = dim(a.dilation.v[d] * (a.pool_size.v[d] - 1) + 1);
    (*shape)[d + 2] = windows_along(in, padded, reach, a.strides.v[d]);
  }
  return tensor_info(out.from_letters(*shape, kLetters<N>, in.arith()), x.dtype, x.vdevice);
}

/// Which spatial dimension each axis of the layout is; -1 for batch and channels.
template <int N>
std::vector<int> spatial_dims(const std::string& layout) {
  std::vector<int> dims;
  for (char c : layout) {
    if (!std::isalpha(static_cast<unsigned char>(c))) continue;
    size_t at = kLetters<N>.find(c);
    dims.push_back(at == kLetters<N>.npos || at < 2 ? -1 : static_cast<int>(at) - 2);
  }
  return dims;
}

/// Whether an axis of space is split: the formulas take windows of whole axes.
bool splits_space(const std::string& layout) {
  return std::ranges::any_of(layout, [](char c) { return c == 'd' || c == 'h' || c == 'w'; });
}

/// What a block tells a tuner of its kind; nothing for an empty name.
Attrs rule_of(const std::string& name) {
  return name.empty() ? Attrs() : Attrs{{"schedule_rule", string_imm("meta_schedule." + name)}};
}

template <int N, bool kMax>
Tensor compute_pool(const PoolAttrs<N>& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  std::vector<int> dims = spatial_dims<N>(a.layout);
  Axes before, after;
  bool padded = false;
  std::vector<tir::IterVarRef> window(N);
  std::vector<tir::IterVarRef> axes;
  for (int d : dims) {
    size_t s = static_cast<size_t>(d);
    before.push_back(d < 0 ? 0 : a.padding.v[s]);
    after.push_back(d < 0 ? 0 : a.padding.v[s + N] + (a.ceil_mode ? a.strides.v[s] - 1 : 0));
    padded = padded || before.back() || after.back();
    if (d >= 0) window[s] = te::reduce_axis(dim(a.pool_size.v[s]), text("rv", s));
    if (d >= 0) axes.push_back(window[s]);
  }
  Expr outside = kMax ? te::max_identity(x.dtype()) : constant(0, x.dtype());
  Tensor source = padded ? pad(x, before, after, outside, "pad_temp") : x;
  auto reduced = [&](const char* name, ReduceFn f) {
    return te::reduce({.name = name, .annotations = rule_of(kMax ? name : "")}, in.out_shape(), [&](const Indices& i) {
      Indices at = i;
      for (size_t k = 0; k < dims.size(); ++k) {
        if (dims[k] < 0) continue;
        size_t s = static_cast<size_t>(dims[k]);
        at[k] = i[k] * a.strides.v[s] + Expr(window[s]->var) * a.dilation.v[s];
      }
      return f(source(at), axes);
    });
  };
  if (kMax) return reduced("pool_max", te::reduce_max);
  Tensor total = reduced("pool_sum", te::reduce_sum);
  return te::compute({.name = "pool_avg", .annotations = rule_of("pool_avg")}, in.out_shape(), [&](const Indices& i) {
    Expr count = dim(1);
    for (size_t k = 0; k < dims.size(); ++k) {
      if (dims[k] < 0) continue;
      size_t s = static_cast<size_t>(dims[k]);
      int64_t size = a.pool_size.v[s], dilation = a.dilation.v[s];
      if (a.count_include_pad) {
        count = count * size;
        continue;
      }
      // The window's first and last element; the steps until one is inside; those from there to the last inside.
      Expr first = i[k] * a.strides.v[s] - a.padding.v[s];
      Expr last = min(first + (size - 1) * dilation, x.shape()[k] - 1);
      Expr skipped = max(div(dim(dilation - 1) - first, dim(dilation)), dim(0));
      count = count * (div(last - (first + skipped * dilation), dim(dilation)) + 1);
    }
    return average(total(i), a.count_include_pad ? count : max(count, dim(1)));
  });
}

template <int N>
RExpr legalize_pool(const RCallRef& call, BlockBuilder& b) {
  auto a = read_attrs<PoolAttrs<N>>(call->attrs);
  return a.out() == a.layout && !splits_space(a.layout) ? b.legalize_by_formula(call) : nullptr;
}

RExpr build_pool(const OpDef& op, BoundArgs args) { return build_with_out_layout(op, std::move(args), "layout"); }

template <int N, bool kMax>
OpDef pool_row() {
  return {.name = text(kMax ? "nn.max_pool" : "nn.avg_pool", N, "d"),
          .inputs = {{"data"}},
          .attrs = attrs_of<PoolAttrs<N>>(),
          .infer = with(infer_pool<N>),
          .compute = with(compute_pool<N, kMax>),
          .legalize = legalize_pool<N>,
          .build = build_pool};
}

// ---- Adaptive: the output's size is given, the windows follow ----

template <int N>
struct AdaptivePoolAttrs {
  std::optional<PerAxis<N>> output_size;  ///< nothing: that of the input
  std::string layout = std::string(kLetters<N>);
  std::optional<std::string> out_layout;
  static constexpr auto fields() {
    using A = AdaptivePoolAttrs;
    return std::tuple{
        attr("output_size", &A::output_size), attr("layout", &A::layout), attr("out_layout", &A::out_layout)};
  }
  const std::string& out() const { return out_layout ? *out_layout : layout; }
};

template <int N>
StructInfo infer_adaptive(const AdaptivePoolAttrs<N>& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  Layout data = need_layout(in, a.layout, kLetters<N>), out = need_layout(in, a.out(), kLetters<N>);
  auto shape = shape_in(in, 0, data, kLetters<N>);
  if (!shape && x.shape && a.out() == a.layout && !a.output_size) return ref(x);
  if (!shape) return tensor_info(x.dtype, out.rank(), x.vdevice);
  for (size_t d = 0; a.output_size && d < N; ++d) {
    if (a.output_size->v[d] < 0)
      in.fail({.what = text("output_size ", a.output_size->v[d]), .needs = "output_size >= 0", .hint = "use 1"});
  }
  for (size_t d = 0; a.output_size && d < N; ++d) (*shape)[d + 2] = dim(a.output_size->v[d]);
  return tensor_info(out.from_letters(*shape, kLetters<N>, in.arith()), x.dtype, x.vdevice);
}

/// Output position o covers [floor(o * in / out), ceil((o + 1) * in / out)). A window's longest length bounds the loop;
/// the elements beyond its own end are left out.
template <int N>
Tensor compute_adaptive(const AdaptivePoolAttrs<N>& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  std::vector<int> dims = spatial_dims<N>(a.layout);
  std::vector<Expr> shape = in.out_shape();
  arith::Analyzer arith;
  auto start = [&](size_t k, const Expr& o) { return floordiv(o * x.shape()[k], shape[k]); };
  auto end = [&](size_t k, const Expr& o) { return floordiv((o + 1) * x.shape()[k] + shape[k] - 1, shape[k]); };
  auto even = [&](size_t k) { return arith.prove_equal(floormod(x.shape()[k], shape[k]), dim(0)); };
  std::vector<tir::IterVarRef> axes;
  std::vector<Expr> offset(dims.size());
  for (size_t k = 0; k < dims.size(); ++k) {
    if (dims[k] < 0) continue;
    Expr longest = even(k) ? floordiv(x.shape()[k], shape[k]) : floordiv(x.shape()[k] + shape[k] - 1, shape[k]) + 1;
    axes.push_back(te::reduce_axis(arith.simplify(longest), text("rv", dims[k])));
    offset[k] = axes.back()->var;
  }
  Tensor total = te::reduce({.name = "adaptive_pool_sum"}, shape, [&](const Indices& i) {
    Indices at = i;
    Expr inside = bool_imm(true);
    for (size_t k = 0; k < dims.size(); ++k) {
      if (dims[k] < 0) continue;
      at[k] = (even(k) ? i[k] * floordiv(x.shape()[k], shape[k]) : start(k, i[k])) + offset[k];
      if (!even(k)) inside = logical_and(inside, lt(at[k], end(k, i[k])));
    }
    return te::reduce_sum(if_then_else(inside, x(at), constant(0, x.dtype())), axes);
  });
  return te::compute(
      {.name = "adaptive_pool_avg", .annotations = rule_of("adaptive_pool_avg")}, shape, [&](const Indices& i) {
        Expr count = dim(1);
        for (size_t k = 0; k < dims.size(); ++k) {
          if (dims[k] < 0) continue;
          count = count * (even(k) ? floordiv(x.shape()[k], shape[k]) : end(k, i[k]) - start(k, i[k]));
        }
        return average(total(i), arith.simplify(count));
      });
}

template <int N>
RExpr legalize_adaptive(const RCallRef& call, BlockBuilder& b) {
  auto a = read_attrs<AdaptivePoolAttrs<N>>(call->attrs);
  return a.out() == a.layout && !splits_space(a.layout) ? b.legalize_by_formula(call) : nullptr;
}

template <int N>
OpDef adaptive_row() {
  return {.name = text("nn.adaptive_avg_pool", N, "d"),
          .inputs = {{"data"}},
          .attrs = attrs_of<AdaptivePoolAttrs<N>>(),
          .infer = with(infer_adaptive<N>),
          .compute = with(compute_adaptive<N>),
          .legalize = legalize_adaptive<N>,
          .build = build_pool};
}

}  // namespace

std::vector<OpDef> pooling_ops() {
  return {pool_row<1, true>(),
          pool_row<2, true>(),
          pool_row<3, true>(),
          pool_row<1, false>(),
          pool_row<2, false>(),
          pool_row<3, false>(),
          adaptive_row<1>(),
          adaptive_row<2>(),
          adaptive_row<3>()};
}

}  // namespace sator::relax
