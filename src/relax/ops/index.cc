// Ops that pick elements: take, strided slices.
#include <algorithm>

#include "relax/builder.h"
#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

using te::Indices;
using te::Tensor;

// ---- take ----

struct TakeAttrs {
  std::optional<int64_t> axis;  ///< nothing: x has rank 1
  static constexpr auto fields() { return std::tuple{attr("axis", &TakeAttrs::axis)}; }
};

StructInfo infer_take(const TakeAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  DType dtype;
  int indices_rank = 0;
  std::optional<std::vector<Expr>> indices_shape = std::vector<Expr>{};
  if (const PrimInfo* scalar = in.info(1).as<PrimInfo>()) {
    dtype = scalar->dtype;
  } else {
    const TensorInfo& t = in.tensor(1);
    dtype = t.dtype;
    indices_rank = t.ndim;
    indices_shape = explicit_shape(t);
  }
  if (!dtype.is_void() && !dtype.is_integer())
    in.fail({.what = text("the indices are ", dtype), .needs = "an integer dtype", .hint = "cast them to int64"});
  if (!a.axis && x.ndim != 1)
    in.fail({.what = "no axis for a tensor whose rank is not 1", .needs = "an axis", .hint = "pass axis="});
  if (x.ndim < 0 || indices_rank < 0) return tensor_info(x.dtype, -1, x.vdevice);
  int axis = in.axis(a.axis.value_or(0), x.ndim);
  auto shape = explicit_shape(x);
  if (!shape || !indices_shape) return tensor_info(x.dtype, indices_rank + x.ndim - 1, x.vdevice);
  std::vector<Expr> out(shape->begin(), shape->begin() + axis);
  out.insert(out.end(), indices_shape->begin(), indices_shape->end());
  out.insert(out.end(), shape->begin() + axis + 1, shape->end());
  return tensor_info(std::move(out), x.dtype, x.vdevice);
}

/// An index outside of x is an error of the program; it is not clamped.
Tensor compute_take(const TakeAttrs& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  int64_t axis = a.axis.value_or(0);
  if (axis < 0) axis += x.rank();
  bool one = !in.is_tensor(1);
  size_t picked = one ? 0 : static_cast<size_t>(in.tensor(1).rank()), front = static_cast<size_t>(axis);
  return gather({.name = "T_take"}, x, in.out_shape(), [&](const Indices& i) {
    Indices where(i.begin() + static_cast<long>(front), i.begin() + static_cast<long>(front + picked));
    Indices at(i.begin(), i.begin() + static_cast<long>(front));
    at.push_back(one ? in.scalar(1) : in.tensor(1)(where));
    at.insert(at.end(), i.begin() + static_cast<long>(front + picked), i.end());
    return at;
  });
}

// ---- strided_slice ----

struct StridedSliceAttrs {
  bool assume_inbound = false;  ///< begin and end are known to lie inside
  static constexpr auto fields() { return std::tuple{attr("assume_inbound", &StridedSliceAttrs::assume_inbound)}; }
};

/// No tensor has that many elements: so far out an index means the end, and no sum with it overflows.
constexpr int64_t kFarOut = int64_t{1} << 62;

/// An index of Python's kind as a position in [-1 or 0, extent - 1 or extent].
Expr canonical_index(Expr index, const Expr& extent, const Expr& stride) {
  Expr backwards = lt(stride, dim(0));
  if (const auto known = as_int(index)) index = dim(std::clamp(*known, -kFarOut, kFarOut));
  Expr from_front = if_then_else(lt(index, dim(0)), index + extent, index);
  Expr lower = if_then_else(backwards, dim(-1), dim(0)), upper = if_then_else(backwards, extent - 1, extent);
  return min(max(from_front, lower), upper);
}

