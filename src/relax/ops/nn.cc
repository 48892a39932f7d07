// Activations, softmax, padding, dropout, losses.
#include <algorithm>
#include <cmath>

#include "relax/builder.h"
#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

using te::Indices;
using te::Tensor;

// ---- Activations ----

Tensor compute_relu(const TeInputs& in) {
  return map(python_naming(), in.tensor(0), [](const Expr& v) { return sator::max(v, constant(0, v->dtype)); });
}

struct LeakyReluAttrs {
  double alpha = 0.01;  ///< the slope below 0
  static constexpr auto fields() { return std::tuple{attr("alpha", &LeakyReluAttrs::alpha)}; }
};
StructInfo infer_leakyrelu(const LeakyReluAttrs&, const CallInfo& in) { return infer_same_float(in); }
Tensor compute_leakyrelu(const LeakyReluAttrs& a, const TeInputs& in) {
  return map(python_naming(), in.tensor(0), [&](const Expr& v) {
    return select(lt(constant(0, v->dtype), v), v, v * constant(a.alpha, v->dtype));
  });
}

/// x / 2 * (1 + erf(x / sqrt(2))). Source: Hendrycks & Gimpel, "Gaussian Error Linear Units", 2016.
Tensor compute_gelu(const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  auto number = [&](double v) { return constant(v, x.dtype()); };
  auto erf = [](const Tensor& t) { return map(python_naming(), t, [](const Expr& v) { return math("erf", v); }); };
  Tensor scaled = multiply(x, number(std::sqrt(0.5)));
  Tensor e = x.dtype() == f16 ? cast(erf(cast(scaled, f32)), f16) : erf(scaled);
  return multiply(x, add(number(0.5), multiply(e, number(0.5))));
}
/// The same with tanh in place of erf: x / 2 * (1 + tanh(sqrt(2 / pi) * x * (1 + 0.044715 * x^2))).
Tensor compute_gelu_tanh(const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  auto number = [&](double v) { return constant(v, x.dtype()); };
  Tensor half = multiply(number(0.5), x), scaled = multiply(number(std::sqrt(2 / M_PI)), x);
  Tensor cubic = add(number(1), multiply(multiply(number(0.044715), x), x));
  Tensor t = map(python_naming(), multiply(scaled, cubic), [](const Expr& v) { return math("tanh", v); });
  return multiply(half, add(number(1), t));
}
/// x * sigmoid(x).
Tensor compute_silu(const TeInputs& in) { return multiply(in.tensor(0), sigmoid(in.tensor(0))); }

// ---- prelu, softplus, selu ----

struct PReluAttrs {
  int axis = 1;  ///< that alpha has an element for
  static constexpr auto fields() { return std::tuple{attr("axis", &PReluAttrs::axis)}; }
};
StructInfo infer_prelu(const PReluAttrs& a, const CallInfo& in) {
  in.need_float(0);
  const TensorInfo &x = in.tensor(0), &alpha = in.tensor(1);
  in.common_dtype({0, 1});
  in.need_rank(1, 1);
  if (x.ndim < 0) return ref(x);
  const auto axis = static_cast<size_t>(in.axis(a.axis, x.ndim));
  const auto s = explicit_shape(x), t = explicit_shape(alpha);
  if (s && t && in.differ((*s)[axis], (*t)[0]))
    in.fail({.what = text("alpha has ", (*t)[0], " elements, axis ", axis, " of data has ", (*s)[axis]),
             .needs = "one slope per element of the axis",
             .hint = "check axis, or broadcast alpha"});
  return ref(x);
}
/// x above 0, else alpha of its channel times x. Source: He et al., "Delving Deep into Rectifiers", 2015.
Tensor compute_prelu(const PReluAttrs& a, const TeInputs& in) {
  const Tensor &x = in.tensor(0), &alpha = in.tensor(1);
  const auto axis = static_cast<size_t>(a.axis < 0 ? a.axis + x.rank() : a.axis);
  return te::compute({.name = "T_prelu"}, x.shape(), [&](const Indices& i) {
    return select(gt(x(i), constant(0, x.dtype())), x(i), x(i) * alpha({i[axis]}));
  });
}

