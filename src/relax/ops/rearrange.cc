// Ops that join, cut and repeat tensors.
#include <algorithm>

#include "relax/builder.h"
#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

using te::Indices;
using te::Tensor;

// ---- concat ----

struct ConcatAttrs {
  std::optional<int64_t> axis = 0;  ///< nothing: the tensors have rank 1
  static constexpr auto fields() { return std::tuple{attr("axis", &ConcatAttrs::axis)}; }
};

/// The joined shape; nothing where extents of the other axes cannot be compared.
std::optional<std::vector<Expr>> joined_shape(const CallInfo& in, const std::vector<std::vector<Expr>>& shapes,
                                              size_t axis) {
  std::vector<Expr> out = shapes[0];
  bool known = true;
  for (size_t d = 0; d < out.size(); ++d) {
    for (const std::vector<Expr>& s : shapes) {
      if (d == axis) continue;
      if (in.differ(s[d], out[d]))
        in.fail({.what = text("two tensors differ along axis ", d),
                 .needs = text("equal extents but along axis ", axis),
                 .hint = "slice or pad one of them"});
      known = known && in.same(s[d], out[d]);
    }
  }
  bool all_same = std::ranges::all_of(shapes, [&](const auto& s) { return equal(s[axis], shapes[0][axis]); });
  if (all_same) {
    out[axis] = shapes[0][axis] * dim(static_cast<int64_t>(shapes.size()));
  } else {
    out[axis] = dim(0);
    for (const std::vector<Expr>& s : shapes) out[axis] = out[axis] + s[axis];
  }
  return known ? std::optional(out) : std::nullopt;
}

StructInfo infer_concat(const ConcatAttrs& a, const CallInfo& in) {
  std::vector<Ref<const TensorInfo>> tensors = in.tensors(0);
  if (tensors.empty()) in.fail({.what = "there are no tensors", .needs = "at least one", .hint = "give the tensors"});
  int ndim = a.axis ? -1 : 1;
  DType dtype;
  std::string vdevice;
  bool dtype_known = true, shapes_known = true, one_device = true;
  std::vector<std::vector<Expr>> shapes;
  for (const auto& t : tensors) {
    if (t->dtype.is_void())
      dtype_known = false;
    else if (dtype.is_void())
      dtype = t->dtype;
    else if (dtype != t->dtype)
      in.fail(
          {.what = text("tensors of ", dtype, " and ", t->dtype), .needs = "equal dtypes", .hint = "cast with astype"});
    if (ndim < 0)
      ndim = t->ndim;
    else if (t->ndim >= 0 && t->ndim != ndim)
      in.fail(
          {.what = text("tensors of rank ", ndim, " and ", t->ndim), .needs = "equal ranks", .hint = "reshape first"});
    if (!t->vdevice.empty() && !vdevice.empty() && t->vdevice != vdevice) one_device = false;
    if (vdevice.empty()) vdevice = t->vdevice;
    if (auto shape = shape_of(*t)) shapes.push_back(*shape);
    shapes_known = shapes_known && t->shape.as<ShapeExpr>();
  }
  if (!dtype_known) dtype = DType::Void();
  if (!one_device) vdevice.clear();
  if (ndim < 0) return tensors.size() == 1 ? StructInfo(tensors[0]) : tensor_info(dtype, ndim, vdevice);
  size_t axis = static_cast<size_t>(in.axis(a.axis.value_or(0), ndim));
  if (tensors.size() == 1) return tensors[0];
  if (shapes.empty()) return tensor_info(dtype, ndim, vdevice);
  auto shape = joined_shape(in, shapes, axis);
  return tensor_of(shapes_known ? shape : std::nullopt, ndim, dtype, vdevice);
}

Tensor compute_concat(const ConcatAttrs& a, const TeInputs& in) {
  const std::vector<Tensor>& tensors = in.tensors(0);
  size_t axis = from_front(a.axis.value_or(0), tensors[0].rank());
  std::vector<Expr> shape = tensors[0].shape();
  for (size_t t = 1; t < tensors.size(); ++t) shape[axis] = shape[axis] + tensors[t].shape()[axis];
  shape[axis] = arith::Analyzer().simplify(shape[axis]);
  return te::compute({.name = "T_concat"}, shape, [&](const Indices& i) {
    Expr value = tensors[0](i), at = i[axis];
    for (size_t t = 1; t < tensors.size(); ++t) {
      at = at - tensors[t - 1].shape()[axis];
      value = if_then_else(ge(at, dim(0)), tensors[t](at_axis(i, axis, at)), value);
    }
    return value;
  });
}

