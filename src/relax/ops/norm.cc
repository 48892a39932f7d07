// Normalisations: layer, root mean square, group and batch.
#include <algorithm>

#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

using te::Indices;
using te::Tensor;

/// Whether the parameters' extents are known to be those of the data at `axes`. Errors: dtypes, ranks or extents differ.
bool fits_axes(const CallInfo& in, const Axes& axes) {
  const TensorInfo& data = in.tensor(0);
  std::vector<int> at;
  if (data.ndim >= 0) at = in.axes(axes, data.ndim);
  in.need_float(0);
  std::optional<std::vector<Expr>> expected;
  if (auto shape = explicit_shape(data)) {
    expected.emplace();
    for (int d : at) expected->push_back((*shape)[static_cast<size_t>(d)]);
  }
  bool known = true;
  for (size_t i = 1; i < in.size(); ++i) {
    const TensorInfo& t = in.tensor(i);
    if (t.dtype != data.dtype)
      in.fail({.what = text(in.op().inputs[i].name, " is ", t.dtype, ", data is ", data.dtype),
               .needs = "equal dtypes",
               .hint = "cast with astype"});
    if (t.ndim != static_cast<int>(axes.size()))
      in.fail({.what = text(in.op().inputs[i].name, " has rank ", t.ndim),
               .needs = text("rank ", axes.size(), ", one per axis"),
               .hint = "reshape it"});
    auto shape = explicit_shape(t);
    if (!shape) continue;
    if (!expected) expected = shape;
    for (size_t d = 0; d < axes.size(); ++d) {
      if (in.differ((*expected)[d], (*shape)[d]))
        in.fail({.what = text(in.op().inputs[i].name, " does not have the extents of data at the axes"),
                 .needs = "the extents that are normalised over",
                 .hint = "check axes"});
      known = known && in.same((*expected)[d], (*shape)[d]);
    }
  }
  return known;
}

StructInfo rank_only(const TensorInfo& t) { return tensor_info(t.dtype, t.ndim, t.vdevice); }

bool is_half(DType d) { return d == f16 || d == bf16; }
/// Sums and what follows from them are float32 for half precision.
DType sum_dtype(DType d) { return is_half(d) ? f32 : d; }
constexpr int64_t kExact = 256;  // up to here every float dtype holds all integers

/// How many elements the axes span, as a number of x's dtype where that holds it for certain, else of the dtype of sums.
Expr element_count(const Tensor& x, const std::vector<int64_t>& axes) {
  int64_t known = 1;
  for (int64_t d : axes) {
    auto extent = as_int(x.dim(d));
    known = extent && known <= kExact ? known * *extent : kExact + 1;
  }
  Expr count = constant(1, known <= kExact ? x.dtype() : sum_dtype(x.dtype()));
  for (int64_t d : axes) count = count * x.dim(d);
  return count;
}

/// The mean of x over `axes` and 1 / sqrt(var + epsilon), var = E[(x - mean)^2], in float32 for half precision. E[x^2] - mean^2 would lose
/// all digits of the variance where the mean is large beside it.
struct Moments {
  Tensor mean, inverse_deviation;
};
Moments moments(const Tensor& x, const std::vector<int64_t>& axes, double epsilon) {
  const DType dtype = sum_dtype(x.dtype());
  const std::string& name = x.stage()->name;
  std::vector<Expr> rows = without(x.shape(), axes);
  if (rows.empty()) rows.push_back(dim(1));
  const te::Reducer sum{{constant(0, dtype)}, [](const std::vector<Expr>& l, const std::vector<Expr>& r) {
                          return std::vector{l[0] + r[0]};
                        }};
  auto sum_of = [&](const std::string& of, const std::function<Expr(const Expr& value, const Indices& row)>& term) {
    std::vector<tir::IterVarRef> iterators;
    for (int64_t d : axes) iterators.push_back(te::reduce_axis(x.dim(d), text("k", d)));
    return te::reduce_together({.name = of}, rows, [&](const Indices& i) {
      Indices at;
      size_t row = 0, k = 0;
      for (int64_t d = 0; d < x.rank(); ++d) {
        const bool reduced = std::ranges::find(axes, d) != axes.end();
        at.push_back(reduced ? Expr(iterators[k++]->var) : i[row++]);
      }
      return te::Reduction{sum, {term(cast_to(dtype, x(at)), i)}, iterators};
    })[0];
  };
  const Tensor total = sum_of(name + "_sum", [](const Expr& value, const Indices&) { return value; });
  const Expr count = element_count(x, axes);
  const Tensor mean =
      te::compute({.name = name + "_mean"}, rows, [&](const Indices& i) { return div(total(i), count); });
  const Tensor squares = sum_of(name + "_squares", [&](const Expr& value, const Indices& row) {
    const Expr off = value - mean(row);
    return off * off;
  });
  return {mean, te::compute({.name = name + "_rsqrt"}, rows, [&](const Indices& i) {
            return math("rsqrt", div(squares(i), count) + constant(epsilon, dtype));
          })};
}

