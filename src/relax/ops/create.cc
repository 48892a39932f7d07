// Ops that make tensors from shapes and scalars, and astype.
#include <cmath>

#include "ir/literal.h"
#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

using te::Tensor;

/// dtype: of the result; void takes the fill value's (full) or the input's (full_like, ...).
struct InitAttrs {
  DType dtype;
  static constexpr auto fields() { return std::tuple{attr("dtype", &InitAttrs::dtype)}; }
};

/// The dtype of a fill value: a tensor of rank 0, or R.prim_value(n).
DType scalar_dtype(const CallInfo& in, size_t i) {
  if (const PrimInfo* p = in.arg(i)->sinfo.as<PrimInfo>()) return p->dtype;
  if (in.tensor(i).ndim != 0)
    in.fail(
        {.what = "the fill value is not a tensor of rank 0", .needs = "a scalar", .hint = "use R.const(value, dtype)"});
  return in.tensor(i).dtype;
}

/// Errors: an extent that is below 0.
void need_extents(const CallInfo& in) {
  const ShapeInfo& shape = in.shape(0);
  for (size_t d = 0; shape.values && d < shape.values->size(); ++d) {
    if (auto n = as_int((*shape.values)[d]); n && *n < 0)
      in.fail({.what = text("dimension ", d, " of the shape is ", *n),
               .needs = "extents of 0 or more",
               .hint = "only reshape tells one extent, -1, from the others"});
  }
}

StructInfo infer_full(const InitAttrs& a, const CallInfo& in) {
  need_extents(in);
  const DType dtype = scalar_dtype(in, 1);
  const TensorInfo* value = in.arg(1)->sinfo.as<TensorInfo>();
  return tensor_info(in.arg(0), a.dtype.is_void() ? dtype : a.dtype, value ? value->vdevice : "");
}
StructInfo infer_filled(const InitAttrs& a, const CallInfo& in) {
  need_extents(in);
  return tensor_info(in.arg(0), a.dtype);
}
StructInfo infer_like(const InitAttrs& a, const CallInfo& in) { return with_dtype(in.tensor(0), a.dtype); }
StructInfo infer_full_like(const InitAttrs& a, const CallInfo& in) {
  scalar_dtype(in, 1);
  return with_dtype(in.tensor(0), a.dtype);
}

/// A Python number as the fill value becomes a constant, of full_like in float64 where the input is.
RExpr build_full(const OpDef& op, BoundArgs args) {
  Value& value = args.inputs[1];
  DType dtype = AttrType<DType>::load(args.attrs.at("dtype"));
  if (value.as<int64_t>() || value.as<bool>() || value.as<double>()) {
    if (dtype.is_void()) dtype = value.as<double>() ? dtype_beside(args.inputs[0]) : value.as<bool>() ? boolean : i32;
    value = scalar_constant(*to_double(value), dtype);
  }
  return build_call(op, std::move(args));
}
RExpr build_filled(const OpDef& op, BoundArgs args) {
  if (AttrType<DType>::load(args.attrs.at("dtype")).is_void())
    fail({.what = text(op.name, " without a dtype"), .needs = "a dtype", .hint = "pass dtype=\"float32\""});
  return build_call(op, std::move(args));
}

/// The fill value: a scalar of the PrimFunc, or the one element of a tensor.
Tensor filled(std::vector<Expr> shape, DType dtype, const TeInputs& in, size_t value) {
  if (!in.is_tensor(value)) return full(std::move(shape), promoted(dtype, in.scalar(value)));
  return te::compute(
      {.name = "T_full"}, std::move(shape), [&](const te::Indices&) { return cast_to(dtype, in.tensor(value)({})); });
}
Tensor compute_full(const TeInputs& in) { return filled(in.out_shape(), in.out_dtype(), in, 1); }
template <int V>
Tensor compute_filled(const TeInputs& in) {
  return full(in.out_shape(), constant(V, in.out_dtype()));
}

