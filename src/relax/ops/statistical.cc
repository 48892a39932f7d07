// Reductions of a tensor to sums, means and extremes, running sums, and positions of extremes.
#include <algorithm>

#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

using te::Indices;
using te::Tensor;

struct StatisticalAttrs {
  std::optional<Axes> axis;  ///< nothing: all
  bool keepdims = false;     ///< reduced axes stay, with extent 1
  static constexpr auto fields() {
    return std::tuple{attr("axis", &StatisticalAttrs::axis), attr("keepdims", &StatisticalAttrs::keepdims)};
  }
};

/// The shape that remains after reducing over `axis`.
StructInfo infer_reduction(const std::optional<Axes>& axis, bool keepdims, const CallInfo& in, DType dtype) {
  const TensorInfo& x = in.tensor(0);
  std::vector<int> axes;
  if (axis && x.ndim >= 0) axes = in.axes(*axis, x.ndim);
  int ndim = keepdims ? x.ndim : !axis ? 0 : x.ndim < 0 ? -1 : x.ndim - static_cast<int>(axes.size());
  auto shape = explicit_shape(x);
  if (!shape) {
    if (!axis && ndim >= 0) return tensor_info(std::vector<Expr>(static_cast<size_t>(ndim), dim(1)), dtype, x.vdevice);
    return ndim == 0 ? tensor_info(std::vector<Expr>{}, dtype, x.vdevice) : tensor_info(dtype, ndim, x.vdevice);
  }
  std::vector<Expr> out;
  for (int d = 0; d < x.ndim; ++d) {
    if (axis && std::ranges::find(axes, d) == axes.end())
      out.push_back((*shape)[static_cast<size_t>(d)]);
    else if (keepdims)
      out.push_back(dim(1));
  }
  return tensor_info(std::move(out), dtype, x.vdevice);
}

StructInfo infer_statistical(const StatisticalAttrs& a, const CallInfo& in) {
  return infer_reduction(a.axis, a.keepdims, in, in.tensor(0).dtype);
}

template <ReduceFn kReduce>
Tensor compute_reduction(const StatisticalAttrs& a, const TeInputs& in) {
  return reduce(in.tensor(0), a.axis, a.keepdims, kReduce);
}
Tensor compute_sum(const StatisticalAttrs& a, const TeInputs& in) { return sum(in.tensor(0), a.axis, a.keepdims); }
Tensor compute_mean(const StatisticalAttrs& a, const TeInputs& in) { return mean(in.tensor(0), a.axis, a.keepdims); }
/// The mean of (x - mean)^2: divided by n, not n - 1.
Tensor variance(const StatisticalAttrs& a, const Tensor& x) {
  Tensor deviation = subtract(x, mean(x, a.axis, true));
  return mean(multiply(deviation, deviation), a.axis, a.keepdims);
}
Tensor compute_variance(const StatisticalAttrs& a, const TeInputs& in) { return variance(a, in.tensor(0)); }
Tensor compute_std(const StatisticalAttrs& a, const TeInputs& in) { return sqrt(variance(a, in.tensor(0))); }

// ---- argmax, argmin ----

struct ArgReductionAttrs {
  std::optional<int64_t> axis;  ///< nothing: over all elements, counted row by row
  bool keepdims = false;
  static constexpr auto fields() {
    return std::tuple{attr("axis", &ArgReductionAttrs::axis), attr("keepdims", &ArgReductionAttrs::keepdims)};
  }
};

std::optional<Axes> as_axes(const std::optional<int64_t>& axis) {
  return axis ? std::optional(Axes{*axis}) : std::nullopt;
}

StructInfo infer_arg_reduction(const ArgReductionAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  auto shape = explicit_shape(x);
  for (int d = 0; shape && d < x.ndim; ++d) {
    if (is_zero((*shape)[static_cast<size_t>(d)]) && (!a.axis || in.axis(*a.axis, x.ndim) == d))
      in.fail({.what = "the position of an extreme of no elements",
               .needs = "at least one element along the axis",
               .hint = "check the shape of x"});
  }
  return infer_reduction(as_axes(a.axis), a.keepdims, in, i64);
}

/// The least position among equal extremes, a NaN's where there is one. First position and value are reduced together,
/// then the position is taken.
template <bool kMax>
Tensor compute_arg_reduction(const ArgReductionAttrs& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  std::vector<int64_t> reduced = sorted_axes(as_axes(a.axis), x.rank());
  std::vector<tir::IterVarRef> iterators;
  Indices position;
  std::vector<Expr> extents;
  for (int64_t d : reduced) {
    iterators.push_back(te::reduce_axis(x.dim(d), text("k", d)));
    position.push_back(iterators.back()->var);
    extents.push_back(x.dim(d));
  }
  const DType counted = position.empty() ? i64 : position[0]->dtype;
  te::Reducer reducer = kMax ? te::argmax_reducer(counted, x.dtype()) : te::argmin_reducer(counted, x.dtype());
  std::vector<Expr> shape = in.out_shape();
  std::string name = x.stage()->name + "_red";
  std::vector<Tensor> both = te::reduce_together({.name = name + "_temp"}, shape, [&](const Indices& i) {
    Indices at;
    size_t spatial = 0, reduction = 0;
    for (int64_t d = 0; d < x.rank(); ++d) {
      bool is_reduced = std::ranges::find(reduced, d) != reduced.end();
      at.push_back(is_reduced ? Expr(iterators[reduction++]->var) : i[spatial]);
      spatial += !is_reduced || a.keepdims;
    }
    return te::Reduction{reducer, {ravel(position, extents), x(at)}, iterators};
  });
  return te::compute({.name = name}, shape, [&](const Indices& i) { return both[0](i); });
}