// ---- meshgrid ----

struct MeshgridAttrs {
  std::string indexing = "ij";  ///< "xy": the first two axes of the grids are swapped, as in NumPy
  static constexpr auto fields() { return std::tuple{attr("indexing", &MeshgridAttrs::indexing)}; }
};

/// The axis of the grids along which tensor k runs.
size_t grid_axis(const MeshgridAttrs& a, size_t k, size_t count) {
  return a.indexing == "xy" && count > 1 && k < 2 ? 1 - k : k;
}

StructInfo infer_meshgrid(const MeshgridAttrs& a, const CallInfo& in) {
  const std::vector<Ref<const TensorInfo>> tensors = in.tensors(0);
  if (tensors.empty()) in.fail({.what = "there are no tensors", .needs = "at least one", .hint = "give the tensors"});
  if (a.indexing != "ij" && a.indexing != "xy")
    in.fail(
        {.what = text("indexing ", string_literal(a.indexing)), .needs = "ij or xy", .hint = "choose one of these"});
  std::optional<std::vector<Expr>> shape = std::vector<Expr>(tensors.size());
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (tensors[k]->ndim > 1)
      in.fail(
          {.what = text("tensor ", k, " has rank ", tensors[k]->ndim), .needs = "rank 0 or 1", .hint = "flatten it"});
    const auto own = explicit_shape(*tensors[k]);
    if (!own)
      shape.reset();
    else if (shape)
      (*shape)[grid_axis(a, k, tensors.size())] = own->empty() ? dim(1) : (*own)[0];
  }
  std::vector<StructInfo> out;
  for (const auto& t : tensors) out.push_back(tensor_of(shape, static_cast<int>(tensors.size()), t->dtype, t->vdevice));
  return tuple_info(std::move(out));
}
/// Grid k at [i0, i1, ...] is element ik of tensor k.
std::vector<Tensor> compute_meshgrid(const MeshgridAttrs& a, const TeInputs& in) {
  const std::vector<Tensor>& tensors = in.tensors(0);
  std::vector<Expr> shape(tensors.size());
  for (size_t k = 0; k < tensors.size(); ++k)
    shape[grid_axis(a, k, tensors.size())] = tensors[k].rank() == 0 ? dim(1) : tensors[k].dim(0);
  std::vector<Tensor> out;
  for (size_t k = 0; k < tensors.size(); ++k)
    out.push_back(te::compute({.name = "T_meshgrid"}, shape, [&](const Indices& i) {
      return tensors[k].rank() == 0 ? tensors[k]({}) : tensors[k]({i[grid_axis(a, k, tensors.size())]});
    }));
  return out;
}

/// The grid of one tensor is a tuple of one.
RExpr legalize_meshgrid(const RCallRef& call, BlockBuilder& b) {
  RExpr grids = b.legalize_by_formula(call);
  const bool is_one = grids && call->sinfo.as<TupleInfo>()->items.size() == 1;
  return is_one ? relax::tuple({b.emit(grids)}) : grids;
}

// ---- stack ----

struct StackAttrs {
  int64_t axis = 0;  ///< of the result: the new one
  static constexpr auto fields() { return std::tuple{attr("axis", &StackAttrs::axis)}; }
};

