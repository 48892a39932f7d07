// quantize and dequantize, as in ONNX.
#include <algorithm>

#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

using te::Indices;
using te::Tensor;

template <bool kQuantize>
struct QdqAttrs {
  int axis = -1;  ///< the axis along which scale and zero_point lie
  DType out_dtype = kQuantize ? i8 : f32;
  static constexpr auto fields() {
    return std::tuple{attr("axis", &QdqAttrs::axis), attr("out_dtype", &QdqAttrs::out_dtype)};
  }
};

void need_dtype(const CallInfo& in, std::string what, DType d, std::initializer_list<DType> allowed) {
  if (std::ranges::find(allowed, d) == allowed.end())
    in.fail({.what = text(what, " is ", d),
             .needs = text("one of ", join(std::vector<DType>(allowed), ", ")),
             .hint = "cast it with astype"});
}

template <bool kQuantize>
StructInfo infer_qdq(const QdqAttrs<kQuantize>& a, const CallInfo& in) {
  const TensorInfo &x = in.tensor(0), &scale = in.tensor(1), &zero = in.tensor(2);
  if (kQuantize) {
    need_dtype(in, "out_dtype", a.out_dtype, {i8, u8, i16, u16});
    need_dtype(in, "data", x.dtype, {f16, f32});
    need_dtype(in, "zero_point", zero.dtype, {i8, f16});
  } else {
    need_dtype(in, "out_dtype", a.out_dtype, {f16, f32});
    need_dtype(in, "data", x.dtype, {i8, u8, i16, u16, i32, f16, f32});
    need_dtype(in, "zero_point", zero.dtype, {i8, u8, i16, u16, i32, f16, f32});
  }
  need_dtype(in, "scale", scale.dtype, {f16, f32});
  int axis = in.axis(a.axis, std::max(x.ndim, 0));
  auto shape = shape_of(x);
  for (size_t i : {1, 2}) {
    const TensorInfo& t = in.tensor(i);
    auto own = shape_of(t);
    if (t.ndim == 0) continue;
    if (!shape || !own || own->size() != 1 || !in.same((*own)[0], (*shape)[static_cast<size_t>(axis)]))
      in.fail({.what = text(in.op().inputs[i].name, " does not have one element per position of axis ", axis),
               .needs = "a scalar, or a vector of that extent",
               .hint = "check axis"});
  }
  return with_dtype(x, a.out_dtype);
}

/// The scale or zero point that belongs to element i.
Expr parameter(const TeInputs& in, size_t input, const Indices& i, int axis) {
  if (!in.is_tensor(input)) return in.scalar(input);
  const Tensor& t = in.tensor(input);
  if (t.rank() == 0) return t({});
  return t({i[static_cast<size_t>(axis < 0 ? axis + static_cast<int>(i.size()) : axis)]});
}

Expr clipped(const Expr& v, DType dtype) {
  auto bound = [&](const Expr& limit) { return cast_to(v->dtype, limit); };
  return cast_to(dtype, max(min(v, bound(te::max_value(dtype))), bound(te::min_value(dtype))));
}

/// clip(round(x / scale) + zero_point).
Tensor compute_quantize(const QdqAttrs<true>& a, const TeInputs& in) {
  return te::compute(python_naming("quantized"), in.tensor(0).shape(), [&](const Indices& i) {
    Expr scaled = div(in.tensor(0)(i), parameter(in, 1, i, a.axis));
    Expr rounded = a.out_dtype.is_integer() ? math("round", scaled) : scaled;
    return clipped(rounded + parameter(in, 2, i, a.axis), a.out_dtype);
  });
}

/// (x - zero_point) * scale, the difference in int32 for integers.
Tensor compute_dequantize(const QdqAttrs<false>& a, const TeInputs& in) {
  DType wide = in.tensor(0).dtype().is_float() ? f32 : i32;
  return te::compute(python_naming("dequantized"), in.tensor(0).shape(), [&](const Indices& i) {
    Expr value =
        (cast_to(wide, in.tensor(0)(i)) - parameter(in, 2, i, a.axis)) * cast_to(f32, parameter(in, 1, i, a.axis));
    return a.out_dtype == f32 ? value : clipped(value, a.out_dtype);
  });
}

}  // namespace

std::vector<OpDef> quantize_ops() {
  std::vector<InputDef> inputs{{"data"}, {"scale"}, {"zero_point"}};
  return {
      {.name = "quantize",
       .inputs = inputs,
       .attrs = attrs_of<QdqAttrs<true>>(),
       .infer = with(infer_qdq<true>),
       .compute = with(compute_quantize),
       .scalar_constants = true},
      {.name = "dequantize",
       .inputs = inputs,
       .attrs = attrs_of<QdqAttrs<false>>(),
       .infer = with(infer_qdq<false>),
       .compute = with(compute_dequantize),
       .scalar_constants = true},
  };
}

}  // namespace sator::relax