/// Whether the end comes before the begin for no extent: one of them is the first or last position there is, or both are
/// constants, counted from the same side, in order.
bool is_ordered(const Expr& begin, const Expr& end, const Expr& stride) {
  const auto from = as_int(begin), to = as_int(end), step = as_int(stride);
  if (!step) return false;
  const bool forwards = *step > 0;
  if (from && *from == (forwards ? 0 : -1)) return true;
  if (to && (forwards ? *to >= kFarOut : *to <= -kFarOut)) return true;
  return from && to && (*from < 0) == (*to < 0) && (forwards ? *from <= *to : *from >= *to);
}

Expr slice_length(Expr begin, Expr end, Expr stride, const Expr& extent, bool assume_inbound) {
  // So wide a stride passes over every tensor, and what rounds a length up by it does not overflow.
  if (const auto known = as_int(stride)) stride = dim(std::clamp(*known, -kFarOut / 2, kFarOut / 2));
  if (assume_inbound) return ceildiv(end - begin, stride);
  const bool ordered = is_ordered(begin, end, stride);
  begin = canonical_index(begin, extent, stride);
  end = canonical_index(end, extent, stride);
  Expr length = arith::Analyzer().simplify(
      if_then_else(lt(stride, dim(0)), ceildiv(begin - end, dim(0) - stride), ceildiv(end - begin, stride)));
  if (as_int(length)) return *as_int(length) < 0 ? dim(0) : length;  // an end before the begin: nothing
  // Of a stride whose sign is not known TVM gives the length as it is.
  return ordered || !as_int(stride) ? length : max(length, dim(0));
}

/// The scalars of a tuple; nothing if one is unknown. Errors: something that is not an int64 scalar.
std::optional<std::vector<Expr>> scalars_of(const CallInfo& in, size_t i) {
  const StructInfo& info = in.info(i);
  if (info.as<ObjectInfo>()) return {};
  const TupleInfo* tuple = info.as<TupleInfo>();
  std::vector<Expr> out;
  for (const StructInfo& item : tuple ? tuple->items : std::vector<StructInfo>{nullptr}) {
    if (item.as<ObjectInfo>()) return {};
    const PrimInfo* p = item.as<PrimInfo>();
    if (!p || p->dtype != i64)
      in.fail({.what = text("argument ", i, " (", in.op().inputs[i].name, ") is not a tuple of int64 scalars"),
               .needs = "a tuple of int64 scalars",
               .hint = "write a list of integers"});
    out.push_back(p->value);
  }
  for (const Expr& e : out) {
    if (!e) return {};
  }
  return out;
}

StructInfo infer_strided_slice(const StridedSliceAttrs& a, const CallInfo& in) {
  if (in.info(0).as<ObjectInfo>()) return tensor_info(DType::Void());
  const TensorInfo& x = in.tensor(0);
  auto axes = scalars_of(in, 1), begin = scalars_of(in, 2), end = scalars_of(in, 3);
  auto strides = in.size() > 4 ? scalars_of(in, 4) : std::optional(std::vector<Expr>(axes ? axes->size() : 0, dim(1)));
  StructInfo unknown = tensor_info(x.dtype, x.ndim, x.vdevice);
  if (!axes || !begin || !end || !strides) return unknown;
  if (begin->size() != axes->size() || end->size() != axes->size() || strides->size() != axes->size())
    in.fail(
        {.what = text(
             axes->size(), " axes, ", begin->size(), " begins, ", end->size(), " ends, ", strides->size(), " strides"),
         .needs = "as many begins, ends and strides as axes",
         .hint = "give each axis its own"});
  Axes numbers;
  for (const Expr& e : *axes) {
    if (!as_int(e)) return unknown;
    numbers.push_back(*as_int(e));
  }
  if (x.ndim >= 0) in.axes(numbers, x.ndim);
  if (axes->empty() && x.shape && !shape_of(x)) return tensor_info(x.shape, x.dtype, x.vdevice);
  auto shape = shape_of(x);
  if (!shape) return unknown;
  std::vector<int> at = in.axes(numbers, x.ndim);
  for (const Expr& e : *strides) {
    if (is_zero(e)) in.fail({.what = "a stride of 0", .needs = "strides that are not 0", .hint = "use 1"});
  }
  for (size_t i = 0; i < at.size(); ++i) {
    Expr& extent = (*shape)[static_cast<size_t>(at[i])];
    Expr length = slice_length((*begin)[i], (*end)[i], (*strides)[i], extent, a.assume_inbound);
    if (a.assume_inbound) {
      if (as_int((*strides)[i]).value_or(0) > 0 && in.exceeds((*end)[i], extent))
        in.fail({.what = text("the slice of axis ", at[i], " ends at ", (*end)[i], ", the tensor at ", extent),
                 .needs = "bounds inside of the tensor, as assume_inbound says",
                 .hint = "leave assume_inbound out: bounds are clamped then"});
      Expr inside = logical_and(logical_and(le(dim(0), (*begin)[i]), le((*begin)[i], extent)),
                                logical_and(le(dim(0), (*end)[i]), le((*end)[i], extent)));
      auto scope = in.arith().with_constraint(inside);
      extent = in.arith().simplify(length);
    } else {
      extent = in.arith().simplify(length);
    }
  }
  return tensor_info(*shape, x.dtype, x.vdevice);
}

