// Ops that show the same elements under another shape or order of axes, and the sums that undo broadcasting.
#include <algorithm>

#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

using te::Indices;
using te::Tensor;

Expr product(const std::vector<Expr>& shape) {
  if (std::ranges::any_of(shape, is_zero)) return dim(0);
  Expr p = dim(1);
  for (const Expr& e : shape) p = p * e;
  return p;
}

// ---- reshape, flatten ----

StructInfo infer_reshape(const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  const ShapeInfo& to = in.shape(1);
  auto from = shape_of(x);
  if (from && to.values) {
    Expr a = product(*from), b = product(*to.values);
    if (in.differ(a, b))
      in.fail({.what = "the new shape has another number of elements",
               .needs = "equal numbers of elements",
               .hint = "leave one extent to be inferred with -1"});
  }
  if (to.values && !in.arg(1).as<ShapeExpr>()) return tensor_info(*to.values, x.dtype, x.vdevice);
  return tensor_info(in.arg(1), x.dtype, x.vdevice);
}

/// In the new shape -1 stands for what is left, and 0 for the extent that x has there; of a tensor without elements a 0
/// is one, where nothing is left open.
RExpr build_reshape(const OpDef& op, BoundArgs args) {
  const Value& shape = args.inputs[1];
  RExpr given = to_shape(shape);
  const ShapeExpr* written = given ? given.as<ShapeExpr>() : nullptr;
  RExpr x = to_rexpr(args.inputs[0]);
  if (!written || !x) return build_call(op, std::move(args));
  std::vector<Expr> values = written->values;
  auto open = values.end();
  bool copies = false;
  for (auto v = values.begin(); v != values.end(); ++v) {
    auto i = as_int(*v);
    if (!i || *i > 0) continue;
    if (*i < -1 || (*i == -1 && open != values.end()))
      fail({.what = text("reshape: extent ", *i, " of the new shape"),
            .needs = "positive extents, 0, and at most one -1",
            .hint = "leave one extent to be inferred"});
    if (*i == -1)
      open = v;
    else
      copies = true;
  }
  const TensorInfo* info = x->sinfo.as<TensorInfo>();
  std::optional<std::vector<Expr>> from = info ? shape_of(*info) : std::nullopt;
  const bool is_empty = from && std::ranges::any_of(*from, is_zero);
  if (open == values.end() && (!copies || is_empty)) return build_call(op, std::move(args));
  if (!from)
    fail({.what = "reshape: an extent is to be inferred, but the shape of x is not known",
          .needs = "a tensor of known shape",
          .hint = "give every extent, or match_cast x first"});
  for (size_t i = 0; i < values.size(); ++i) {
    if (!is_zero(values[i])) continue;
    if (i >= from->size())
      fail({.what = text("reshape: extent ", i, " is 0, but x has rank ", from->size()),
            .needs = "0 only where x has an extent to copy",
            .hint = "write the extent"});
    values[i] = (*from)[i];
  }
  if (open != values.end()) {
    *open = dim(1);
    arith::Analyzer arith;
    *open = arith.simplify(floordiv(product(*from), product(values)));
  }
  args.inputs[1] = Value(shape_expr(std::move(values)));
  return build_call(op, std::move(args));
}

Tensor compute_reshape(const TeInputs& in) { return reshape(in.tensor(0), in.shape(1)); }

StructInfo infer_flatten(const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  if (x.ndim == 0) return tensor_info({dim(1)}, x.dtype, x.vdevice);
  if (x.ndim == 1) return ref(x);
  auto shape = explicit_shape(x);
  return shape ? tensor_info({product(*shape)}, x.dtype, x.vdevice) : tensor_info(x.dtype, 1, x.vdevice);
}
Tensor compute_flatten(const TeInputs& in) { return reshape(in.tensor(0), in.out_shape()); }

// ---- size ----

StructInfo infer_size(const CallInfo& in) { return tensor_info(std::vector<Expr>{}, i64, in.tensor(0).vdevice); }
/// The number of elements.
Tensor compute_size(const TeInputs& in) { return full({}, cast_to(i64, product(in.tensor(0).shape()))); }

// ---- expand_dims, squeeze ----

struct ExpandDimsAttrs {
  Axes axis;
  static constexpr auto fields() { return std::tuple{required("axis", &ExpandDimsAttrs::axis)}; }
};

/// Which axes of the output are the new ones.
std::vector<bool> new_axes(const Axes& axis, size_t rank) {
  std::vector<bool> is_new(rank, false);
  for (int64_t a : axis) is_new[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(rank) : a)] = true;
  return is_new;
}

StructInfo infer_expand_dims(const ExpandDimsAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  if (a.axis.empty()) return ref(x);
  if (x.ndim < 0) return tensor_info(x.dtype, -1, x.vdevice);
  int rank = x.ndim + static_cast<int>(a.axis.size());
  in.axes(a.axis, rank);
  auto shape = explicit_shape(x);
  if (!shape) return tensor_info(x.dtype, rank, x.vdevice);
  std::vector<Expr> out;
  size_t next = 0;
  for (bool is_new : new_axes(a.axis, static_cast<size_t>(rank))) out.push_back(is_new ? dim(1) : (*shape)[next++]);
  return tensor_info(std::move(out), x.dtype, x.vdevice);
}

