// Element-wise ops of one tensor.
#include <algorithm>

#include "ir/literal.h"
#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

using te::Naming;
using te::Tensor;

StructInfo infer_number(const CallInfo& in) {
  if (in.tensor(0).dtype.is_bool())
    in.fail(
        {.what = text("the ", in.op().name, " of truth values"), .needs = "numbers", .hint = "cast x to int32 first"});
  return infer_same(in);
}
StructInfo infer_check(const CallInfo& in) { return with_dtype(in.tensor(0), boolean); }

/// A math builtin of the element.
ComputeFn builtin(const char* name) {
  return [name](const Attrs&, const TeInputs& in) {
    return std::vector{map(python_naming(), in.tensor(0), [&](const Expr& v) { return math(name, v); })};
  };
}
/// As builtin; integers are already round.
ComputeFn rounding(const char* name) {
  return [name](const Attrs&, const TeInputs& in) {
    return std::vector{
        map(python_naming(), in.tensor(0), [&](const Expr& v) { return v->dtype.is_float() ? math(name, v) : v; })};
  };
}

Tensor compute_abs(const TeInputs& in) {
  return map(python_naming(), in.tensor(0), [](const Expr& v) -> Expr {
    if (v->dtype.is_float()) return math("fabs", v);
    return v->dtype.is_uint() ? v : select(ge(v, constant(0, v->dtype)), v, -v);
  });
}
Tensor compute_negative(const TeInputs& in) {
  return map(python_naming(), in.tensor(0), [](const Expr& v) {
    return v->dtype.is_uint() ? constant(0, v->dtype) - v : v * constant(-1, v->dtype);
  });
}
Tensor compute_square(const TeInputs& in) { return multiply(in.tensor(0), in.tensor(0)); }
Tensor compute_sign(const TeInputs& in) {
  return map({.name = "T_sign"}, in.tensor(0), [](const Expr& v) {
    Expr zero = constant(0, v->dtype), one = constant(1, v->dtype);
    if (v->dtype.is_uint()) return select(gt(v, zero), one, zero);
    Expr sign = select(gt(v, zero), one, select(lt(v, zero), constant(-1, v->dtype), zero));
    return v->dtype.is_float() ? select(te::is_nan(v), v, sign) : sign;  // a NaN has none
  });
}
/// Errors: an input of floats.
StructInfo infer_bitwise_not(const CallInfo& in) {
  if (const DType dtype = in.tensor(0).dtype; dtype.is_float())
    in.fail({.what = text("an operand is ", dtype), .needs = "integers or bool", .hint = "cast it with astype"});
  return infer_same(in);
}
Tensor compute_bitwise_not(const TeInputs& in) {
  return map({.name = "T_bitwise_not"}, in.tensor(0), [](const Expr& v) { return math("bitwise_not", v); });
}
Tensor compute_logical_not(const TeInputs& in) {
  return map({.name = "T_logical_not"}, in.tensor(0), [](const Expr& v) { return logical_not(cast_to(boolean, v)); });
}
/// erf has no half-precision form: those are computed in float32.
Tensor compute_erf(const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  auto erf = [](const Tensor& t) { return map(python_naming(), t, [](const Expr& v) { return math("erf", v); }); };
  return x.dtype() == f16 ? cast(erf(cast(x, f32)), f16) : erf(x);
}
/// Errors: a bound that is no number.
StructInfo infer_clip(const CallInfo& in) {
  for (size_t i = 1; i < 3; ++i) {
    const PrimInfo* bound = in.info(i).as<PrimInfo>();
    if (!bound || bound->dtype.is_handle() || bound->dtype.is_void())
      in.fail({.what = text(i == 1 ? "min" : "max", " is not a number"),
               .needs = "a number, or R.prim_value(...)",
               .hint = "bounds that are tensors: R.minimum and R.maximum"});
  }
  return infer_same(in);
}
/// A bound in x's dtype; of integers the nearest that it has.
Expr bound_in(DType dtype, const Expr& bound) {
  const auto value = as_int(bound);
  if (!value || !dtype.is_integer() || dtype.bits > 32) return promoted(dtype, bound);
  return int_imm(std::clamp(*value, min_int(dtype), max_int(dtype)), dtype);
}
/// max(min(x, upper), lower), the bounds in x's dtype.
Tensor compute_clip(const TeInputs& in) {
  DType dtype = in.tensor(0).dtype();
  return map(python_naming(), in.tensor(0), [&](const Expr& v) {
    return sator::max(sator::min(v, bound_in(dtype, in.scalar(2))), bound_in(dtype, in.scalar(1)));
  });
}
Tensor compute_isnan(const TeInputs& in) {
  return map({.name = "T_isnan"}, in.tensor(0), [](const Expr& v) {
    return v->dtype.is_float() ? te::is_nan(v) : bool_imm(false);
  });
}
Expr is_infinite(const Expr& v) {
  if (!v->dtype.is_float()) return bool_imm(false);
  Expr infinity = float_imm(std::numeric_limits<double>::infinity(), v->dtype);
  return make<EQ>(math("fabs", v), infinity);
}
Tensor compute_isinf(const TeInputs& in) {
  return map({.name = "T_isinf"}, in.tensor(0), [](const Expr& v) { return is_infinite(v); });
}
Tensor compute_isfinite(const TeInputs& in) {
  return map({.name = "T_isfinite"}, in.tensor(0), [](const Expr& v) {
    if (!v->dtype.is_float()) return bool_imm(true);
    return logical_and(logical_not(is_infinite(v)), logical_not(te::is_nan(v)));
  });
}

