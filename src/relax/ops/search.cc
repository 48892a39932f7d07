// where; sorting; unique values; sampling.
#include <algorithm>

#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"
#include "relax/ops/nest.h"

namespace sator::relax {

namespace {

using te::Indices;
using te::Tensor;

StructInfo infer_where(const CallInfo& in) {
  const TensorInfo &c = in.tensor(0), &x = in.tensor(1), &y = in.tensor(2);
  if (!c.dtype.is_bool())
    in.fail({.what = text("the condition is ", c.dtype), .needs = "bool", .hint = "compare with 0 first"});
  DType dtype = in.common_dtype({1, 2});
  std::string vdevice;
  for (const TensorInfo* t : {&c, &x, &y}) {
    if (vdevice.empty())
      vdevice = t->vdevice;
    else if (!t->vdevice.empty() && t->vdevice != vdevice) {
      vdevice.clear();
      break;
    }
  }
  bool ranked = c.ndim >= 0 && x.ndim >= 0 && y.ndim >= 0;
  int ndim = ranked ? std::max({c.ndim, x.ndim, y.ndim}) : -1;
  auto s = explicit_shape(c), t = explicit_shape(x), u = explicit_shape(y);
  if (s && t && u) {
    auto values = in.broadcast(*t, *u);
    return tensor_of(values ? in.broadcast(*s, *values) : std::nullopt, ndim, dtype, vdevice);
  }
  if (c.shape && c.shape == x.shape && c.shape == y.shape) return tensor_info(c.shape, dtype, vdevice);
  return tensor_info(dtype, ndim, vdevice);
}

Tensor compute_where(const TeInputs& in) {
  const Tensor &c = in.tensor(0), &x = in.tensor(1), &y = in.tensor(2);
  std::vector<Expr> shape = broadcast_shape(c.shape(), broadcast_shape(x.shape(), y.shape()));
  return te::compute({.name = "T_where"}, shape, [&](const Indices& i) {
    Expr condition = lt(dim(0), cast_to(i64, c(broadcast_index(i, c, shape))));
    return select(condition, x(broadcast_index(i, x, shape)), y(broadcast_index(i, y, shape)));
  });
}

// ---- masked_fill ----

StructInfo infer_masked_fill(const CallInfo& in) {
  const TensorInfo &x = in.tensor(0), &mask = in.tensor(1);
  if (!mask.dtype.is_void() && !mask.dtype.is_bool())
    in.fail({.what = text("the mask is ", mask.dtype), .needs = "bool", .hint = "compare with 0 first"});
  if (!in.info(2).as<PrimInfo>() && in.tensor(2).ndim != 0)
    in.fail({.what = "the value is not a tensor of rank 0", .needs = "a scalar", .hint = "use R.const(value, dtype)"});
  const auto s = explicit_shape(x), m = explicit_shape(mask);
  const int ndim = x.ndim < 0 || mask.ndim < 0 ? -1 : std::max(x.ndim, mask.ndim);
  return tensor_of(s && m ? in.broadcast(*s, *m) : std::nullopt, ndim, x.dtype, x.vdevice);
}

/// A Python number as the value becomes a constant, a float in float64 where x is.
RExpr build_masked_fill(const OpDef& op, BoundArgs args) {
  Value& value = args.inputs[2];
  if (value.as<int64_t>() || value.as<bool>() || value.as<double>())
    value = scalar_constant(*to_double(value), value.as<double>() ? dtype_beside(args.inputs[0]) : i64);
  return build_call(op, std::move(args));
}

/// The value where the mask is true, else x.
Tensor compute_masked_fill(const TeInputs& in) {
  // Each may be a constant of rank 0.
  auto shape_of = [&](size_t k) { return in.is_tensor(k) ? in.tensor(k).shape() : std::vector<Expr>(); };
  const std::vector<Expr> shape = broadcast_shape(shape_of(0), shape_of(1));
  return te::compute({.name = "T_masked_fill"}, shape, [&](const Indices& i) {
    auto at = [&](size_t k) {
      return in.is_tensor(k) ? in.tensor(k)(broadcast_index(i, in.tensor(k), shape)) : in.scalar(k);
    };
    const Expr x = at(0), mask = at(1);
    return select(mask, cast_to(x->dtype, at(2)), x);
  });
}

// ---- sort, argsort, topk ----

struct SortAttrs {
  int axis = -1;
  bool descending = false;
  static constexpr auto fields() {
    return std::tuple{attr("axis", &SortAttrs::axis), attr("descending", &SortAttrs::descending)};
  }
};
struct ArgsortAttrs {
  int axis = -1;
  bool descending = false;
  DType dtype = i32;
  static constexpr auto fields() {
    return std::tuple{attr("axis", &ArgsortAttrs::axis),
                      attr("descending", &ArgsortAttrs::descending),
                      attr("dtype", &ArgsortAttrs::dtype)};
  }
};
struct TopKAttrs {
  int k = 1;
  int axis = -1;
  std::string ret_type = "both";  ///< both | values | indices
  bool largest = true;
  DType dtype = i32;  ///< of the indices
  static constexpr auto fields() {
    return std::tuple{attr("k", &TopKAttrs::k),
                      attr("axis", &TopKAttrs::axis),
                      attr("ret_type", &TopKAttrs::ret_type),
                      attr("largest", &TopKAttrs::largest),
                      attr("dtype", &TopKAttrs::dtype)};
  }
};

void check_axis(const CallInfo& in, int64_t axis) {
  if (in.tensor(0).ndim >= 0) in.axis(axis, in.tensor(0).ndim);
}
StructInfo infer_sort(const SortAttrs& a, const CallInfo& in) {
  check_axis(in, a.axis);
  return ref(in.tensor(0));
}
StructInfo infer_argsort(const ArgsortAttrs& a, const CallInfo& in) {
  check_axis(in, a.axis);
  const TensorInfo& x = in.tensor(0);
  DType dtype = a.dtype.is_void() ? x.dtype : a.dtype;
  return x.shape ? tensor_info(x.shape, dtype, x.vdevice) : tensor_info(dtype, x.ndim, x.vdevice);
}
StructInfo infer_topk(const TopKAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  check_axis(in, a.axis);
  auto shape = explicit_shape(x);
  if (a.dtype.is_void())
    in.fail({.what = "the indices have no dtype", .needs = "a dtype", .hint = "pass dtype=\"int32\""});
  if (shape && a.k > 0) {
    Expr& extent = (*shape)[static_cast<size_t>(in.axis(a.axis, x.ndim))];
    if (in.exceeds(dim(a.k), extent))
      in.fail({.what = text("the ", a.k, " largest or smallest of fewer elements"),
               .needs = "k <= the extent of the axis",
               .hint = "use a smaller k, or k=0 for all"});
    extent = dim(a.k);
  }
  StructInfo values = tensor_of(shape, x.ndim, x.dtype, x.vdevice),
             indices = tensor_of(shape, x.ndim, a.dtype, x.vdevice);
  if (a.ret_type == "both") return tuple_info({values, indices});
  if (a.ret_type == "values") return values;
  if (a.ret_type == "indices") return indices;
  in.fail({.what = text("ret_type ", string_literal(a.ret_type)),
           .needs = "both, values or indices",
           .hint = "choose one of these"});
}

/// The position of every element in the sorted order: the number of elements that stand before it. Equal elements keep
/// their order, and a NaN counts as greater than all numbers, as in NumPy and PyTorch: last of an ascending, first of a
/// descending order. So the positions are a permutation.
Tensor ranks(const Tensor& x, size_t axis, bool descending) {
  tir::IterVarRef k = te::reduce_axis(x.shape()[axis], "k");
  return te::reduce({.name = "T_rank"}, x.shape(), [&](const Indices& i) {
    Indices at = i;
    at[axis] = k->var;
    Expr other = x(at), own = x(i);
    Expr before = descending ? gt(other, own) : lt(other, own), same = eq(other, own);
    if (x.dtype().is_float()) {
      using te::is_nan;
      const Expr &low = descending ? own : other, &high = descending ? other : own;
      before = logical_or(before, logical_and(is_nan(high), logical_not(is_nan(low))));
      same = logical_or(same, logical_and(is_nan(other), is_nan(own)));
    }
    Expr earlier = logical_and(same, lt(k->var, i[axis]));
    return te::reduce_sum(cast_to(i64, logical_or(before, earlier)), {k});
  });
}

/// Element r along the axis is what(i) of the element whose rank is r.
Tensor by_rank(const Tensor& x, const Tensor& rank, size_t axis, const Expr& count, DType dtype,
               FunctionRef<Expr(const Indices&)> what, const char* name) {
  std::vector<Expr> shape = x.shape();
  shape[axis] = count;
  tir::IterVarRef k = te::reduce_axis(x.shape()[axis], "k");
  return te::reduce({.name = name}, shape, [&](const Indices& i) {
    Indices at = i;
    at[axis] = k->var;
    return te::reduce_sum(select(eq(rank(at), i[axis]), what(at), constant(0, dtype)), {k});
  });
}

size_t from_front(int axis, const Tensor& x) { return static_cast<size_t>(axis < 0 ? axis + x.rank() : axis); }

Tensor compute_sort(const SortAttrs& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  size_t axis = from_front(a.axis, x);
  Tensor rank = ranks(x, axis, a.descending);
  return by_rank(x, rank, axis, x.shape()[axis], x.dtype(), [&](const Indices& i) { return x(i); }, "T_sort");
}
Tensor compute_argsort(const ArgsortAttrs& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  size_t axis = from_front(a.axis, x);
  Tensor rank = ranks(x, axis, a.descending);
  return by_rank(
      x,
      rank,
      axis,
      x.shape()[axis],
      in.out_dtype(),
      [&](const Indices& i) { return cast_to(in.out_dtype(), i[axis]); },
      "T_argsort");
}
std::vector<Tensor> compute_topk(const TopKAttrs& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  size_t axis = from_front(a.axis, x);
  Expr count = a.k > 0 ? dim(a.k) : x.shape()[axis];
  Tensor rank = ranks(x, axis, a.largest);
  std::vector<Tensor> out;
  if (a.ret_type != "indices")
    out.push_back(by_rank(x, rank, axis, count, x.dtype(), [&](const Indices& i) { return x(i); }, "T_topk_values"));
  if (a.ret_type != "values")
    out.push_back(by_rank(
        x, rank, axis, count, a.dtype, [&](const Indices& i) { return cast_to(a.dtype, i[axis]); }, "T_topk_indices"));
  return out;
}

// ---- median ----

struct MedianAttrs {
  std::optional<Axes> axis;  ///< nothing: all
  bool keepdims = false;
  static constexpr auto fields() {
    return std::tuple{attr("axis", &MedianAttrs::axis), attr("keepdims", &MedianAttrs::keepdims)};
  }
  /// Along one axis the position of the median is a second result.
  bool has_position() const { return axis && axis->size() == 1; }
};

StructInfo infer_median(const MedianAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  if (x.dtype.is_bool()) in.fail({.what = "the median of bools", .needs = "numbers", .hint = "cast with astype"});
  std::vector<int> axes;
  if (x.ndim >= 0)
    for (int d = 0; d < x.ndim; ++d) axes.push_back(d);
  if (a.axis && x.ndim >= 0) axes = in.axes(*a.axis, x.ndim);
  auto shape = explicit_shape(x);
  std::optional<std::vector<Expr>> out;
  if (shape) {
    out.emplace();
    for (int d = 0; d < x.ndim; ++d) {
      const Expr& extent = (*shape)[static_cast<size_t>(d)];
      const bool gone = std::ranges::find(axes, d) != axes.end();
      if (gone && is_zero(extent))
        in.fail({.what = text("the median of nothing: axis ", d, " has an extent of 0"),
                 .needs = "at least one element",
                 .hint = "check the tensor"});
      if (!gone || a.keepdims) out->push_back(gone ? dim(1) : extent);
    }
  }
  const int ndim = x.ndim < 0 || a.keepdims ? x.ndim : x.ndim - static_cast<int>(axes.size());
  const StructInfo value = tensor_of(out, ndim, x.dtype, x.vdevice);
  return a.has_position() ? tuple_info({value, tensor_of(out, ndim, i64, x.vdevice)}) : value;
}

/// Of n elements in ascending order the one at (n - 1) / 2, the lower of two in the middle, and where it stands. Where there is a
/// NaN, the first one, as in NumPy and PyTorch.
std::vector<Tensor> compute_median(const MedianAttrs& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  const std::vector<int64_t> reduced = sorted_axes(a.axis, x.rank());
  const std::vector<Expr> counts = only(x.shape(), reduced);
  std::vector<Expr> rows_shape = without(x.shape(), reduced);
  const size_t kept = rows_shape.size();
  Expr count = dim(1);
  for (const Expr& e : counts) count = count * e;
  rows_shape.push_back(count);
  const Tensor rows = te::compute({.name = "T_rows"}, rows_shape, [&](const Indices& i) {
    const Indices inside = unravel(i[kept], counts);
    Indices at;
    size_t next = 0, next_inside = 0;
    for (int64_t d = 0; d < x.rank(); ++d)
      at.push_back(std::ranges::find(reduced, d) == reduced.end() ? i[next++] : inside[next_inside++]);
    return x(at);
  });
  const Tensor rank = ranks(rows, kept, false);
  const auto place = median_place(rows);
  auto at_middle = [&](DType dtype, const char* name, auto&& what) {
    const std::vector<Expr> shape = a.keepdims ? [&] {
      std::vector<Expr> all = x.shape();
      for (const int64_t d : reduced) all[static_cast<size_t>(d)] = dim(1);
      return all;
    }()
                                               : without(x.shape(), reduced);
    tir::IterVarRef k = te::reduce_axis(count, "k");
    return te::reduce({.name = name}, shape, [&](const Indices& i) {
      Indices at = a.keepdims ? without(i, reduced) : i;
      const Expr middle = place(at);
      at.push_back(k->var);
      const Expr is_middle = eq(rank(at), middle);
      return te::reduce_sum(select(is_middle, what(at), constant(0, dtype)), {k});
    });
  };
  std::vector<Tensor> out = {at_middle(x.dtype(), "T_median", [&](const Indices& at) { return rows(at); })};
  if (a.has_position()) out.push_back(at_middle(i64, "T_median_index", [](const Indices& at) { return at.back(); }));
  return out;
}

// ---- unique ----

/// How many values there are is known at run time only, so no extents are inferred.
StructInfo infer_unique(const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  auto flag = [&](size_t i) {
    in.info(i);
    const PrimValue* p = in.arg(i).as<PrimValue>();
    auto v = p ? as_int(p->value) : std::nullopt;
    if (!v)
      in.fail({.what = text("argument ", i, " (", in.op().inputs[i].name, ") is not a constant"),
               .needs = "True or False",
               .hint = "write the constant"});
    return *v;
  };
  std::optional<int64_t> axis;
  if (in.size() == 6) {
    axis = flag(5);
    if (x.ndim >= 0) in.axis(*axis, x.ndim);
  }
  StructInfo count = tensor_info(i64, 1, x.vdevice);
  int ndim = x.ndim == 0 ? 1 : axis ? x.ndim : 1;
  StructInfo values = x.ndim == 0 ? tensor_info({dim(1)}, x.dtype, x.vdevice) : tensor_info(x.dtype, ndim, x.vdevice);
  std::vector<StructInfo> out{values};
  flag(1);
  for (size_t i = 2; i < 5; ++i) {
    if (flag(i)) out.push_back(x.ndim == 0 ? tensor_info({dim(1)}, i64, x.vdevice) : count);
  }
  return out.size() == 1 ? out[0] : tuple_info(out);
}
/// How many values there are is known after they were sorted: the runtime makes the tensors (runtime/unique.h).
RExpr legalize_unique(const RCallRef& call, BlockBuilder&) {
  const TensorInfo* x = call->args[0]->sinfo.as<TensorInfo>();
  if (x->dtype.is_void() || (x->dtype.is_float() && !x->dtype.is_ieee_float() && !x->dtype.is_bfloat())) return nullptr;
  std::vector<RExpr> args = {extern_func("vm.builtin.unique")};
  args.insert(args.end(), call->args.begin(), call->args.end());
  return relax::call(op_ref("call_pure_packed"), std::move(args), {}, {call->sinfo});
}
RExpr build_unique(const OpDef& op, BoundArgs args) {
  for (size_t i = 1; i < 5; ++i) {
    if (args.inputs[i].is_none()) args.inputs[i] = Value(i == 1);
  }
  return build_call(op, std::move(args));
}

// ---- nonzero ----

/// How many elements are not 0 is known at run time only.
StructInfo infer_nonzero(const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  if (x.ndim == 0)
    in.fail(
        {.what = "the elements of a tensor of rank 0 have no index", .needs = "rank 1 or more", .hint = "reshape it"});
  return tensor_info(i64, 2, x.vdevice);
}
/// The runtime makes the tensor (runtime/nonzero.h).
RExpr legalize_nonzero(const RCallRef& call, BlockBuilder&) {
  return relax::call(op_ref("call_pure_packed"), {extern_func("vm.builtin.nonzero"), call->args[0]}, {}, {call->sinfo});
}

// ---- bucketize ----

struct BucketizeAttrs {
  bool out_int32 = false;
  bool right = false;  ///< a value that is a boundary belongs to the bucket behind it
  static constexpr auto fields() {
    return std::tuple{attr("out_int32", &BucketizeAttrs::out_int32), attr("right", &BucketizeAttrs::right)};
  }
};
StructInfo infer_bucketize(const BucketizeAttrs& a, const CallInfo& in) {
  const TensorInfo &x = in.tensor(0), &boundaries = in.tensor(1);
  if (boundaries.ndim >= 0) in.need_rank(1, 1);
  for (const TensorInfo* t : {&x, &boundaries})
    if (t->dtype.is_bool()) in.fail({.what = "buckets of bools", .needs = "numbers", .hint = "cast with astype"});
  return with_dtype(x, a.out_int32 ? i32 : i64);
}
/// How many boundaries, which ascend, lie before the value; before a NaN all of them.
Tensor compute_bucketize(const BucketizeAttrs& a, const TeInputs& in) {
  const Tensor &x = in.tensor(0), &boundaries = in.tensor(1);
  tir::IterVarRef k = te::reduce_axis(boundaries.dim(0), "k");
  return te::reduce({.name = "T_bucketize"}, x.shape(), [&](const Indices& i) {
    const Expr value = x(i), boundary = boundaries({k->var});
    Expr is_before = a.right ? le(boundary, value) : lt(boundary, value);
    if (x.dtype().is_float()) is_before = logical_or(is_before, te::is_nan(value));
    return te::reduce_sum(cast_to(in.out_dtype(), is_before), {k});
  });
}

// ---- multinomial_from_uniform ----

struct MultinomialAttrs {
  DType dtype = i64;
  static constexpr auto fields() { return std::tuple{attr("dtype", &MultinomialAttrs::dtype)}; }
};

StructInfo infer_multinomial(const MultinomialAttrs& a, const CallInfo& in) {
  in.need_float(0);
  in.need_float(1);
  const TensorInfo &prob = in.tensor(0), &uniform = in.tensor(1), &rows = in.tensor(2);
  if (!rows.dtype.is_void() && !rows.dtype.is_integer())
    in.fail(
        {.what = text("sample_indices are ", rows.dtype), .needs = "an integer dtype", .hint = "cast them to int64"});
  for (size_t i = 0; i < 3; ++i) in.need_rank(i, 2);
  auto p = explicit_shape(prob), u = explicit_shape(uniform), r = explicit_shape(rows);
  if (!p || !u || !r) return tensor_info(a.dtype, prob.ndim, prob.vdevice);
  if (in.differ((*u)[0], (*r)[0]))
    in.fail({.what = "uniform_sample and sample_indices differ in length",
             .needs = "one row per sample",
             .hint = "give both the shape (n, 1)"});
  for (const auto* s : {&*u, &*r}) {
    if (in.differ((*s)[1], dim(1)))
      in.fail({.what = "uniform_sample or sample_indices has more than one column",
               .needs = "shape (n, 1)",
               .hint = "reshape it"});
  }
  return tensor_info({(*u)[0], dim(1)}, a.dtype, prob.vdevice);
}

/// The first class whose cumulated probability exceeds the sample; the last class where none does.
Tensor compute_multinomial(const MultinomialAttrs& a, const TeInputs& in) {
  const Tensor &prob = in.tensor(0), &uniform = in.tensor(1), &rows = in.tensor(2);
  // A running sum of each row, not of each sample's.
  auto running_sums = [&](const std::vector<BufferRef>& b) {
    return nest(prob.shape(), "i", [&](const Indices& i) {
      const Expr before = load(b[1], {i[0], i[1] - 1}), value = load(b[0], i);
      return tir::store(b[1], if_then_else(eq(i[1], dim(0)), value, before + value), i);
    });
  };
  const Tensor cumulated =
      te::extern_stage("T_cumulated", {prob}, {{prob.shape(), prob.dtype(), "cumulated"}}, running_sums)[0];
  tir::IterVarRef c = te::reduce_axis(prob.dim(1), "c");
  Tensor below = te::reduce({.name = "T_below"}, {uniform.dim(0), dim(1)}, [&](const Indices& i) {
    Expr reached = le(cumulated({rows({i[0], dim(0)}), c->var}), uniform({i[0], dim(0)}));
    return te::reduce_sum(cast_to(i64, reached), {c});
  });
  return te::compute({.name = "T_sample"}, {uniform.dim(0), dim(1)}, [&](const Indices& i) {
    return cast_to(a.dtype, min(below(i), prob.dim(1) - 1));
  });
}

}  // namespace

std::vector<OpDef> search_ops() {
  auto flag = [](const char* name) { return InputDef{name, InputKind::scalar, true}; };
  return {
      {.name = "where",
       .inputs = {{"condition"}, {"x1"}, {"x2"}},
       .infer = infer_where,
       .compute = with(compute_where)},
      {.name = "masked_fill",
       .inputs = {{"x"}, {"mask"}, {"value", InputKind::any}},
       .infer = infer_masked_fill,
       .compute = with(compute_masked_fill),
       .build = build_masked_fill,
       .scalar_constants = true},
      {.name = "sort",
       .inputs = {{"x"}},
       .attrs = attrs_of<SortAttrs>(),
       .infer = with(infer_sort),
       .compute = with(compute_sort)},
      {.name = "argsort",
       .inputs = {{"data"}},
       .attrs = attrs_of<ArgsortAttrs>(),
       .infer = with(infer_argsort),
       .compute = with(compute_argsort)},
      {.name = "topk",
       .inputs = {{"data"}},
       .attrs = attrs_of<TopKAttrs>(),
       .infer = with(infer_topk),
       .compute = with(compute_topk)},
      {.name = "median",
       .inputs = {{"x"}},
       .attrs = attrs_of<MedianAttrs>(),
       .infer = with(infer_median),
       .compute = with(compute_median)},
      {.name = "unique",
       .inputs =
           {{"x"}, flag("sorted"), flag("return_index"), flag("return_inverse"), flag("return_counts"), flag("axis")},
       .infer = infer_unique,
       .legalize = legalize_unique,
       .calls_library = true,
       .build = build_unique},
      {.name = "nonzero",
       .inputs = {{"x"}},
       .infer = infer_nonzero,
       .legalize = legalize_nonzero,
       .calls_library = true},
      {.name = "bucketize",
       .inputs = {{"input_tensor"}, {"boundaries"}},
       .attrs = attrs_of<BucketizeAttrs>(),
       .infer = with(infer_bucketize),
       .compute = with(compute_bucketize)},
      {.name = "multinomial_from_uniform",
       .inputs = {{"prob"}, {"uniform_sample"}, {"sample_indices"}},
       .attrs = attrs_of<MultinomialAttrs>(),
       .infer = with(infer_multinomial),
       .compute = with(compute_multinomial)},
  };
}

}  // namespace sator::relax