struct SoftplusAttrs {
  double beta = 1;
  double threshold = 20;  ///< of beta * x: above it the result is x
  static constexpr auto fields() {
    return std::tuple{attr("beta", &SoftplusAttrs::beta), attr("threshold", &SoftplusAttrs::threshold)};
  }
};
StructInfo infer_softplus(const SoftplusAttrs& a, const CallInfo& in) {
  if (a.beta == 0) in.fail({.what = "beta is 0", .needs = "a beta that is not 0", .hint = "1 is usual"});
  return infer_same_float(in);
}
/// log(1 + exp(beta * x)) / beta.
Tensor compute_softplus(const SoftplusAttrs& a, const TeInputs& in) {
  return map(python_naming(), in.tensor(0), [&](const Expr& v) {
    const DType d = v->dtype;
    const Expr scaled = v * constant(a.beta, d);
    const Expr smooth = div(math("log1p", math("exp", scaled)), constant(a.beta, d));
    return select(gt(scaled, constant(a.threshold, d)), v, smooth);
  });
}

/// scale * (x above 0, else alpha * (exp(x) - 1)). Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
Tensor compute_selu(const TeInputs& in) {
  constexpr double kAlpha = 1.6732632423543772848170429916717, kScale = 1.0507009873554804934193349852946;
  return map(python_naming(), in.tensor(0), [&](const Expr& v) {
    const DType d = v->dtype;
    const Expr below = constant(kAlpha, d) * (math("exp", v) - constant(1, d));
    return constant(kScale, d) * select(gt(v, constant(0, d)), v, below);
  });
}

// ---- batch_flatten, pixel_shuffle ----

StructInfo infer_batch_flatten(const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  if (x.ndim == 0) in.fail({.what = "data has rank 0", .needs = "a batch axis", .hint = "reshape it"});
  auto shape = explicit_shape(x);
  if (!shape) return tensor_info(x.dtype, 2, x.vdevice);
  Expr features = dim(1);
  for (size_t d = 1; d < shape->size(); ++d) features = features * (*shape)[d];
  return tensor_info({(*shape)[0], in.arith().simplify(features)}, x.dtype, x.vdevice);
}
Tensor compute_batch_flatten(const TeInputs& in) { return reshape(in.tensor(0), in.out_shape()); }

struct PixelShuffleAttrs {
  int upscale_factor = 1;
  static constexpr auto fields() { return std::tuple{required("upscale_factor", &PixelShuffleAttrs::upscale_factor)}; }
};
StructInfo infer_pixel_shuffle(const PixelShuffleAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  if (a.upscale_factor < 1)
    in.fail({.what = text("upscale_factor ", a.upscale_factor), .needs = "1 or more", .hint = "2 is usual"});
  if (x.ndim >= 0) in.need_rank(0, 4);
  auto shape = explicit_shape(x);
  if (!shape) return tensor_info(x.dtype, 4, x.vdevice);
  const int64_t r = a.upscale_factor;
  if (in.differ(floormod((*shape)[1], r * r), dim(0)))
    in.fail({.what = text((*shape)[1], " channels for a factor of ", r),
             .needs = "channels that upscale_factor^2 divides",
             .hint = "check the layout (N, C * r^2, H, W)"});
  return tensor_info({(*shape)[0], in.arith().simplify(floordiv((*shape)[1], r * r)), (*shape)[2] * r, (*shape)[3] * r},
                     x.dtype,
                     x.vdevice);
}
/// out[n, c, h, w] is x[n, (c * r + h % r) * r + w % r, h / r, w / r].
/// Source: Shi et al., "Real-Time Single Image and Video Super-Resolution ...", 2016.
Tensor compute_pixel_shuffle(const PixelShuffleAttrs& a, const TeInputs& in) {
  const int64_t r = a.upscale_factor;
  return gather({.name = "T_pixel_shuffle"}, in.tensor(0), in.out_shape(), [&](const Indices& i) {
    const Expr channel = (i[1] * r + floormod(i[2], r)) * r + floormod(i[3], r);
    return Indices{i[0], channel, floordiv(i[2], r), floordiv(i[3], r)};
  });
}

// ---- softmax ----

struct SoftmaxAttrs {
  int axis = -1;
  static constexpr auto fields() { return std::tuple{attr("axis", &SoftmaxAttrs::axis)}; }
};

StructInfo infer_softmax(const SoftmaxAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  if (x.ndim < 0) return ref(x);
  in.need_float(0);
  in.axis(a.axis, x.ndim);
  return ref(x);
}
Tensor compute_softmax(const SoftmaxAttrs& a, const TeInputs& in) { return softmax(in.tensor(0), a.axis); }