OpDef unary(std::string name, InferFn infer, ComputeFn compute) {
  std::string func = "tir_" + name;
  return {.name = std::move(name),
          .inputs = {{"x"}},
          .infer = std::move(infer),
          .compute = std::move(compute),
          .func = std::move(func)};
}

}  // namespace

std::vector<OpDef> unary_ops() {
  std::vector<OpDef> ops;
  for (const char* name : {"acos",
                           "acosh",
                           "asin",
                           "asinh",
                           "atan",
                           "atanh",
                           "cos",
                           "cosh",
                           "exp",
                           "log",
                           "rsqrt",
                           "sigmoid",
                           "sin",
                           "sinh",
                           "sqrt",
                           "tan",
                           "tanh"})
    ops.push_back(unary(name, infer_same_float, builtin(name)));
  for (const char* name : {"ceil", "floor"}) ops.push_back(unary(name, infer_same, rounding(name)));
  ops.push_back(unary("round", infer_same, rounding("nearbyint")));  // halves to even, as NumPy
  ops.push_back(unary("abs", infer_same, with(compute_abs)));
  ops.push_back(unary("negative", infer_number, with(compute_negative)));
  ops.push_back(unary("square", infer_same, with(compute_square)));
  ops.push_back(unary("sign", infer_number, with(compute_sign)));
  ops.push_back(unary("bitwise_not", infer_bitwise_not, with(compute_bitwise_not)));
  ops.push_back(unary("logical_not", infer_check, with(compute_logical_not)));
  ops.push_back(unary("isfinite", infer_check, with(compute_isfinite)));
  ops.push_back(unary("isinf", infer_check, with(compute_isinf)));
  ops.push_back(unary("isnan", infer_check, with(compute_isnan)));
  ops.push_back({.name = "erf", .inputs = {{"x"}}, .infer = infer_same_float, .compute = with(compute_erf)});
  ops.push_back({.name = "clip",
                 .inputs = {{"x"}, {"min", InputKind::scalar}, {"max", InputKind::scalar}},
                 .infer = infer_clip,
                 .compute = with(compute_clip),
                 .func = "tir_clip"});
  return ops;
}

}  // namespace sator::relax