struct ArangeParts {
  Expr start, end, step;
  bool is_integer() const { return start->dtype.is_integer() && end->dtype.is_integer() && step->dtype.is_integer(); }
  Expr count() const {
    if (is_integer()) {
      bool down = as_int(step) && *as_int(step) < 0;
      Expr n = down ? floordiv(start - end - step - 1, dim(0) - step) : floordiv(end - start + step - 1, step);
      return as_int(n) && *as_int(n) < 0 ? dim(0) : n;
    }
    Expr steps = div(cast_to(f32, end - start), cast_to(f32, step));
    if (const FloatImm* f = steps.as<FloatImm>())
      return dim(std::max<int64_t>(static_cast<int64_t>(std::ceil(f->value)), 0));
    return cast_to(i64, math("ceil", steps));
  }
};

StructInfo infer_arange(const InitAttrs& a, const CallInfo& in) {
  ArangeParts p;
  Expr* parts[] = {&p.start, &p.end, &p.step};
  for (size_t i = 0; i < 3; ++i) {
    in.info(i);
    const PrimValue* v = in.arg(i).as<PrimValue>();
    if (!v)
      in.fail({.what = text("argument ", i, " is not a scalar expression"),
               .needs = "R.prim_value(...)",
               .hint = "give a number or a symbolic size"});
    *parts[i] = v->value;
  }
  const FloatImm* real_step = p.step.as<FloatImm>();
  if (is_zero(p.step) || (real_step && real_step->value == 0))
    in.fail({.what = "a step of 0", .needs = "a step that is not 0", .hint = "use full for equal elements"});
  return tensor_info({in.arith().simplify(p.count())}, a.dtype);
}

/// arange(end), arange(start, end), arange(start, end, step): the dtype is int64 for integers, else float32.
RExpr build_arange(const OpDef& op, BoundArgs args) {
  if (args.inputs[1].is_none()) {
    args.inputs[1] = args.inputs[0];
    args.inputs[0] = Value(0);
  }
  if (args.inputs[2].is_none()) args.inputs[2] = Value(1);
  if (AttrType<DType>::load(args.attrs.at("dtype")).is_void()) {
    bool integer = true;
    for (const Value& v : args.inputs) {
      Expr e = to_prim(v);
      integer = integer && e && e->dtype.is_integer();
    }
    args.attrs["dtype"] = AttrType<DType>::store(integer ? i64 : f32);
  }
  return build_call(op, std::move(args));
}

Tensor compute_arange(const TeInputs& in) {
  const DType dtype = in.out_dtype();
  // A wider result has constants as they were written.
  auto part = [&](const Expr& e) {
    return e.as<FloatImm>() && dtype.is_float() && dtype.bits > e->dtype.bits ? promoted(dtype, e) : e;
  };
  const Expr start = part(in.scalar(0)), step = part(in.scalar(2));
  return te::compute(
      {.name = "T_arange"}, in.out_shape(), [&](const te::Indices& i) { return cast_to(dtype, start + step * i[0]); });
}

StructInfo infer_triangle(const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  if (!in.info(1).as<PrimInfo>())
    in.fail({.what = "k is not a scalar", .needs = "an integer", .hint = "give the diagonal's offset as an integer"});
  if (x.ndim >= 0 && x.ndim < 2)
    in.fail({.what = text("x has rank ", x.ndim), .needs = "rank >= 2", .hint = "expand_dims first"});
  return ref(x);
}
RExpr build_triangle(const OpDef& op, BoundArgs args) {
  if (args.inputs[1].is_none()) args.inputs[1] = Value(0);
  return build_call(op, std::move(args));
}
/// Elements above (below) the k-th diagonal become 0.
template <bool kUpper>
Tensor compute_triangle(const TeInputs& in) {
  return triangle(in.tensor(0), in.scalar(1), kUpper);
}

// ---- eye, eye_like, hamming_window ----

/// The value of a scalar argument that is written out.
Expr written_scalar(const CallInfo& in, size_t i) {
  in.info(i);
  const PrimValue* v = in.arg(i).as<PrimValue>();
  if (!v)
    in.fail({.what = text("argument ", i, " (", in.op().inputs[i].name, ") is not a scalar expression"),
             .needs = "R.prim_value(...)",
             .hint = "give a number or a symbolic size"});
  return v->value;
}