/// Bounds are clamped as Python does, unless they are said to lie inside.
Tensor compute_strided_slice(const StridedSliceAttrs& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  auto constants = [](const std::vector<Expr>& v) {
    return std::ranges::all_of(v, [](const Expr& e) { return as_int(e).has_value(); });
  };
  const std::vector<Expr>&axes = in.shape(1), &begin = in.shape(2), &end = in.shape(3);
  std::vector<Expr> strides = in.has(4) ? in.shape(4) : std::vector<Expr>(axes.size(), dim(1)), begins = begin;
  bool fixed = constants(begin) && constants(end) && constants(strides);
  for (const Expr& axis : axes) fixed = fixed && as_int(x.dim(*as_int(axis)));
  std::vector<Expr> shape = x.shape();
  std::vector<size_t> at;
  arith::Analyzer arith;
  for (const Expr& extent : x.shape()) {
    for (const VarRef& v : vars_in(extent)) arith.assume_size(v);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = *as_int(axes[i]);
    at.push_back(static_cast<size_t>(axis < 0 ? axis + x.rank() : axis));
    Expr& extent = shape[at[i]];
    if (!a.assume_inbound) begins[i] = arith.simplify(canonical_index(begin[i], extent, strides[i]));
    extent = arith.simplify(slice_length(begin[i], end[i], strides[i], extent, a.assume_inbound));
  }
  std::string name = constants(x.shape()) && fixed ? "T_strided_slice_with_axes" : "T_dynamic_strided_slice_with_axes";
  return gather({.name = std::move(name)}, x, shape, [&](const Indices& i) {
    Indices out = i;
    for (size_t k = 0; k < at.size(); ++k) out[at[k]] = i[at[k]] * strides[k] + begins[k];
    return out;
  });
}

// ---- dynamic_strided_slice: begin, end and strides are tensors ----

StructInfo infer_dynamic_strided_slice(const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  if (x.ndim < 0) return tensor_info(x.dtype, -1, x.vdevice);
  for (size_t i = 1; i < 4; ++i) {
    const TensorInfo& t = in.tensor(i);
    auto shape = explicit_shape(t);
    if (t.ndim != 1 || !shape || !as_int((*shape)[0]) || *as_int((*shape)[0]) != x.ndim)
      in.fail({.what = text("argument ", i, " (", in.op().inputs[i].name, ") is not one number per axis"),
               .needs = text("a tensor of shape (", x.ndim, ",)"),
               .hint = "give begin, end and strides for every axis"});
    if (!t.dtype.is_void() && t.dtype != i64)
      in.fail({.what = text("argument ", i, " is ", t.dtype), .needs = "int64", .hint = "cast it to int64"});
  }
  return tensor_info(x.dtype, x.ndim, x.vdevice);
}