/// x - max(x) - log(sum(exp(x - max(x)))) along the axis.
Tensor compute_log_softmax(const SoftmaxAttrs& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  std::vector<int64_t> along{a.axis < 0 ? a.axis + x.rank() : a.axis};
  std::vector<Expr> rows = without(x.shape(), along);
  auto element = [&](const Indices& i, const tir::IterVarRef& k) {
    Indices at = i;
    at.insert(at.begin() + along[0], k->var);
    return x(at);
  };
  Tensor greatest = te::reduce(python_naming("T_softmax_maxelem"), rows, [&](const Indices& i) {
    tir::IterVarRef k = te::reduce_axis(x.dim(along[0]), "k");
    return te::reduce_max(element(i, k), {k});
  });
  Tensor total = te::reduce(python_naming(), rows, [&](const Indices& i) {
    tir::IterVarRef k = te::reduce_axis(x.dim(along[0]), "k");
    return te::reduce_sum(math("exp", element(i, k) - greatest(i)), {k});
  });
  te::Naming naming = python_naming();
  naming.annotations = {{"axis", int_imm(along[0])}};
  return te::compute(naming, x.shape(), [&](const Indices& i) {
    Indices row = without(i, along);
    return x(i) - greatest(row) - math("log", total(row));
  });
}

// ---- pad ----

/// Elements around those of the data.
///   constant         pad_value
///   edge, replicate  the nearest element
///   reflect          those inside, mirrored at the first and the last element, which are not repeated: of 1 2 3 the two before are 3 2
///   circular         the data again from its other end: of 1 2 3 the two before are 2 3
/// Widths may exceed the axis: then it is mirrored, or begins, again. A negative width cuts elements off. An axis that has no element to
/// repeat has zeros around it.
/// Errors: another mode; not two widths per axis.
/// Source: numpy.pad's modes constant, edge, reflect, wrap; torch.nn.functional.pad calls the last replicate, reflect, circular.
struct PadAttrs {
  Axes pad_width;  ///< before and after, axis by axis
  std::string pad_mode = "constant";
  static constexpr auto fields() {
    return std::tuple{required("pad_width", &PadAttrs::pad_width), attr("pad_mode", &PadAttrs::pad_mode)};
  }
};

/// Which of an axis of n elements stands at position i, which may be before the first or behind the last.
using BeyondEnds = Expr (*)(const Expr& i, const Expr& n);

Expr nearest(const Expr& i, const Expr& n) { return max(min(i, n - 1), dim(0)); }
Expr mirrored(const Expr& i, const Expr& n) {
  const Expr turn = (n - 1) * 2, at = floormod(i, max(turn, dim(1)));
  return min(at, turn - at);
}
Expr around(const Expr& i, const Expr& n) { return floormod(i, max(n, dim(1))); }

/// Null for a mode that there is not, and for "constant".
BeyondEnds beyond_ends(const std::string& mode) {
  if (mode == "edge" || mode == "replicate") return nearest;
  if (mode == "reflect") return mirrored;
  return mode == "circular" ? around : nullptr;
}

StructInfo infer_pad(const PadAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  if (a.pad_mode != "constant" && !beyond_ends(a.pad_mode))
    in.fail({.what = text("pad_mode ", string_literal(a.pad_mode)),
             .needs = "\"constant\", \"edge\", \"replicate\", \"reflect\" or \"circular\"",
             .hint = "pad with a value"});
  if (static_cast<int>(a.pad_width.size()) != 2 * x.ndim)
    in.fail({.what = text(a.pad_width.size(), " pad widths for rank ", x.ndim),
             .needs = "two per axis",
             .hint = "give (before, after) for each axis"});
  auto shape = explicit_shape(x);
  if (!shape) return tensor_info(x.dtype, x.ndim);
  for (size_t d = 0; d < shape->size(); ++d) (*shape)[d] = (*shape)[d] + (a.pad_width[2 * d] + a.pad_width[2 * d + 1]);
  return tensor_info(*shape, x.dtype);
}

/// Nested pairs ((1, 2), (3, 4)) are the flat list (1, 2, 3, 4); a number is a constant of the data's dtype.
RExpr build_pad(const OpDef& op, BoundArgs args) {
  RExpr data = to_rexpr(args.inputs[0]);
  const TensorInfo* info = data ? data->sinfo.as<TensorInfo>() : nullptr;
  DType dtype = info && !info->dtype.is_void() ? info->dtype : f32;
  if (args.inputs[1].is_none()) args.inputs[1] = Value(0);
  if (auto number = to_double(args.inputs[1])) args.inputs[1] = Value(scalar_constant(*number, dtype));
  return build_call(op, std::move(args));
}