StructInfo infer_stack(const StackAttrs& a, const CallInfo& in) {
  const std::vector<Ref<const TensorInfo>> tensors = in.tensors(0);
  if (tensors.empty()) in.fail({.what = "there are no tensors", .needs = "at least one", .hint = "give the tensors"});
  const TensorInfo& first = *tensors[0];
  for (const auto& t : tensors) {
    if (!t->dtype.is_void() && !first.dtype.is_void() && t->dtype != first.dtype)
      in.fail({.what = text("tensors of ", first.dtype, " and ", t->dtype),
               .needs = "equal dtypes",
               .hint = "cast with astype"});
    if (t->ndim >= 0 && first.ndim >= 0 && t->ndim != first.ndim)
      in.fail({.what = text("tensors of rank ", first.ndim, " and ", t->ndim),
               .needs = "equal shapes",
               .hint = "reshape first"});
    const auto shape = explicit_shape(*t), of_first = explicit_shape(first);
    if (!shape || !of_first) continue;
    for (size_t d = 0; d < shape->size(); ++d)
      if (in.differ((*shape)[d], (*of_first)[d]))
        in.fail({.what = text("two tensors differ along axis ", d),
                 .needs = "equal shapes",
                 .hint = "slice or pad one of them"});
  }
  if (first.ndim < 0) return tensor_info(first.dtype, -1, first.vdevice);
  const int axis = in.axis(a.axis, first.ndim + 1);
  auto shape = explicit_shape(first);
  if (shape) shape->insert(shape->begin() + axis, dim(static_cast<int64_t>(tensors.size())));
  return tensor_of(shape, first.ndim + 1, first.dtype, first.vdevice);
}

Tensor compute_stack(const StackAttrs& a, const TeInputs& in) {
  const std::vector<Tensor>& tensors = in.tensors(0);
  const size_t axis = from_front(a.axis, tensors[0].rank() + 1);
  std::vector<Expr> shape = tensors[0].shape();
  shape.insert(shape.begin() + static_cast<long>(axis), dim(static_cast<int64_t>(tensors.size())));
  return te::compute({.name = "T_stack"}, shape, [&](const Indices& i) {
    const Indices at = without(i, {static_cast<int64_t>(axis)});
    Expr value = tensors.back()(at);
    for (size_t t = tensors.size() - 1; t-- > 0;)
      value = if_then_else(eq(i[axis], dim(static_cast<int64_t>(t))), tensors[t](at), value);
    return value;
  });
}

// ---- split ----

struct SplitAttrs {
  std::variant<int64_t, Axes> indices_or_sections;
  int axis = 0;
  static constexpr auto fields() {
    return std::tuple{required("indices_or_sections", &SplitAttrs::indices_or_sections),
                      attr("axis", &SplitAttrs::axis)};
  }
};

/// A result is a node of the graph: two thousand million of them in one line of text would fill the memory.
constexpr size_t kMostSections = 1 << 16;

StructInfo infer_split(const SplitAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  auto shape = explicit_shape(x);
  size_t axis = x.ndim < 0 ? 0 : static_cast<size_t>(in.axis(a.axis, x.ndim));
  const Axes* points = std::get_if<Axes>(&a.indices_or_sections);
  size_t parts =
      points ? points->size() + 1 : static_cast<size_t>(std::max<int64_t>(std::get<0>(a.indices_or_sections), 0));
  if (parts == 0)
    in.fail({.what = "no sections", .needs = "at least one section", .hint = "give a positive number of sections"});
  if (parts > kMostSections)
    in.fail({.what = text(parts, " sections"),
             .needs = text("at most ", kMostSections, " results of an operator"),
             .hint = "reshape the tensor instead: one more axis holds any number of sections"});
  if (parts == 1) return tuple_info({ref(x)});
  if (!shape) return tuple_info(std::vector<StructInfo>(parts, tensor_info(x.dtype, x.ndim, x.vdevice)));
  const Expr extent = (*shape)[axis];
  std::vector<StructInfo> out;
  auto add = [&](const Expr& length) {
    std::vector<Expr> s = *shape;
    s[axis] = in.arith().simplify(length);
    out.push_back(tensor_info(std::move(s), x.dtype, x.vdevice));
  };
  if (points) {
    auto inside = [&](const Expr& e) { return min(max(e, dim(0)), extent); };
    for (size_t i = 0; i < parts; ++i) {
      Expr left = i == 0 ? dim(0) : dim((*points)[i - 1]), right = i + 1 == parts ? extent : dim((*points)[i]);
      add(max(inside(right) - inside(left), dim(0)));
    }
  } else {
    int64_t n = static_cast<int64_t>(parts);
    Expr length = in.arith().simplify(ceildiv(extent, dim(n)));
    if (in.exceeds(length * (n - 1), extent))
      in.fail({.what = text(
                   parts, " sections of ceil(extent / ", parts, ") = ", length, " elements do not fit in ", extent),
               .needs = "a last section of at least 0 elements",
               .hint = "use fewer sections, or give the points to split at"});
    for (size_t i = 0; i + 1 < parts; ++i) add(length);
    add(extent - length * (n - 1));
  }
  return tuple_info(std::move(out));
}