// ---- layer_norm ----

struct LayerNormAttrs {
  Axes axes;
  double epsilon = 1e-5;
  bool center = true;  ///< beta is added
  bool scale = true;   ///< gamma is multiplied
  static constexpr auto fields() {
    return std::tuple{required("axes", &LayerNormAttrs::axes),
                      attr("epsilon", &LayerNormAttrs::epsilon),
                      attr("center", &LayerNormAttrs::center),
                      attr("scale", &LayerNormAttrs::scale)};
  }
};

StructInfo infer_layer_norm(const LayerNormAttrs& a, const CallInfo& in) {
  const TensorInfo& data = in.tensor(0);
  return fits_axes(in, a.axes) ? StructInfo(&data) : rank_only(data);
}

/// (x - mean) / sqrt(var + epsilon) * gamma + beta, var = E[(x - mean)^2], over the axes.
/// Source: Ba, Kiros & Hinton, "Layer Normalization", 2016.
Tensor compute_layer_norm(const LayerNormAttrs& a, const TeInputs& in) {
  const Tensor &x = in.tensor(0), &gamma = in.tensor(1), &beta = in.tensor(2);
  std::vector<int64_t> axes = sorted_axes(a.axes, x.rank());
  const Moments m = moments(x, axes, a.epsilon);
  return te::compute({.name = "T_layer_norm"}, x.shape(), [&](const Indices& i) {
    Indices row = without(i, axes), column = only(i, axes);
    if (row.empty()) row.push_back(dim(0));
    Expr value = cast_to(x.dtype(), (x(i) - m.mean(row)) * m.inverse_deviation(row));
    if (a.scale) value = value * gamma(column);
    return a.center ? value + beta(column) : value;
  });
}

// ---- rms_norm ----

struct RmsNormAttrs {
  Axes axes{-1};
  double epsilon = 1e-5;
  static constexpr auto fields() {
    return std::tuple{attr("axes", &RmsNormAttrs::axes), attr("epsilon", &RmsNormAttrs::epsilon)};
  }
};

StructInfo infer_rms_norm(const RmsNormAttrs& a, const CallInfo& in) {
  const TensorInfo& data = in.tensor(0);
  return fits_axes(in, a.axes) ? StructInfo(&data) : rank_only(data);
}

/// x / sqrt(E[x^2] + epsilon) * weight over the axes, in float32; in float64 for that.
/// Source: Zhang & Sennrich, "Root Mean Square Layer Normalization", 2019.
Tensor compute_rms_norm(const RmsNormAttrs& a, const TeInputs& in) {
  DType dtype = in.tensor(0).dtype();
  te::Naming cast_naming{.name = "T_cast"};
  DType wide = dtype == f64 ? f64 : f32;
  Tensor x = cast(in.tensor(0), wide, cast_naming);
  Tensor square = multiply(x, x);
  std::vector<int64_t> axes = sorted_axes(a.axes, x.rank());
  Tensor total = sum(square, a.axes, false);
  Expr count = element_count(x, axes);
  Tensor scale = te::compute({.name = "rsqrt"}, without(x.shape(), axes), [&](const Indices& i) {
    return math("rsqrt", div(total(i), count) + constant(a.epsilon, wide));
  });
  Tensor weight = cast(in.tensor(1), wide, cast_naming);
  Tensor normed = te::compute({.name = "T_rms_norm"}, x.shape(), [&](const Indices& i) {
    return scale(without(i, axes)) * x(i) * weight(only(i, axes));
  });
  return cast(normed, dtype, cast_naming);
}