Tensor pad_by_repeating(const Tensor& x, const Axes& before, const Axes& after, BeyondEnds beyond) {
  arith::Analyzer arith;
  std::vector<Expr> shape = x.shape();
  for (size_t d = 0; d < shape.size(); ++d) shape[d] = arith.simplify(shape[d] + (before[d] + after[d]));
  return te::compute(python_naming("PadInput"), shape, [&](const Indices& i) {
    Indices at, repeated;
    Expr inside = bool_imm(true), has_elements = bool_imm(true);
    for (size_t d = 0; d < i.size(); ++d) {
      const Expr n = x.shape()[d];
      at.push_back(before[d] == 0 ? Expr(i[d]) : i[d] - before[d]);
      if (before[d] <= 0 && after[d] <= 0) {
        repeated.push_back(at.back());
        continue;
      }
      repeated.push_back(beyond(at.back(), n));
      if (before[d] > 0) inside = logical_and(inside, ge(i[d], dim(before[d])));
      if (after[d] > 0) inside = logical_and(inside, lt(at.back(), n));
      has_elements = arith.simplify(logical_and(has_elements, gt(n, dim(0))));
    }
    const Expr zero = constant(0, x.dtype());
    Expr outside = is_zero(has_elements) ? zero : x(repeated);
    if (!is_one(has_elements) && !is_zero(has_elements)) outside = if_then_else(has_elements, outside, zero);
    return is_one(inside) ? x(at) : if_then_else(inside, x(at), outside);
  });
}

Tensor compute_pad(const PadAttrs& a, const TeInputs& in) {
  Axes before, after;
  for (size_t i = 0; i < a.pad_width.size(); ++i) (i % 2 ? after : before).push_back(a.pad_width[i]);
  if (const BeyondEnds beyond = beyond_ends(a.pad_mode)) return pad_by_repeating(in.tensor(0), before, after, beyond);
  Expr value = in.is_tensor(1) ? in.tensor(1)({}) : cast_to(in.tensor(0).dtype(), in.scalar(1));
  return pad(in.tensor(0), before, after, value);
}

// ---- dropout: the identity, with a mask of ones, as in inference ----

struct DropoutAttrs {
  double rate = 0.5;
  static constexpr auto fields() { return std::tuple{attr("rate", &DropoutAttrs::rate)}; }
};
StructInfo infer_dropout(const DropoutAttrs&, const CallInfo& in) {
  const StructInfo x = ref(in.tensor(0));
  return tuple_info({x, x});
}
std::vector<Tensor> compute_dropout(const DropoutAttrs&, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  return {te::compute({.name = "T_dropout"}, x.shape(), [&](const Indices& i) { return x(i); }),
          full(x.shape(), constant(1, x.dtype()))};
}

// ---- Losses ----

StructInfo infer_cross_entropy(const CallInfo& in) {
  const TensorInfo &x = in.tensor(0), &y = in.tensor(1);
  DType dtype = in.common_dtype({0, 1});
  if (x.ndim >= 0 && y.ndim >= 0 && x.ndim != y.ndim)
    in.fail({.what = text("predictions have rank ", x.ndim, ", labels ", y.ndim),
             .needs = "equal ranks",
             .hint = "reshape one of them"});
  auto s = shape_of(x), t = shape_of(y);
  for (size_t d = 0; s && t && d < s->size(); ++d) {
    if (in.differ((*s)[d], (*t)[d]))
      in.fail({.what = text("predictions and labels differ along axis ", d),
               .needs = "equal shapes",
               .hint = "slice one of them"});
  }
  return tensor_info(std::vector<Expr>{}, dtype, x.vdevice.empty() ? y.vdevice : x.vdevice);
}
/// -sum(x * y), divided by the batch where there is one.
Tensor compute_cross_entropy(const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  Tensor total = multiply(sum(multiply(x, in.tensor(1)), std::nullopt, false), constant(-1, x.dtype()));
  return x.rank() > 1 ? divide(total, x.dim(0)) : total;
}

struct NllLossAttrs {
  std::string reduction = "mean";  ///< none | sum | mean
  int64_t ignore_index = -100;
  static constexpr auto fields() {
    return std::tuple{attr("reduction", &NllLossAttrs::reduction), attr("ignore_index", &NllLossAttrs::ignore_index)};
  }
};