Tensor compute_expand_dims(const ExpandDimsAttrs& a, const TeInputs& in) {
  std::vector<bool> is_new = new_axes(a.axis, in.out_shape().size());
  return gather(python_naming("expand_dims"), in.tensor(0), in.out_shape(), [&](const Indices& i) {
    Indices at;
    for (size_t d = 0; d < i.size(); ++d) {
      if (!is_new[d]) at.push_back(i[d]);
    }
    return at;
  });
}

struct SqueezeAttrs {
  std::optional<Axes> axis;
  static constexpr auto fields() { return std::tuple{attr("axis", &SqueezeAttrs::axis)}; }
};

StructInfo infer_squeeze(const SqueezeAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  if (a.axis && a.axis->empty()) return ref(x);
  if (x.ndim < 0) return tensor_info(x.dtype, -1, x.vdevice);
  auto shape = shape_of(x);
  std::vector<bool> gone(static_cast<size_t>(x.ndim), false);
  if (a.axis) {
    std::vector<int> axes = in.axes(*a.axis, x.ndim);
    if (!shape) return tensor_info(x.dtype, x.ndim - static_cast<int>(axes.size()), x.vdevice);
    for (int d : axes) {
      const Expr& extent = (*shape)[static_cast<size_t>(d)];
      if (in.differ(extent, dim(1)))
        in.fail({.what = text("axis ", d, " has extent ", extent), .needs = "extent 1", .hint = "leave that axis out"});
      gone[static_cast<size_t>(d)] = true;
    }
  } else {
    if (!shape) return tensor_info(x.dtype, -1, x.vdevice);
    for (size_t d = 0; d < shape->size(); ++d) {
      if (!as_int((*shape)[d])) return tensor_info(x.dtype, -1, x.vdevice);
      gone[d] = is_one((*shape)[d]);
    }
  }
  std::vector<Expr> out;
  for (size_t d = 0; d < shape->size(); ++d) {
    if (!gone[d]) out.push_back((*shape)[d]);
  }
  if (x.shape.as<ShapeExpr>()) return tensor_info(std::move(out), x.dtype, x.vdevice);
  if (static_cast<int>(out.size()) == x.ndim) return ref(x);
  return tensor_info(x.dtype, a.axis ? static_cast<int>(out.size()) : -1, x.vdevice);
}

Tensor compute_squeeze(const SqueezeAttrs& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  std::vector<bool> gone = a.axis ? new_axes(*a.axis, x.shape().size()) : std::vector<bool>(x.shape().size());
  std::vector<Expr> shape;
  for (size_t d = 0; d < gone.size(); ++d) {
    if (!a.axis) gone[d] = is_one(x.shape()[d]);
    if (!gone[d]) shape.push_back(x.shape()[d]);
  }
  return gather({.name = "T_squeeze"}, x, shape, [&](const Indices& i) {
    Indices at;
    size_t next = 0;
    for (bool g : gone) at.push_back(g ? dim(0) : i[next++]);
    return at;
  });
}

// ---- permute_dims ----

struct PermuteDimsAttrs {
  std::optional<Axes> axes;
  static constexpr auto fields() { return std::tuple{attr("axes", &PermuteDimsAttrs::axes)}; }
};

StructInfo infer_permute_dims(const PermuteDimsAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  if (x.ndim < 0 && !a.axes) return tensor_info(x.dtype, -1, x.vdevice);
  if (x.ndim < 0)
    in.fail({.what = "axes for a tensor of unknown rank",
             .needs = "a rank that is known",
             .hint = "match_cast the tensor first"});
  if (a.axes && x.ndim >= 0 && static_cast<int>(a.axes->size()) != x.ndim)
    in.fail({.what = text(a.axes->size(), " axes for a tensor of rank ", x.ndim),
             .needs = "one axis per dimension",
             .hint = "name every axis once"});
  std::vector<int> axes;
  if (a.axes) {
    axes = in.axes(*a.axes, x.ndim < 0 ? static_cast<int>(a.axes->size()) : x.ndim);
  } else {
    for (int d = x.ndim; d-- > 0;) axes.push_back(d);
  }
  if (std::ranges::is_sorted(axes) && x.ndim >= 0) return ref(x);
  auto shape = explicit_shape(x);
  if (!shape) return tensor_info(x.dtype, x.ndim, x.vdevice);
  std::vector<Expr> out;
  for (int d : axes) out.push_back((*shape)[static_cast<size_t>(d)]);
  return tensor_info(std::move(out), x.dtype, x.vdevice);
}
Tensor compute_permute_dims(const PermuteDimsAttrs& a, const TeInputs& in) {
  return transpose(in.tensor(0), a.axes.value_or(Axes{}));
}

// ---- broadcast_to, collapse_sum ----