std::vector<Tensor> compute_split(const SplitAttrs& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  size_t axis = from_front(a.axis, x.rank());
  std::vector<Expr> begins{dim(0)};
  const Axes* points = std::get_if<Axes>(&a.indices_or_sections);
  if (points) {
    for (int64_t p : *points) begins.push_back(min(max(dim(p), dim(0)), x.shape()[axis]));
  } else {
    int64_t n = std::get<0>(a.indices_or_sections);
    Expr length = ceildiv(x.shape()[axis], dim(n));
    for (int64_t i = 1; i < n; ++i) begins.push_back(length * i);
  }
  arith::Analyzer arith;
  for (const VarRef& v : vars_in(x.shape()[axis])) arith.assume_size(v);
  std::vector<Tensor> out;
  for (size_t p = 0; p < begins.size(); ++p) {
    std::vector<Expr> shape = x.shape();
    Expr length = (p + 1 < begins.size() ? begins[p + 1] : x.shape()[axis]) - begins[p];
    shape[axis] = arith.simplify(points ? max(length, dim(0)) : length);
    out.push_back(gather({.name = points ? "T_split" : "T_split_sections"}, x, shape, [&](const Indices& i) {
      return at_axis(i, axis, i[axis] + begins[p]);
    }));
  }
  return out;
}

/// One section is the tensor itself.
RExpr legalize_split(const RCallRef& call, BlockBuilder& b) {
  const TupleInfo* parts = call->sinfo.as<TupleInfo>();
  return parts && parts->items.size() == 1 ? tuple({call->args[0]}) : b.legalize_by_formula(call);
}

// ---- repeat, tile, flip ----

void need_not_negative(const CallInfo& in, const Axes& repeats) {
  for (int64_t r : repeats) {
    if (r < 0) in.fail({.what = text("repeats ", r), .needs = "repeats >= 0", .hint = "1 keeps the axis as it is"});
  }
}

struct RepeatAttrs {
  int64_t repeats = 1;
  std::optional<int64_t> axis;  ///< nothing: x is flattened first
  static constexpr auto fields() {
    return std::tuple{required("repeats", &RepeatAttrs::repeats), attr("axis", &RepeatAttrs::axis)};
  }
};

StructInfo infer_repeat(const RepeatAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  if (a.axis && x.ndim >= 0) in.axis(*a.axis, x.ndim);
  need_not_negative(in, {a.repeats});
  auto shape = explicit_shape(x);
  if (!shape) {
    if (!a.axis) return tensor_info(x.dtype, 1, x.vdevice);
    return a.repeats == 1 ? StructInfo(&x) : tensor_info(x.dtype, x.ndim, x.vdevice);
  }
  if (!a.axis) {
    Expr count;
    for (const Expr& e : *shape) count = count ? count * e : e;
    count = count ? count * a.repeats : dim(a.repeats);
    return tensor_info({in.arith().simplify(count)}, x.dtype, x.vdevice);
  }
  Expr& extent = (*shape)[static_cast<size_t>(in.axis(*a.axis, x.ndim))];
  extent = in.arith().simplify(extent * a.repeats);
  return tensor_info(*shape, x.dtype, x.vdevice);
}

Tensor compute_repeat(const RepeatAttrs& a, const TeInputs& in) {
  Tensor x = in.tensor(0);
  if (!a.axis) {
    Expr count = dim(1);
    for (const Expr& e : x.shape()) count = count * e;
    x = reshape(x, {count});
  }
  size_t axis = from_front(a.axis.value_or(0), x.rank());
  std::vector<Expr> shape = x.shape();
  shape[axis] = dim(a.repeats) * shape[axis];
  if (!a.axis) shape[axis] = arith::Analyzer().simplify(shape[axis]);
  int64_t repeats = std::max<int64_t>(a.repeats, 1);  // of no repeats there is no element to compute
  return gather(
      {.name = "T_repeat"}, x, shape, [&](const Indices& i) { return at_axis(i, axis, floordiv(i[axis], repeats)); });
}