/// Inputs: x, begin, end, strides, and the shape of the result.
Tensor compute_dynamic_strided_slice(const Tensor& x, const Tensor& begin, const Tensor& strides,
                                     const std::vector<Expr>& shape) {
  return gather({.name = "T_strided_slice_dynamic"}, x, shape, [&](const Indices& i) {
    Indices at;
    for (size_t d = 0; d < i.size(); ++d) {
      Indices k{dim(static_cast<int64_t>(d))};
      at.push_back(min(begin(k), x.shape()[d] - 1) + i[d] * strides(k));
    }
    return at;
  });
}

/// The extents of the result as a tensor.
Tensor compute_slice_shape(const Tensor& x, const Tensor& begin, const Tensor& end, const Tensor& strides) {
  return te::compute(
      {.name = "T_shape_func_strided_slice_dynamic", .axes = {"i"}}, {begin.dim(0)}, [&](const Indices& i) {
        Expr extent = dim(-1), stride = strides(i);
        for (size_t d = 0; d < x.shape().size(); ++d)
          extent = select(eq(i[0], dim(static_cast<int64_t>(d))), x.shape()[d], extent);
        auto position = [&](const Expr& index, int64_t least, const Expr& most) {
          return min(max(select(lt(index, dim(0)), index + extent, index), dim(least)), most);
        };
        const Expr from = begin(i), to = end(i), last = extent - 1;
        Expr backwards = floordiv(position(from, -1, last) - position(to, -1, last) - stride - 1, stride * -1);
        Expr forwards = floordiv(position(to, 0, extent) + stride - position(from, 0, extent) - 1, stride);
        return select(lt(stride, dim(0)), backwards, forwards);
      });
}

/// Two functions: the first computes the result's extents, which become symbolic sizes; the second slices.
RExpr legalize_dynamic_strided_slice(const RCallRef& call, BlockBuilder& b) {
  RExpr extents = b.emit(b.call_te(
      "shape_func",
      call->args,
      [](const TeInputs& in) {
        return std::vector{compute_slice_shape(in.tensor(0), in.tensor(1), in.tensor(2), in.tensor(3))};
      },
      nullptr,
      false,
      true));
  int rank = call->sinfo.as<TensorInfo>()->ndim;
  RExpr shape = b.emit(relax::call(
      op_ref("call_pure_packed"), {extern_func("vm.builtin.tensor_to_shape"), extents}, {}, {shape_info(rank)}));
  std::vector<Expr> sizes;
  for (int i = 0; i < rank; ++i) sizes.push_back(make_var("s", i64));
  b.emit_match_cast(shape, shape_info(sizes));
  std::vector<RExpr> args = call->args;
  args.push_back(shape_expr(sizes));
  return b.call_te(
      "dynamic_strided_slice",
      args,
      [](const TeInputs& in) {
        return std::vector{compute_dynamic_strided_slice(in.tensor(0), in.tensor(1), in.tensor(3), in.shape(4))};
      },
      nullptr,
      false,
      true);
}

}  // namespace

std::vector<OpDef> index_ops() {
  auto scalars = InputKind::scalars;
  return {
      {.name = "take",
       .inputs = {{"x"}, {"indices", InputKind::any}},
       .attrs = attrs_of<TakeAttrs>(),
       .infer = with(infer_take),
       .compute = with(compute_take)},
      {.name = "strided_slice",
       .inputs = {{"x"}, {"axes", scalars}, {"begin", scalars}, {"end", scalars}, {"strides", scalars, true}},
       .attrs = attrs_of<StridedSliceAttrs>(),
       .infer = with(infer_strided_slice),
       .compute = with(compute_strided_slice)},
      {.name = "dynamic_strided_slice",
       .inputs = {{"x"}, {"begin"}, {"end"}, {"strides"}},
       .infer = infer_dynamic_strided_slice,
       .legalize = legalize_dynamic_strided_slice},
  };
}

}  // namespace sator::relax
