// Ops that pick or replace the elements at positions that a tensor holds. A position below 0 counts from the end; one outside
// of the tensor is an error of the program.
#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"
#include "relax/ops/nest.h"

namespace sator::relax {

namespace {

using te::Indices;
using te::Tensor;

/// A position of Python's kind, counted from the front.
Expr counted_from_front(const Expr& index, const Expr& extent) {
  return index + cast_to(index->dtype, lt(index, constant(0, index->dtype))) * cast_to(index->dtype, extent);
}

void need_integer_indices(const CallInfo& in, size_t i) {
  const DType dtype = in.tensor(i).dtype;
  if (!dtype.is_void() && !dtype.is_integer())
    in.fail({.what = text("indices are ", dtype), .needs = "an integer dtype", .hint = "cast to int64"});
}

// ---- gather_elements ----

struct GatherElementsAttrs {
  int64_t axis = 0;
  static constexpr auto fields() { return std::tuple{attr("axis", &GatherElementsAttrs::axis)}; }
};

StructInfo infer_gather_elements(const GatherElementsAttrs& a, const CallInfo& in) {
  const TensorInfo &data = in.tensor(0), &indices = in.tensor(1);
  need_integer_indices(in, 1);
  if (data.ndim >= 0) in.axis(a.axis, data.ndim);
  if (data.ndim >= 0 && indices.ndim >= 0 && data.ndim != indices.ndim)
    in.fail({.what = text("data has rank ", data.ndim, ", indices have rank ", indices.ndim),
             .needs = "one rank",
             .hint = "reshape one of them"});
  const auto d = explicit_shape(data), i = explicit_shape(indices);
  for (size_t k = 0; d && i && k < d->size(); ++k)
    if (k != static_cast<size_t>(in.axis(a.axis, data.ndim)) && in.exceeds((*i)[k], (*d)[k]))
      in.fail({.what = text("indices are longer than data along axis ", k),
               .needs = "indices inside of data along all axes but the gathered one",
               .hint = "slice the indices"});
  return tensor_of(i, indices.ndim, data.dtype, data.vdevice);
}

Tensor compute_gather_elements(const GatherElementsAttrs& a, const TeInputs& in) {
  const Tensor &data = in.tensor(0), &indices = in.tensor(1);
  const size_t axis = from_front(a.axis, data.rank());
  return gather({.name = "T_gather"}, data, indices.shape(), [&](const Indices& i) {
    return at_axis(i, axis, counted_from_front(indices(i), data.shape()[axis]));
  });
}

// ---- gather_nd ----

struct GatherNdAttrs {
  int64_t batch_dims = 0;  ///< leading axes that data and indices share
  static constexpr auto fields() { return std::tuple{attr("batch_dims", &GatherNdAttrs::batch_dims)}; }
};

/// How many axes of data a row of the indices names; nothing if that is not known.
std::optional<int64_t> named_axes(const CallInfo& in, int64_t batch_dims) {
  const TensorInfo &data = in.tensor(0), &indices = in.tensor(1);
  const auto shape = explicit_shape(indices);
  if (indices.ndim == 0)
    in.fail({.what = "indices have rank 0", .needs = "one axis at least, of positions", .hint = "reshape them"});
  if (!shape || shape->empty() || !as_int(shape->back())) return {};
  const int64_t named = *as_int(shape->back());
  if (data.ndim >= 0 && named + batch_dims > data.ndim)
    in.fail({.what = text("indices name ",
                          named,
                          " axes of a tensor of rank ",
                          data.ndim,
                          batch_dims ? text(" after ", batch_dims, " batch axes") : ""),
             .needs = "as many positions in a row as data has axes, or fewer",
             .hint = "check the last axis of the indices"});
  return named;
}

StructInfo infer_gather_nd(const GatherNdAttrs& a, const CallInfo& in) {
  const TensorInfo &data = in.tensor(0), &indices = in.tensor(1);
  need_integer_indices(in, 1);
  if (a.batch_dims < 0 || (data.ndim >= 0 && a.batch_dims > data.ndim) ||
      (indices.ndim >= 0 && a.batch_dims >= indices.ndim))
    in.fail({.what = text("batch_dims is ", a.batch_dims),
             .needs = "0 or more, less than the rank of the indices, and not more than that of data",
             .hint = "use 0 where they share no axes"});
  const auto named = named_axes(in, a.batch_dims);
  if (!named || data.ndim < 0 || indices.ndim < 0) return tensor_info(data.dtype, -1, data.vdevice);
  const int ndim = indices.ndim - 1 + data.ndim - static_cast<int>(a.batch_dims + *named);
  const auto d = explicit_shape(data), i = explicit_shape(indices);
  if (!d || !i) return tensor_info(data.dtype, ndim, data.vdevice);
  for (int64_t b = 0; b < a.batch_dims; ++b)
    if (in.differ((*d)[static_cast<size_t>(b)], (*i)[static_cast<size_t>(b)]))
      in.fail({.what = text("data and indices differ along batch axis ", b),
               .needs = "equal extents of the batch axes",
               .hint = "broadcast one of them"});
  std::vector<Expr> out(i->begin(), i->end() - 1);
  out.insert(out.end(), d->begin() + a.batch_dims + *named, d->end());
  return tensor_info(std::move(out), data.dtype, data.vdevice);
}

/// Element [i..., j...] of the result is that of data at [first batch_dims of i, indices[i...], j...].
Tensor compute_gather_nd(const GatherNdAttrs& a, const TeInputs& in) {
  const Tensor &data = in.tensor(0), &indices = in.tensor(1);
  const int64_t named = *as_int(indices.shape().back()), front = indices.rank() - 1;
  return gather({.name = "T_gather_nd"}, data, in.out_shape(), [&](const Indices& i) {
    Indices at(i.begin(), i.begin() + a.batch_dims), row(i.begin(), i.begin() + front);
    for (int64_t k = 0; k < named; ++k) {
      Indices position = row;
      position.push_back(dim(k));
      at.push_back(counted_from_front(indices(position), data.dim(a.batch_dims + k)));
    }
    at.insert(at.end(), i.begin() + front, i.end());
    return at;
  });
}

// ---- scatter_elements ----

struct ScatterElementsAttrs {
  int64_t axis = 0;
  std::string reduction = "update";  ///< update | add | mul | mean | max | min
  static constexpr auto fields() {
    return std::tuple{attr("axis", &ScatterElementsAttrs::axis), attr("reduction", &ScatterElementsAttrs::reduction)};
  }
};

StructInfo infer_scatter_elements(const ScatterElementsAttrs& a, const CallInfo& in) {
  const TensorInfo &data = in.tensor(0), &indices = in.tensor(1), &updates = in.tensor(2);
  if (data.ndim >= 0) in.axis(a.axis, data.ndim);
  if (data.ndim < 0) return tensor_info(data.dtype, -1, data.vdevice);
  for (const TensorInfo* t : {&indices, &updates}) {
    if (indices.ndim >= 0 && updates.ndim >= 0 && t->ndim != data.ndim)
      in.fail({.what = text("tensors of rank ", data.ndim, " and ", t->ndim),
               .needs = "data, indices and updates of one rank",
               .hint = "reshape them"});
  }
  if (!data.dtype.is_void() && !updates.dtype.is_void() && data.dtype != updates.dtype)
    in.fail({.what = text("data is ", data.dtype, ", updates are ", updates.dtype),
             .needs = "equal dtypes",
             .hint = "cast with astype"});
  need_integer_indices(in, 1);
  auto i = explicit_shape(indices), u = explicit_shape(updates);
  if (i && u) {
    for (size_t d = 0; d < i->size() && d < u->size(); ++d) {
      if (in.differ((*i)[d], (*u)[d]))
        in.fail({.what = text("indices and updates differ along axis ", d),
                 .needs = "equal shapes",
                 .hint = "slice one of them"});
    }
  }
  const auto whole = explicit_shape(data);
  for (size_t d = 0; i && whole && d < i->size(); ++d)
    if (d != static_cast<size_t>(in.axis(a.axis, data.ndim)) && in.exceeds((*i)[d], (*whole)[d]))
      in.fail({.what = text("indices are longer than data along axis ", d),
               .needs = "indices inside of data along all axes but the scattered one",
               .hint = "slice indices and updates"});
  return tensor_of(explicit_shape(data), data.ndim, data.dtype, data.vdevice);
}

Expr combined(const char* op, const std::string& reduction, const Expr& old, const Expr& update) {
  if (reduction == "update") return update;
  if (reduction == "add") return old + update;
  if (reduction == "mul") return old * update;
  if (reduction == "mean") return div(old + update, constant(2, old->dtype));
  if (reduction == "max") return max(old, update);
  if (reduction == "min") return min(old, update);
  fail({.what = text(op, ": reduction ", string_literal(reduction)),
        .needs = "update, add, mul, mean, max or min",
        .hint = "choose one of these"});
}

tir::Stmt copied(const Tensor& data, const BufferRef& from, const BufferRef& to) {
  return nest(data.shape(), "i", [&](const Indices& i) { return tir::store(to, load(from, i), i); });
}

/// First a copy of data; then, position by position in the order of `indices`, its elements are updated.
Tensor compute_scatter_elements(const ScatterElementsAttrs& a, const TeInputs& in) {
  const Tensor &data = in.tensor(0), &indices = in.tensor(1), &updates = in.tensor(2);
  size_t axis = from_front(a.axis, data.rank());
  auto statement = [=](const std::vector<BufferRef>& b) {
    tir::Stmt update = nest(indices.shape(), "j", [&](const Indices& j) {
      Indices at = at_axis(j, axis, counted_from_front(load(b[1], j), data.shape()[axis]));
      return tir::store(b[3], combined("scatter_elements", a.reduction, load(b[3], at), load(b[2], j)), at);
    });
    return tir::seq({copied(data, b[0], b[3]), update});
  };
  return te::extern_stage(
      "scatter_elements_generic", {data, indices, updates}, {{data.shape(), data.dtype(), "out_buf"}}, statement)[0];
}

// ---- scatter_nd ----

struct ScatterNdAttrs {
  std::string reduction = "update";  ///< update | add | mul | mean | max | min
  static constexpr auto fields() { return std::tuple{attr("reduction", &ScatterNdAttrs::reduction)}; }
};

StructInfo infer_scatter_nd(const ScatterNdAttrs&, const CallInfo& in) {
  const TensorInfo &data = in.tensor(0), &indices = in.tensor(1), &updates = in.tensor(2);
  need_integer_indices(in, 1);
  if (!data.dtype.is_void() && !updates.dtype.is_void() && data.dtype != updates.dtype)
    in.fail({.what = text("data is ", data.dtype, ", updates are ", updates.dtype),
             .needs = "equal dtypes",
             .hint = "cast with astype"});
  const auto named = named_axes(in, 0);
  const auto d = explicit_shape(data), i = explicit_shape(indices), u = explicit_shape(updates);
  if (named && d && i && u) {
    std::vector<Expr> needed(i->begin(), i->end() - 1);
    needed.insert(needed.end(), d->begin() + *named, d->end());
    bool fits = needed.size() == u->size();
    for (size_t k = 0; fits && k < needed.size(); ++k) fits = !in.differ(needed[k], (*u)[k]);
    if (!fits)
      in.fail(
          {.what = text("updates have the shape (", join(*u, ", "), ")"),
           .needs = text("(", join(needed, ", "), "): a row of indices each, and data's axes that it does not name"),
           .hint = "reshape or slice the updates"});
  }
  return tensor_of(d, data.ndim, data.dtype, data.vdevice);
}

/// First a copy of data; then, row by row of `indices`, what stands at that position is updated.
Tensor compute_scatter_nd(const ScatterNdAttrs& a, const TeInputs& in) {
  const Tensor &data = in.tensor(0), &indices = in.tensor(1), &updates = in.tensor(2);
  const int64_t named = *as_int(indices.shape().back()), front = indices.rank() - 1;
  auto statement = [=](const std::vector<BufferRef>& b) {
    tir::Stmt update = nest(updates.shape(), "j", [&](const Indices& j) {
      Indices at;
      for (int64_t k = 0; k < named; ++k) {
        Indices position(j.begin(), j.begin() + front);
        position.push_back(dim(k));
        at.push_back(counted_from_front(load(b[1], position), data.dim(k)));
      }
      at.insert(at.end(), j.begin() + front, j.end());
      return tir::store(b[3], combined("scatter_nd", a.reduction, load(b[3], at), load(b[2], j)), at);
    });
    return tir::seq({copied(data, b[0], b[3]), update});
  };
  return te::extern_stage(
      "scatter_nd_generic", {data, indices, updates}, {{data.shape(), data.dtype(), "out_buf"}}, statement)[0];
}

// ---- index_tensor ----

/// The shape that the index tensors have together; nothing if it cannot be told.
StructInfo infer_index_tensor(const CallInfo& in) {
  const TensorInfo& data = in.tensor(0);
  const auto indices = in.tensors(1);
  if (indices.empty()) in.fail({.what = "there are no indices", .needs = "one tensor at least", .hint = "give them"});
  if (data.ndim >= 0 && static_cast<int>(indices.size()) > data.ndim)
    in.fail({.what = text(indices.size(), " index tensors for a tensor of rank ", data.ndim),
             .needs = "at most one per axis",
             .hint = "check the list"});
  int ndim = 0;
  std::optional<std::vector<Expr>> shape = std::vector<Expr>{};
  for (const auto& t : indices) {
    if (!t->dtype.is_void() && !t->dtype.is_integer())
      in.fail({.what = text("an index tensor of ", t->dtype), .needs = "an integer dtype", .hint = "cast to int64"});
    ndim = ndim < 0 || t->ndim < 0 ? -1 : std::max(ndim, t->ndim);
    const auto own = explicit_shape(*t);
    shape = shape && own ? in.broadcast(*shape, *own) : std::nullopt;
  }
  const auto d = explicit_shape(data);
  const auto count = static_cast<int>(indices.size());
  if (!shape || !d)
    return tensor_info(data.dtype, ndim < 0 || data.ndim < 0 ? -1 : ndim + data.ndim - count, data.vdevice);
  shape->insert(shape->end(), d->begin() + count, d->end());
  return tensor_info(std::move(*shape), data.dtype, data.vdevice);
}
/// data[i0, i1, ...] of NumPy: the indices are broadcast to one shape; axes without an index follow.
Tensor compute_index_tensor(const TeInputs& in) {
  const Tensor& data = in.tensor(0);
  const std::vector<Tensor>& indices = in.tensors(1);
  std::vector<Expr> shape;
  for (const Tensor& t : indices) shape = broadcast_shape(shape, t.shape());
  const auto front = static_cast<long>(shape.size());
  return gather({.name = "T_index_tensor"}, data, in.out_shape(), [&](const Indices& i) {
    const Indices where(i.begin(), i.begin() + front);
    Indices at;
    for (size_t k = 0; k < indices.size(); ++k)
      at.push_back(
          counted_from_front(indices[k](broadcast_index(where, indices[k], shape)), data.dim(static_cast<int64_t>(k))));
    at.insert(at.end(), i.begin() + front, i.end());
    return at;
  });
}

// ---- slice_scatter ----

struct SliceScatterAttrs {
  int64_t axis = 0;
  static constexpr auto fields() { return std::tuple{attr("axis", &SliceScatterAttrs::axis)}; }
};

/// Where a slice begins or ends in an axis: below 0 it counts from the end, and it stays inside.
Expr inside_axis(const Expr& position, const Expr& extent) {
  const Expr p = cast_to(i64, position);
  return max(min(select(lt(p, dim(0)), p + extent, p), extent), dim(0));
}

StructInfo infer_slice_scatter(const SliceScatterAttrs& a, const CallInfo& in) {
  const TensorInfo &x = in.tensor(0), &src = in.tensor(1);
  in.common_dtype({0, 1});
  std::vector<Expr> bounds;
  for (size_t i = 2; i < 5; ++i) {
    const PrimValue* v = in.info(i).as<PrimInfo>() ? in.arg(i).as<PrimValue>() : nullptr;
    if (!v || !v->value->dtype.is_integer())
      in.fail({.what = text(in.op().inputs[i].name, " is no integer"),
               .needs = "an integer expression",
               .hint = "give a number or a symbolic size"});
    bounds.push_back(cast_to(i64, v->value));
  }
  if (as_int(bounds[2]) && *as_int(bounds[2]) < 1)
    in.fail({.what = text("step ", bounds[2]), .needs = "1 or more", .hint = "R.flip reverses an axis"});
  if (x.ndim < 0) return ref(x);
  const auto axis = static_cast<size_t>(in.axis(a.axis, x.ndim));
  if (src.ndim >= 0 && src.ndim != x.ndim)
    in.fail({.what = text("src has rank ", src.ndim, ", the input has rank ", x.ndim),
             .needs = "equal ranks",
             .hint = "expand_dims or squeeze src"});
  const auto s = explicit_shape(x), t = explicit_shape(src);
  for (size_t d = 0; s && t && d < s->size(); ++d) {
    Expr wanted = (*s)[d];
    if (d == axis) {
      const Expr length = inside_axis(bounds[1], (*s)[d]) - inside_axis(bounds[0], (*s)[d]);
      wanted = max(floordiv(length + bounds[2] - 1, bounds[2]), dim(0));
    }
    if (in.differ((*t)[d], wanted))
      in.fail({.what = text("src and the slice differ along axis ", d),
               .needs = "the shape of the slice",
               .hint = "check start, end and step"});
  }
  return ref(x);
}
/// The input with src in the place of its slice start:end:step along the axis.
Tensor compute_slice_scatter(const SliceScatterAttrs& a, const TeInputs& in) {
  const Tensor &x = in.tensor(0), &src = in.tensor(1);
  const size_t axis = from_front(a.axis, x.rank());
  const Expr extent = x.shape()[axis], step = cast_to(i64, in.scalar(4));
  const Expr start = inside_axis(in.scalar(2), extent), end = inside_axis(in.scalar(3), extent);
  // Vectors have no division in 64 bits.
  const auto fits = [](const Expr& e) { return as_int(e) && *as_int(e) <= max_int(i32); };
  const DType divided = fits(extent) && fits(step) ? i32 : i64;
  return te::compute({.name = "T_slice_scatter"}, x.shape(), [&](const Indices& i) {
    const Expr from = i[axis] - start;
    if (as_int(step) == 1) {
      const Expr is_inside = logical_and(ge(from, dim(0)), lt(i[axis], end));
      return if_then_else(is_inside, src(at_axis(i, axis, from)), x(i));
    }
    // No quotient below 0 is asked for.
    const Expr steps = floordiv(cast_to(divided, max(from, dim(0))), cast_to(divided, step));
    const Expr at = cast_to(i64, steps);
    const Expr is_inside = logical_and(logical_and(ge(from, dim(0)), lt(i[axis], end)), eq(at * step, from));
    return if_then_else(is_inside, src(at_axis(i, axis, at)), x(i));
  });
}

}  // namespace

std::vector<OpDef> gather_ops() {
  return {
      {.name = "gather_elements",
       .inputs = {{"data"}, {"indices"}},
       .attrs = attrs_of<GatherElementsAttrs>(),
       .infer = with(infer_gather_elements),
       .compute = with(compute_gather_elements)},
      {.name = "gather_nd",
       .inputs = {{"data"}, {"indices"}},
       .attrs = attrs_of<GatherNdAttrs>(),
       .infer = with(infer_gather_nd),
       .compute = with(compute_gather_nd)},
      {.name = "index_tensor",
       .inputs = {{"data"}, {"indices", InputKind::tensors}},
       .infer = infer_index_tensor,
       .compute = with(compute_index_tensor)},
      {.name = "slice_scatter",
       .inputs = {{"input_tensor"},
                  {"src"},
                  {"start", InputKind::scalar},
                  {"end", InputKind::scalar},
                  {"step", InputKind::scalar}},
       .attrs = attrs_of<SliceScatterAttrs>(),
       .infer = with(infer_slice_scatter),
       .compute = with(compute_slice_scatter)},
      {.name = "scatter_elements",
       .inputs = {{"data"}, {"indices"}, {"updates"}},
       .attrs = attrs_of<ScatterElementsAttrs>(),
       .infer = with(infer_scatter_elements),
       .compute = with(compute_scatter_elements)},
      {.name = "scatter_nd",
       .inputs = {{"data"}, {"indices"}, {"updates"}},
       .attrs = attrs_of<ScatterNdAttrs>(),
       .infer = with(infer_scatter_nd),
       .compute = with(compute_scatter_nd)},
  };
}

}  // namespace sator::relax