struct TileAttrs {
  Axes repeats;
  static constexpr auto fields() { return std::tuple{required("repeats", &TileAttrs::repeats)}; }
};

StructInfo infer_tile(const TileAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  auto shape = explicit_shape(x);
  int given = static_cast<int>(a.repeats.size());
  need_not_negative(in, a.repeats);
  if (!shape) {
    if (x.ndim < 0) return tensor_info(x.dtype, -1, x.vdevice);
    bool changes = given > x.ndim || std::ranges::any_of(a.repeats, [](int64_t r) { return r != 1; });
    return changes ? tensor_info(x.dtype, std::max(given, x.ndim), x.vdevice) : StructInfo(&x);
  }
  size_t rank = std::max(a.repeats.size(), shape->size());
  std::vector<Expr> out;
  for (size_t d = 0; d < rank; ++d) {
    size_t before_x = rank - shape->size(), before_r = rank - a.repeats.size();
    if (d < before_r)
      out.push_back((*shape)[d - before_x]);
    else if (d < before_x)
      out.push_back(dim(a.repeats[d - before_r]));
    else
      out.push_back(in.arith().simplify((*shape)[d - before_x] * a.repeats[d - before_r]));
  }
  return tensor_info(std::move(out), x.dtype, x.vdevice);
}

Tensor compute_tile(const TileAttrs&, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  std::vector<Expr> shape = in.out_shape();
  size_t extra = shape.size() - x.shape().size();
  return gather({.name = "T_tile"}, x, shape, [&](const Indices& i) {
    Indices at;
    for (size_t d = extra; d < i.size(); ++d) {
      const Expr& extent = x.shape()[d - extra];
      at.push_back(is_zero(extent) ? i[d] : floormod(i[d], extent));  // of no elements none is read
    }
    return at;
  });
}

struct FlipAttrs {
  int64_t axis = 0;
  static constexpr auto fields() { return std::tuple{required("axis", &FlipAttrs::axis)}; }
};

StructInfo infer_flip(const FlipAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  if (x.ndim >= 0) in.axis(a.axis, x.ndim);
  return ref(x);
}
Tensor compute_flip(const FlipAttrs& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  size_t axis = from_front(a.axis, x.rank());
  return gather({.name = "T_reverse_sequence"}, x, x.shape(), [&](const Indices& i) {
    return at_axis(i, axis, x.shape()[axis] - 1 - i[axis]);
  });
}

}  // namespace

std::vector<OpDef> rearrange_ops() {
  return {
      {.name = "concat",
       .inputs = {{"tensors", InputKind::tensors}},
       .attrs = attrs_of<ConcatAttrs>(),
       .infer = with(infer_concat),
       .compute = with(compute_concat),
       .func = "concatenate"},
      {.name = "split",
       .inputs = {{"x"}},
       .attrs = attrs_of<SplitAttrs>(),
       .infer = with(infer_split),
       .compute = with(compute_split),
       .legalize = legalize_split},
      {.name = "repeat",
       .inputs = {{"data"}},
       .attrs = attrs_of<RepeatAttrs>(),
       .infer = with(infer_repeat),
       .compute = with(compute_repeat)},
      {.name = "tile",
       .inputs = {{"data"}},
       .attrs = attrs_of<TileAttrs>(),
       .infer = with(infer_tile),
       .compute = with(compute_tile)},
      {.name = "flip",
       .inputs = {{"data"}},
       .attrs = attrs_of<FlipAttrs>(),
       .infer = with(infer_flip),
       .compute = with(compute_flip)},
      {.name = "meshgrid",
       .inputs = {{"tensors", InputKind::tensors}},
       .attrs = attrs_of<MeshgridAttrs>(),
       .infer = with(infer_meshgrid),
       .compute = with(compute_meshgrid),
       .legalize = legalize_meshgrid},
      {.name = "stack",
       .inputs = {{"tensors", InputKind::tensors}},
       .attrs = attrs_of<StackAttrs>(),
       .infer = with(infer_stack),
       .compute = with(compute_stack)},
  };
}

}  // namespace sator::relax