StructInfo infer_eye(const InitAttrs& a, const CallInfo& in) {
  const Expr rows = written_scalar(in, 0), columns = written_scalar(in, 1);
  written_scalar(in, 2);
  for (const Expr& e : {rows, columns})
    if (!e->dtype.is_integer() || (as_int(e) && *as_int(e) < 0))
      in.fail({.what = text(e, " rows or columns"), .needs = "integers from 0 on", .hint = "check n and m"});
  return tensor_info({cast_to(i64, rows), cast_to(i64, columns)}, a.dtype);
}
/// eye(n), eye(n, m), eye(n, m, k): the dtype is float32 unless said.
RExpr build_eye(const OpDef& op, BoundArgs args) {
  if (args.inputs[1].is_none()) args.inputs[1] = args.inputs[0];
  if (args.inputs[2].is_none()) args.inputs[2] = Value(0);
  if (AttrType<DType>::load(args.attrs.at("dtype")).is_void()) args.attrs["dtype"] = AttrType<DType>::store(f32);
  return build_call(op, std::move(args));
}
StructInfo infer_eye_like(const InitAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  written_scalar(in, 1);
  if (x.ndim >= 0) in.need_rank(0, 2);
  return with_dtype(x, a.dtype);
}
/// 1 where column - row is k, else 0.
template <size_t kDiagonal>
Tensor compute_eye(const TeInputs& in) {
  const Expr k = cast_to(i64, in.scalar(kDiagonal));
  return te::compute({.name = "T_eye"}, in.out_shape(), [&](const te::Indices& i) {
    return cast_to(in.out_dtype(), eq(i[1] - i[0], k));
  });
}

StructInfo infer_hamming_window(const InitAttrs& a, const CallInfo& in) {
  const Expr size = written_scalar(in, 0);
  for (size_t i = 1; i < 4; ++i) written_scalar(in, i);
  if (!size->dtype.is_integer() || (as_int(size) && *as_int(size) < 1))
    in.fail(
        {.what = text("a window of ", size, " elements"), .needs = "an integer from 1 on", .hint = "check the size"});
  if (!as_int(written_scalar(in, 1)))
    in.fail({.what = "periodic is no constant", .needs = "True or False", .hint = "write the constant"});
  if (!a.dtype.is_void() && !a.dtype.is_float())
    in.fail({.what = text("a window of ", a.dtype), .needs = "a floating dtype", .hint = "cast it with astype"});
  return tensor_info({cast_to(i64, size)}, a.dtype.is_void() ? f32 : a.dtype);
}
RExpr build_hamming_window(const OpDef& op, BoundArgs args) {
  const double standard[] = {0, 1, 0.54, 0.46};
  for (size_t i = 1; i < 4; ++i) {
    if (args.inputs[i].is_none()) args.inputs[i] = i == 1 ? Value(true) : Value(standard[i]);
    if (i > 1) args.inputs[i] = Value(float_imm(*to_double(args.inputs[i]), f64));
  }
  return build_call(op, std::move(args));
}
/// alpha - beta * cos(2 pi n / (N - 1)); a periodic window is one of N + 1 elements without its last.
/// Source: Harris, "On the Use of Windows for Harmonic Analysis with the Discrete Fourier Transform", 1978.
Tensor compute_hamming_window(const TeInputs& in) {
  const Expr size = cast_to(i64, in.scalar(0));
  const bool periodic = !is_zero(in.scalar(1));
  const Expr steps = cast_to(f64, periodic ? size : max(size - 1, dim(1)));
  return te::compute({.name = "T_hamming_window"}, in.out_shape(), [&](const te::Indices& i) {
    const Expr angle = div(constant(2 * M_PI, f64) * cast_to(f64, i[0]), steps);
    const Expr value = cast_to(f64, in.scalar(2)) - cast_to(f64, in.scalar(3)) * math("cos", angle);
    // A window of one element is 1.
    return cast_to(in.out_dtype(), select(eq(size, dim(1)), constant(1, f64), value));
  });
}

struct AstypeAttrs {
  DType dtype;
  static constexpr auto fields() { return std::tuple{required("dtype", &AstypeAttrs::dtype)}; }
};
StructInfo infer_astype(const AstypeAttrs& a, const CallInfo& in) { return with_dtype(in.tensor(0), a.dtype); }
Tensor compute_astype(const AstypeAttrs& a, const TeInputs& in) {
  if (!in.is_tensor(0)) return full({}, cast_to(a.dtype, in.scalar(0)));
  return map(python_naming(), in.tensor(0), [&](const Expr& v) { return cast_to(a.dtype, v); });
}