StructInfo infer_nll_loss(const NllLossAttrs& a, const CallInfo& in) {
  const TensorInfo &x = in.tensor(0), &y = in.tensor(1);
  const TensorInfo* w = in.size() > 2 ? &in.tensor(2) : nullptr;
  DType dtype = w ? in.common_dtype({0, 2}) : x.dtype;
  std::string vdevice = x.vdevice.empty() && w ? w->vdevice : x.vdevice;
  auto refuse = [&](std::string what, std::string needs) {
    in.fail({.what = std::move(what),
             .needs = std::move(needs),
             .hint = "see the shapes (N, C, d1, ...), (N, d1, ...), (C,)"});
  };
  if (a.reduction != "none" && a.reduction != "sum" && a.reduction != "mean")
    refuse(text("reduction ", string_literal(a.reduction)), "none, sum or mean");
  if (!y.dtype.is_void() && !y.dtype.is_integer()) refuse(text("targets are ", y.dtype), "an integer dtype");
  if (x.ndim == 0) refuse("predictions are a scalar", "predictions of rank >= 1");
  if (w && w->ndim >= 0 && w->ndim != 1) refuse(text("weights have rank ", w->ndim), "rank 1");
  if (x.ndim >= 0 && y.ndim >= 0 && std::max(x.ndim - 2, 0) != std::max(y.ndim - 1, 0))
    refuse(text("predictions of rank ", x.ndim, " for targets of rank ", y.ndim), "targets of one rank less");
  auto s = shape_of(x), t = shape_of(y), v = w ? shape_of(*w) : std::nullopt;
  auto differ = [&](const Expr& p, const Expr& q) { return in.differ(p, q); };
  std::optional<std::vector<Expr>> out;
  if (s) {
    out = std::vector<Expr>{};
    if (s->size() > 1) {
      out->push_back((*s)[0]);
      out->insert(out->end(), s->begin() + 2, s->end());
    }
    if (v && differ((*v)[0], (*s)[s->size() > 1])) refuse("weights do not have one element per class", "extent C");
  }
  if (s && t) {
    if (out->size() != t->size())
      refuse("predictions and targets do not agree on a batch", "both with, or both without");
    for (size_t d = 0; d < t->size(); ++d) {
      if (differ((*out)[d], (*t)[d])) refuse(text("targets differ from predictions along axis ", d), "equal extents");
    }
  }
  if (a.reduction != "none") return tensor_info(std::vector<Expr>{}, dtype, vdevice);
  // As TVM has it: the predictions alone tell the result's shape, and none where a shape stands behind a variable.
  auto is_hidden = [](const TensorInfo& t) { return t.shape && !explicit_shape(t); };
  if (is_hidden(x) || is_hidden(y) || (w && is_hidden(*w))) out.reset();
  int ndim = x.ndim >= 0 ? std::max(x.ndim - 1, 0) : -1;
  return tensor_of(out, ndim, dtype, vdevice);
}

/// -p[target] * w[target] per target, 0 where it is ignore_index; the mean is over the sum of the weights.
Tensor compute_nll_loss(const NllLossAttrs& a, const TeInputs& in) {
  const Tensor &p = in.tensor(0), &targets = in.tensor(1);
  Tensor w = in.has(2) ? in.tensor(2) : full({p.dim(p.rank() > 1 ? 1 : 0)}, constant(1, p.dtype()));
  auto per_target = [&](FunctionRef<Expr(const Indices&, const Expr&)> value) {
    return te::compute({.name = "nll_loss"}, targets.shape(), [&](const Indices& i) {
      Expr c = targets(i);
      // An ignored class may lie outside of the tensors: they are not read for it.
      return if_then_else(
          ne(c, constant(static_cast<double>(a.ignore_index), c->dtype)), value(i, c), constant(0, p.dtype()));
    });
  };
  Tensor loss = per_target([&](const Indices& i, const Expr& c) {
    Indices at{c};
    if (p.rank() > 1) {
      at = i;
      at.insert(at.begin() + 1, c);
    }
    return -p(at) * w({c});
  });
  if (a.reduction == "none") return loss;
  bool one = p.rank() == 1;
  if (a.reduction == "sum") return one ? loss : sum(loss, std::nullopt, false);
  Tensor weight = per_target([&](const Indices&, const Expr& c) { return w({c}); });
  return one ? divide(loss, weight) : divide(sum(loss, std::nullopt, false), sum(weight, std::nullopt, false));
}