StructInfo infer_broadcast_to(const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  const ShapeInfo& to = in.shape(1);
  if (x.ndim >= 0 && to.ndim >= 0 && to.ndim < x.ndim)
    in.fail({.what = text("a tensor of rank ", x.ndim, " to a shape of rank ", to.ndim),
             .needs = "a target of at least the tensor's rank",
             .hint = "add extents in front of the target"});
  auto from = shape_of(x);
  if (from && to.values) {
    for (size_t i = 1; i <= from->size(); ++i) {
      const Expr &old_extent = (*from)[from->size() - i], &new_extent = (*to.values)[to.values->size() - i];
      if (!is_one(old_extent) && in.differ(old_extent, new_extent))
        in.fail({.what = text("dimension -", i, " cannot be stretched to the target's"),
                 .needs = "extent 1, or the target's",
                 .hint = "reshape the tensor first"});
    }
  }
  return tensor_info(in.arg(1), x.dtype, x.vdevice);
}
Tensor compute_broadcast_to(const TeInputs& in) { return broadcast_to(in.tensor(0), in.shape(1)); }

void check_collapse(const CallInfo& in, const std::vector<Expr>& from, const std::vector<Expr>& to) {
  size_t t = to.size();
  for (size_t d = from.size(); d-- > 0 && t > 0;) {
    const Expr &x = from[d], &y = to[t - 1];
    if (!is_one(y) && !in.same(x, y))
      in.fail({.what = text("dimension ", d, " does not collapse to dimension ", t - 1, " of the target"),
               .needs = "equal extents, or 1 in the target",
               .hint = "match_cast symbolic shapes first"});
    --t;
  }
}
StructInfo infer_collapse_like(const CallInfo& in) {
  const TensorInfo &x = in.tensor(0), &like = in.tensor(1);
  auto from = shape_of(x), to = shape_of(like);
  if (from && to) check_collapse(in, *from, *to);
  return like.shape ? tensor_info(like.shape, x.dtype, like.vdevice) : tensor_info(x.dtype, like.ndim, like.vdevice);
}
StructInfo infer_collapse_to(const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  const ShapeInfo& to = in.shape(1);
  auto from = shape_of(x);
  if (from && to.values) check_collapse(in, *from, *to.values);
  return tensor_info(in.arg(1), x.dtype, x.vdevice);
}

/// The sum over all axes that broadcasting from `to` would have stretched.
Tensor collapse(const Tensor& x, const std::vector<Expr>& to) {
  size_t extra = x.shape().size() - to.size();
  std::vector<tir::IterVarRef> iterators;
  std::vector<bool> summed(x.shape().size(), false);
  for (size_t d = 0; d < summed.size(); ++d) {
    summed[d] = d < extra || (is_one(to[d - extra]) && !is_one(x.shape()[d]));
    if (summed[d]) iterators.push_back(te::reduce_axis(x.shape()[d], text("k", d)));
  }
  if (iterators.empty()) return map({.name = "T_identity"}, x, [](const Expr& v) { return v; });
  return te::reduce({.name = x.stage()->name + "_red"}, to, [&](const Indices& i) {
    Indices at;
    size_t next = 0;
    for (size_t d = 0; d < summed.size(); ++d) at.push_back(summed[d] ? iterators[next++]->var : i[d - extra]);
    return te::reduce_sum(x(at), iterators);
  });
}
Tensor compute_collapse(const TeInputs& in) { return collapse(in.tensor(0), in.out_shape()); }

}  // namespace

std::vector<OpDef> shape_ops() {
  InputDef shape{"shape", InputKind::shape};
  return {
      {.name = "reshape",
       .inputs = {{"x"}, shape},
       .infer = infer_reshape,
       .compute = with(compute_reshape),
       .build = build_reshape},
      {.name = "size", .inputs = {{"expr"}}, .infer = infer_size, .compute = with(compute_size)},
      {.name = "flatten",
       .inputs = {{"x"}},
       .infer = infer_flatten,
       .compute = with(compute_flatten),
       .func = "reshape"},
      {.name = "expand_dims",
       .inputs = {{"x"}},
       .attrs = attrs_of<ExpandDimsAttrs>(),
       .infer = with(infer_expand_dims),
       .compute = with(compute_expand_dims)},
      {.name = "squeeze",
       .inputs = {{"x"}},
       .attrs = attrs_of<SqueezeAttrs>(),
       .infer = with(infer_squeeze),
       .compute = with(compute_squeeze)},
      {.name = "permute_dims",
       .inputs = {{"x"}},
       .attrs = attrs_of<PermuteDimsAttrs>(),
       .infer = with(infer_permute_dims),
       .compute = with(compute_permute_dims),
       .func = "transpose"},
      {.name = "broadcast_to",
       .inputs = {{"x"}, shape},
       .infer = infer_broadcast_to,
       .compute = with(compute_broadcast_to)},
      {.name = "collapse_sum_like",
       .inputs = {{"data"}, {"collapse_target"}},
       .infer = infer_collapse_like,
       .compute = with(compute_collapse),
       .func = "collapse_sum"},
      {.name = "collapse_sum_to",
       .inputs = {{"data"}, shape},
       .infer = infer_collapse_to,
       .compute = with(compute_collapse),
       .func = "collapse_sum"},
  };
}

}  // namespace sator::relax