struct WrapParamAttrs {
  DType dtype = f32;
  static constexpr auto fields() { return std::tuple{attr("dtype", &WrapParamAttrs::dtype)}; }
};
StructInfo infer_wrap_param(const WrapParamAttrs& a, const CallInfo& in) { return with_dtype(in.tensor(0), a.dtype); }
Tensor compute_wrap_param(const WrapParamAttrs& a, const TeInputs& in) { return cast(in.tensor(0), a.dtype); }

}  // namespace

Tensor triangle(const Tensor& x, const Expr& k, bool upper) {
  return te::compute(python_naming("trilu"), x.shape(), [&](const te::Indices& i) {
    const Expr &row = i[i.size() - 2], &column = i[i.size() - 1];
    Expr kept = upper ? le(row, column - k) : ge(row, column - k);
    return select(kept, x(i), constant(0, x.dtype()));
  });
}

std::vector<OpDef> create_ops() {
  auto attrs = attrs_of<InitAttrs>();
  InputDef shape{"shape", InputKind::shape}, value{"fill_value", InputKind::any};
  InputDef k{"k", InputKind::scalar, true};
  return {
      {.name = "full",
       .inputs = {shape, value},
       .attrs = attrs,
       .infer = with(infer_full),
       .compute = with(compute_full),
       .build = build_full,
       .scalar_constants = true},
      {.name = "full_like",
       .inputs = {{"x"}, value},
       .attrs = attrs,
       .infer = with(infer_full_like),
       .compute = with(compute_full),
       .build = build_full,
       .func = "full",
       .scalar_constants = true},
      {.name = "ones",
       .inputs = {shape},
       .attrs = attrs,
       .infer = with(infer_filled),
       .compute = with(compute_filled<1>),
       .build = build_filled},
      {.name = "ones_like",
       .inputs = {{"x"}},
       .attrs = attrs,
       .infer = with(infer_like),
       .compute = with(compute_filled<1>),
       .func = "ones"},
      {.name = "zeros",
       .inputs = {shape},
       .attrs = attrs,
       .infer = with(infer_filled),
       .compute = with(compute_filled<0>),
       .build = build_filled},
      {.name = "zeros_like",
       .inputs = {{"x"}},
       .attrs = attrs,
       .infer = with(infer_like),
       .compute = with(compute_filled<0>),
       .func = "zeros"},
      {.name = "arange",
       .inputs = {{"start", InputKind::scalar}, {"end", InputKind::scalar, true}, {"step", InputKind::scalar, true}},
       .attrs = attrs,
       .infer = with(infer_arange),
       .compute = with(compute_arange),
       .build = build_arange},
      {.name = "tril",
       .inputs = {{"x"}, k},
       .infer = infer_triangle,
       .compute = with(compute_triangle<false>),
       .build = build_triangle},
      {.name = "triu",
       .inputs = {{"x"}, k},
       .infer = infer_triangle,
       .compute = with(compute_triangle<true>),
       .build = build_triangle},
      {.name = "eye",
       .inputs = {{"n", InputKind::scalar}, {"m", InputKind::scalar, true}, k},
       .attrs = attrs,
       .infer = with(infer_eye),
       .compute = with(compute_eye<2>),
       .build = build_eye},
      {.name = "eye_like",
       .inputs = {{"x"}, k},
       .attrs = attrs,
       .infer = with(infer_eye_like),
       .compute = with(compute_eye<1>),
       .build = build_triangle},
      {.name = "hamming_window",
       .inputs = {{"window_size", InputKind::scalar},
                  {"periodic", InputKind::scalar, true},
                  {"alpha", InputKind::scalar, true},
                  {"beta", InputKind::scalar, true}},
       .attrs = attrs,
       .infer = with(infer_hamming_window),
       .compute = with(compute_hamming_window),
       .build = build_hamming_window},
      {.name = "astype",
       .inputs = {{"x"}},
       .attrs = attrs_of<AstypeAttrs>(),
       .infer = with(infer_astype),
       .compute = with(compute_astype),
       .func = "cast",
       .scalar_constants = true},
      {.name = "wrap_param",
       .inputs = {{"data"}},
       .attrs = attrs_of<WrapParamAttrs>(),
       .infer = with(infer_wrap_param),
       .compute = with(compute_wrap_param)},
  };
}

}  // namespace sator::relax