RExpr legalize_nll_loss(const RCallRef& call, BlockBuilder& b) {
  return b.legalize_by_formula(call, call->args.size() > 2 ? "" : "nll_loss_without_weight");
}

}  // namespace

Tensor pad(const Tensor& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after, const Expr& value,
           std::string name) {
  arith::Analyzer arith;
  std::vector<Expr> shape = x.shape();
  for (size_t d = 0; d < shape.size(); ++d) shape[d] = arith.simplify(shape[d] + (before[d] + after[d]));
  return te::compute(python_naming(std::move(name)), shape, [&](const Indices& i) {
    Indices at;
    Expr inside = bool_imm(true);
    for (size_t d = 0; d < i.size(); ++d) {
      at.push_back(i[d] - before[d]);
      if (before[d] == 0 && after[d] == 0) continue;
      inside = logical_and(inside, ge(i[d], dim(before[d])));
      inside = logical_and(inside, lt(i[d], x.shape()[d] + before[d]));
    }
    return if_then_else(inside, x(at), value);
  });
}

std::vector<OpDef> nn_ops() {
  auto activation = [](const char* name, ComputeFn compute) {
    return OpDef{.name = name, .inputs = {{"data"}}, .infer = infer_same_float, .compute = std::move(compute)};
  };
  return {
      {.name = "nn.relu", .inputs = {{"data"}}, .infer = infer_same, .compute = with(compute_relu)},
      activation("nn.gelu", with(compute_gelu)),
      activation("nn.gelu_tanh", with(compute_gelu_tanh)),
      activation("nn.silu", with(compute_silu)),
      {.name = "nn.leakyrelu",
       .inputs = {{"data"}},
       .attrs = attrs_of<LeakyReluAttrs>(),
       .infer = with(infer_leakyrelu),
       .compute = with(compute_leakyrelu),
       .func = "leaky_relu"},
      {.name = "nn.prelu",
       .inputs = {{"data"}, {"alpha"}},
       .attrs = attrs_of<PReluAttrs>(),
       .infer = with(infer_prelu),
       .compute = with(compute_prelu)},
      {.name = "nn.softplus",
       .inputs = {{"data"}},
       .attrs = attrs_of<SoftplusAttrs>(),
       .infer = with(infer_softplus),
       .compute = with(compute_softplus)},
      activation("nn.selu", with(compute_selu)),
      {.name = "nn.batch_flatten",
       .inputs = {{"data"}},
       .infer = infer_batch_flatten,
       .compute = with(compute_batch_flatten),
       .func = "reshape"},
      {.name = "nn.pixel_shuffle",
       .inputs = {{"data"}},
       .attrs = attrs_of<PixelShuffleAttrs>(),
       .infer = with(infer_pixel_shuffle),
       .compute = with(compute_pixel_shuffle)},
      {.name = "nn.softmax",
       .inputs = {{"data"}},
       .attrs = attrs_of<SoftmaxAttrs>(),
       .infer = with(infer_softmax),
       .compute = with(compute_softmax)},
      {.name = "nn.log_softmax",
       .inputs = {{"data"}},
       .attrs = attrs_of<SoftmaxAttrs>(),
       .infer = with(infer_softmax),
       .compute = with(compute_log_softmax)},
      {.name = "nn.pad",
       .inputs = {{"data"}, {"pad_value", InputKind::any, true}},
       .attrs = attrs_of<PadAttrs>(),
       .infer = with(infer_pad),
       .compute = with(compute_pad),
       .build = build_pad,
       .positions = {"data", "pad_width", "pad_value", "pad_mode"},
       .scalar_constants = true},
      {.name = "nn.dropout",
       .inputs = {{"data"}},
       .attrs = attrs_of<DropoutAttrs>(),
       .infer = with(infer_dropout),
       .compute = with(compute_dropout)},
      {.name = "nn.cross_entropy_with_logits",
       .inputs = {{"predictions"}, {"labels"}},
       .infer = infer_cross_entropy,
       .compute = with(compute_cross_entropy)},
      {.name = "nn.nll_loss",
       .inputs = {{"predictions"}, {"targets"}, {"weights", InputKind::tensor, true}},
       .attrs = attrs_of<NllLossAttrs>(),
       .infer = with(infer_nll_loss),
       .compute = with(compute_nll_loss),
       .legalize = legalize_nll_loss},
  };
}

}  // namespace sator::relax