// ---- group_norm ----

struct GroupNormAttrs {
  int num_groups = 1;
  int channel_axis = 1;
  Axes axes;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  static constexpr auto fields() {
    return std::tuple{required("num_groups", &GroupNormAttrs::num_groups),
                      required("channel_axis", &GroupNormAttrs::channel_axis),
                      required("axes", &GroupNormAttrs::axes),
                      attr("epsilon", &GroupNormAttrs::epsilon),
                      attr("center", &GroupNormAttrs::center),
                      attr("scale", &GroupNormAttrs::scale)};
  }
};

StructInfo infer_group_norm(const GroupNormAttrs& a, const CallInfo& in) {
  const TensorInfo& data = in.tensor(0);
  auto shape = explicit_shape(data);
  Expr channels;
  if (data.ndim >= 0) {
    int channel = in.axis(a.channel_axis, data.ndim);
    std::vector<int> axes = in.axes(a.axes, data.ndim);
    if (std::ranges::find(axes, channel) != axes.end())
      in.fail({.what = "the channel axis is among the axes",
               .needs = "axes without the channel axis",
               .hint = "leave it out: the channels of a group are always normalised together"});
    if (shape) channels = (*shape)[static_cast<size_t>(channel)];
  }
  in.need_float(0);
  if (a.num_groups < 1)
    in.fail({.what = text(a.num_groups, " groups"), .needs = "num_groups >= 1", .hint = "use num_groups=1"});
  if (channels && in.differ(floormod(channels, a.num_groups), dim(0)))
    in.fail({.what = text("the channels cannot be divided into ", a.num_groups, " groups"),
             .needs = "a number of channels that num_groups divides",
             .hint = "choose another num_groups"});
  for (size_t i = 1; i < in.size(); ++i) {
    const TensorInfo& t = in.tensor(i);
    if (t.dtype != data.dtype || t.ndim != 1)
      in.fail({.what = text(in.op().inputs[i].name, " is ", t.dtype, " of rank ", t.ndim),
               .needs = text(data.dtype, " of rank 1"),
               .hint = "cast or reshape it"});
    auto own = explicit_shape(t);
    if (own && channels && in.differ((*own)[0], channels))
      in.fail({.what = text(in.op().inputs[i].name, " does not have one element per channel"),
               .needs = "the extent of the channel axis",
               .hint = "check channel_axis"});
  }
  return ref(data);
}

/// layer_norm within each group of channels. Source: Wu & He, "Group Normalization", 2018.
Tensor compute_group_norm(const GroupNormAttrs& a, const TeInputs& in) {
  const Tensor& data = in.tensor(0);
  size_t channel = static_cast<size_t>(a.channel_axis < 0 ? a.channel_axis + data.rank() : a.channel_axis);
  Expr group = floordiv(data.shape()[channel], a.num_groups);
  std::vector<Expr> shape = data.shape();
  shape[channel] = dim(a.num_groups);
  shape.insert(shape.begin() + static_cast<long>(channel) + 1, group);
  Tensor x = reshape(data, shape);
  if (is_half(data.dtype())) x = cast(x, f32, {.name = "T_cast"});
  Tensor gamma = reshape(in.tensor(1), {dim(a.num_groups), group}),
         beta = reshape(in.tensor(2), {dim(a.num_groups), group});
  std::vector<int64_t> axes{static_cast<int64_t>(channel) + 1};
  for (int64_t d : sorted_axes(a.axes, data.rank())) axes.push_back(d < static_cast<int64_t>(channel) ? d : d + 1);
  std::ranges::sort(axes);
  const Moments m = moments(x, axes, a.epsilon);
  Tensor normed = te::compute({.name = "T_group_norm"}, x.shape(), [&](const Indices& i) {
    Indices row = without(i, axes), of_channel{i[channel], i[channel + 1]};
    Expr value = cast_to(data.dtype(), (x(i) - m.mean(row)) * m.inverse_deviation(row));
    if (a.scale) value = value * gamma(of_channel);
    return a.center ? value + beta(of_channel) : value;
  });
  return reshape(normed, data.shape());
}

// ---- batch_norm ----