// ---- cumsum, cumprod ----

struct ScanAttrs {
  std::optional<int64_t> axis;  ///< nothing: x is flattened
  DType dtype;                  ///< of the result; void: x's
  bool exclusive = false;       ///< an element's own value is left out
  static constexpr auto fields() {
    return std::tuple{
        attr("axis", &ScanAttrs::axis), attr("dtype", &ScanAttrs::dtype), attr("exclusive", &ScanAttrs::exclusive)};
  }
};

StructInfo infer_scan(const ScanAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  DType dtype = a.dtype.is_void() ? x.dtype : a.dtype;
  if (a.axis && x.ndim >= 0) in.axis(*a.axis, x.ndim);
  if (a.axis) return with_dtype(x, dtype);
  auto shape = explicit_shape(x);
  if (!shape) return tensor_info(dtype, 1, x.vdevice);
  Expr count = dim(1);
  for (const Expr& e : *shape) count = count * e;
  return tensor_info({count}, dtype, x.vdevice);
}

/// Row by row: the result at a position is that of the one before, combined with the next value.
template <bool kProduct>
Tensor compute_scan(const ScanAttrs& a, const TeInputs& in) {
  Tensor x = in.tensor(0);
  if (!a.axis) x = reshape(x, in.out_shape());
  int64_t axis = a.axis.value_or(0);
  size_t along = static_cast<size_t>(axis < 0 ? axis + x.rank() : axis);
  DType dtype = in.out_dtype();
  auto statement = [=](const std::vector<BufferRef>& b) {
    std::vector<VarRef> loops;
    Indices i;
    for (size_t d = 0; d < x.shape().size(); ++d) {
      loops.push_back(make_var(text("i", d), x.shape()[d]->dtype));
      i.push_back(loops.back());
    }
    const VarRef& k = loops[along];
    Indices before = i, source = i;
    before[along] = k - 1;
    if (a.exclusive) source[along] = k - 1;
    Expr value = cast_to(dtype, load(b[0], source)), previous = load(b[1], before);
    Expr first = a.exclusive ? constant(kProduct ? 1 : 0, dtype) : value;
    Expr next = kProduct ? previous * value : previous + value;
    tir::Stmt s = tir::store(b[1], if_then_else(eq(k, int_imm(0, k->dtype)), first, next), i);
    s = tir::for_loop(k, x.shape()[along], s);
    for (size_t d = loops.size(); d-- > 0;) {
      if (d != along) s = tir::for_loop(loops[d], x.shape()[d], s);
    }
    return s;
  };
  return te::extern_stage(
      kProduct ? "cumprod_generic" : "cumsum_generic", {x}, {{x.shape(), dtype, "out_buf"}}, statement)[0];
}

}  // namespace

std::vector<OpDef> statistical_ops() {
  std::vector<OpDef> ops;
  auto reduction = [&](const char* name, ComputeFn compute) {
    ops.push_back({.name = name,
                   .inputs = {{"x"}},
                   .attrs = attrs_of<StatisticalAttrs>(),
                   .infer = with(infer_statistical),
                   .compute = std::move(compute)});
  };
  reduction("sum", with(compute_sum));
  reduction("prod", with(compute_reduction<te::reduce_prod>));
  reduction("max", with(compute_reduction<te::reduce_max>));
  reduction("min", with(compute_reduction<te::reduce_min>));
  reduction("mean", with(compute_mean));
  reduction("variance", with(compute_variance));
  reduction("std", with(compute_std));
  auto positions = [&](const char* name, ComputeFn compute) {
    ops.push_back({.name = name,
                   .inputs = {{"x"}},
                   .attrs = attrs_of<ArgReductionAttrs>(),
                   .infer = with(infer_arg_reduction),
                   .compute = std::move(compute)});
  };
  positions("argmax", with(compute_arg_reduction<true>));
  positions("argmin", with(compute_arg_reduction<false>));
  auto scan = [&](const char* name, ComputeFn compute) {
    ops.push_back({.name = name,
                   .inputs = {{"data"}},
                   .attrs = attrs_of<ScanAttrs>(),
                   .infer = with(infer_scan),
                   .compute = std::move(compute)});
  };
  scan("cumsum", with(compute_scan<false>));
  scan("cumprod", with(compute_scan<true>));
  return ops;
}

}  // namespace sator::relax