struct BatchNormAttrs {
  int axis = 1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  double momentum = 0.1;
  bool training = true;  ///< the batch's statistics; else the moving ones, which stay. TVM after v0.17
  static constexpr auto fields() {
    return std::tuple{required("axis", &BatchNormAttrs::axis),
                      attr("epsilon", &BatchNormAttrs::epsilon),
                      attr("center", &BatchNormAttrs::center),
                      attr("scale", &BatchNormAttrs::scale),
                      attr("momentum", &BatchNormAttrs::momentum),
                      attr("training", &BatchNormAttrs::training)};
  }
};

StructInfo infer_batch_norm(const BatchNormAttrs& a, const CallInfo& in) {
  const TensorInfo& data = in.tensor(0);
  if (fits_axes(in, {a.axis})) return tuple_info({ref(data), ref(in.tensor(3)), ref(in.tensor(4))});
  StructInfo vector = tensor_info(data.dtype, 1, data.vdevice);
  return tuple_info({rank_only(data), vector, vector});
}

/// Normalised by the batch's own mean and variance, and the moving ones are updated; not in training, by the moving ones.
/// Source: Ioffe & Szegedy, "Batch Normalization", 2015.
std::vector<Tensor> compute_batch_norm(const BatchNormAttrs& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  DType dtype = x.dtype();
  int64_t axis = a.axis < 0 ? a.axis + x.rank() : a.axis;
  std::vector<int64_t> others;
  std::vector<Expr> column(x.shape().size(), dim(1));
  column[static_cast<size_t>(axis)] = x.dim(axis);
  Expr count = dim(1);
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d == axis) continue;
    others.push_back(d);
    count = count * x.dim(d);
  }
  if (!a.training) {
    const Tensor &mean = in.tensor(3), &variance = in.tensor(4);
    Tensor out =
        divide(subtract(x, reshape(mean, column)), sqrt(add(reshape(variance, column), constant(a.epsilon, dtype))));
    if (a.scale) out = multiply(out, reshape(in.tensor(1), column));
    if (a.center) out = add(out, reshape(in.tensor(2), column));
    auto kept = [](const Tensor& t) { return map(python_naming("T_moving"), t, [](const Expr& v) { return v; }); };
    return {out, kept(mean), kept(variance)};
  }
  Tensor mean = divide(sum(x, others, false), count), mean_column = reshape(mean, column);
  auto variance = [&] {
    Tensor left = subtract(x, mean_column), right = subtract(x, mean_column);
    return divide(sum(multiply(left, right), others, false), count);
  };
  Tensor variance_column = reshape(variance(), column);
  Tensor out = divide(subtract(x, mean_column), sqrt(add(variance_column, constant(a.epsilon, dtype))));
  if (a.scale) out = multiply(out, reshape(in.tensor(1), column));
  if (a.center) out = add(out, reshape(in.tensor(2), column));
  auto moved = [&](const Tensor& moving, const Tensor& now) {
    return add(multiply(constant(1 - a.momentum, dtype), moving), multiply(constant(a.momentum, dtype), now));
  };
  return {out, moved(in.tensor(3), mean), moved(in.tensor(4), variance())};
}

}  // namespace

std::vector<OpDef> norm_ops() {
  return {
      {.name = "nn.layer_norm",
       .inputs = {{"data"}, {"gamma"}, {"beta"}},
       .attrs = attrs_of<LayerNormAttrs>(),
       .infer = with(infer_layer_norm),
       .compute = with(compute_layer_norm)},
      {.name = "nn.rms_norm",
       .inputs = {{"data"}, {"weight"}},
       .attrs = attrs_of<RmsNormAttrs>(),
       .infer = with(infer_rms_norm),
       .compute = with(compute_rms_norm)},
      {.name = "nn.group_norm",
       .inputs = {{"data"}, {"gamma"}, {"beta"}},
       .attrs = attrs_of<GroupNormAttrs>(),
       .infer = with(infer_group_norm),
       .compute = with(compute_group_norm)},
      {.name = "nn.batch_norm",
       .inputs = {{"data"}, {"gamma"}, {"beta"}, {"moving_mean"}, {"moving_var"}},
       .attrs = attrs_of<BatchNormAttrs>(),
       .infer = with(infer_batch_norm),
       .compute = with(compute_batch_norm)},
  };
}

}  // namespace sator::relax
