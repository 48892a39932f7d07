// Element-wise ops of two tensors (or a tensor and a scalar) with numpy's broadcasting, and of three.
#include <algorithm>

#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

/// What broadcasting needs to know of an operand: a scalar counts as a tensor of shape (1,).
struct Operand {
  const TensorInfo* tensor = nullptr;
  DType dtype;
  int ndim = 1;
  std::optional<std::vector<Expr>> shape = std::vector<Expr>{dim(1)};
};

Operand operand(const CallInfo& in, size_t i) {
  if (const PrimInfo* p = in.info(i).as<PrimInfo>()) return {nullptr, p->dtype};
  const TensorInfo& t = in.tensor(i);
  return {&t, t.dtype, t.ndim, shape_of(t)};
}

std::string common_vdevice(const CallInfo& in, const Operand& a, const Operand& b) {
  const std::string x = a.tensor ? a.tensor->vdevice : "", y = b.tensor ? b.tensor->vdevice : "";
  if (!x.empty() && !y.empty() && x != y)
    in.fail({.what = text("the operands are on ", x, " and ", y),
             .needs = "operands on one device",
             .hint = "move one of them with to_vdevice"});
  return x.empty() ? y : x;
}

StructInfo infer_broadcast(const CallInfo& in, DType dtype) {
  Operand a = operand(in, 0), b = operand(in, 1);
  if (!a.tensor && !b.tensor) return prim_info(dtype);
  std::string vdevice = common_vdevice(in, a, b);
  if (a.shape && b.shape) {
    if (auto shape = in.broadcast(*a.shape, *b.shape)) return tensor_info(*shape, dtype, vdevice);
  }
  if (a.tensor && b.tensor && a.tensor->shape && a.tensor->shape == b.tensor->shape)
    return tensor_info(a.tensor->shape, dtype, vdevice);
  int ndim = a.ndim < 0 || b.ndim < 0 ? -1 : std::max(a.ndim, b.ndim);
  return tensor_info(dtype, ndim, vdevice);
}

StructInfo infer_arithmetic(const CallInfo& in) {
  DType a = operand(in, 0).dtype, b = operand(in, 1).dtype;
  if (!a.is_void() && !b.is_void() && a != b)
    in.fail({.what = text("the operands are ", a, " and ", b),
             .needs = "equal dtypes",
             .hint = "cast one of them with astype"});
  return infer_broadcast(in, a.is_void() || b.is_void() ? DType::Void() : a);
}
StructInfo infer_of_floats(const CallInfo& in) {
  for (const DType dtype : {operand(in, 0).dtype, operand(in, 1).dtype})
    if (!dtype.is_void() && !dtype.is_float())
      in.fail({.what = text("an operand is ", dtype), .needs = "floats", .hint = "cast it with astype"});
  return infer_arithmetic(in);
}
StructInfo infer_of_integers(const CallInfo& in) {
  for (const DType dtype : {operand(in, 0).dtype, operand(in, 1).dtype})
    if (!dtype.is_void() && !dtype.is_integer())
      in.fail({.what = text("an operand is ", dtype), .needs = "integers", .hint = "cast it with astype"});
  return infer_arithmetic(in);
}
/// Integers or truth values.
StructInfo infer_of_bits(const CallInfo& in) {
  for (const DType dtype : {operand(in, 0).dtype, operand(in, 1).dtype})
    if (dtype.is_float())
      in.fail({.what = text("an operand is ", dtype), .needs = "integers or bool", .hint = "cast it with astype"});
  return infer_arithmetic(in);
}
StructInfo infer_logical(const CallInfo& in) {
  infer_arithmetic(in);
  return infer_broadcast(in, boolean);
}
StructInfo infer_comparison(const CallInfo& in) { return infer_broadcast(in, boolean); }

TensorOrScalar input(const TeInputs& in, size_t i) {
  return in.is_tensor(i) ? TensorOrScalar(in.tensor(i)) : TensorOrScalar(in.scalar(i));
}

using BinaryFn = Expr (*)(Expr, Expr);
/// Of two scalars whose values are known the value of the result is known.
StructInfo with_value(const CallInfo& in, StructInfo info, BinaryFn f) {
  const PrimInfo *a = in.info(0).as<PrimInfo>(), *b = in.info(1).as<PrimInfo>();
  return a && b && a->value && b->value ? prim_info(f(a->value, b->value)) : info;
}

OpDef binary(std::string name, InferFn infer, BinaryFn f) {
  std::string stage = "T_" + name;
  return {.name = std::move(name),
          .inputs = {{"x1", InputKind::any}, {"x2", InputKind::any}},
          .infer = [infer = std::move(infer), f](const CallInfo& in) { return with_value(in, infer(in), f); },
          .compute =
              [stage, f](const Attrs&, const TeInputs& in) {
                return std::vector{
                    zip(stage, input(in, 0), input(in, 1), [&](const Expr& a, const Expr& b) { return f(a, b); })};
              },
          .scalar_constants = true};
}

Expr divide_values(Expr a, Expr b) { return div(std::move(a), std::move(b)); }
/// Floats are divided and rounded down; the quotient of narrow ones is not rounded before.
Expr floor_divide_values(Expr a, Expr b) {
  const DType dtype = a->dtype;
  if (!dtype.is_float()) return floordiv(std::move(a), std::move(b));
  if (dtype.bits > 16) return math("floor", div(a, b));
  return cast_to(dtype, math("floor", div(cast_to(f32, a), cast_to(f32, b))));
}
/// What is left when the quotient is rounded towards 0: its sign is that of a.
Expr mod_values(Expr a, Expr b) {
  return a->dtype.is_float() ? math("fmod", a, b) : truncmod(std::move(a), std::move(b));
}
/// What is left when the quotient is rounded down: its sign is that of b, also of nothing.
Expr floor_mod_values(Expr a, Expr b) {
  if (!a->dtype.is_float()) return floormod(std::move(a), std::move(b));
  const Expr rest = math("fmod", a, b), zero = constant(0, a->dtype);
  const Expr other_sign = make<NE>(lt(rest, zero), lt(b, zero));
  return select(eq(rest, zero), math("copysign", zero, b), select(other_sign, rest + b, rest));
}
Expr power_values(Expr a, Expr b) { return math("pow", a, b); }
Expr logical(Expr a, Expr b, Expr (*f)(Expr, Expr)) { return f(cast_to(boolean, a), cast_to(boolean, b)); }
Expr xor_values(Expr a, Expr b) { return math("bitwise_xor", a, b); }
Expr xor_truths(Expr a, Expr b) { return xor_values(std::move(a), std::move(b)); }

StructInfo infer_fma(const CallInfo& in) {
  DType dtype = in.common_dtype({0, 1, 2});
  const TensorInfo &a = in.tensor(0), &b = in.tensor(1), &c = in.tensor(2);
  int ndim = -1;
  std::string vdevice;
  for (const TensorInfo* t : {&a, &b, &c}) {
    if (vdevice.empty()) vdevice = t->vdevice;
    if (t->ndim < 0) continue;
    if (ndim >= 0 && ndim != t->ndim)
      in.fail({.what = text("the inputs have ranks ", ndim, " and ", t->ndim),
               .needs = "equal ranks",
               .hint = "ewise_fma does not broadcast: use broadcast_to first"});
    ndim = t->ndim;
  }
  auto x = shape_of(a), y = shape_of(b), z = shape_of(c);
  if (x && y && z) {
    for (size_t i = 0; i < x->size(); ++i) {
      const Expr extents[] = {(*x)[i], (*y)[i], (*z)[i]};
      for (const Expr& e : extents) {
        if (in.differ(e, extents[0]))
          in.fail({.what = text("extents ", extents[0], " and ", e, " at dimension ", i, " do not broadcast"),
                   .needs = "equal shapes",
                   .hint = "reshape or broadcast one of them"});
        if (!in.same(e, extents[0])) return tensor_info(dtype, ndim, vdevice);
      }
    }
    return tensor_info(*x, dtype, vdevice);
  }
  if (a.shape && a.shape == b.shape && b.shape == c.shape) return tensor_info(a.shape, dtype, vdevice);
  return tensor_info(dtype, ndim, vdevice);
}

te::Tensor compute_fma(const TeInputs& in) { return add(multiply(in.tensor(0), in.tensor(1)), in.tensor(2)); }

}  // namespace

std::vector<OpDef> binary_ops() {
  std::vector<OpDef> ops;
  auto arithmetic = [&](const char* name, BinaryFn f) { ops.push_back(binary(name, infer_arithmetic, f)); };
  arithmetic("add", [](Expr a, Expr b) {
    need_numbers(a->dtype, "sum");
    return a + b;
  });
  arithmetic("subtract", [](Expr a, Expr b) {
    need_numbers(a->dtype, "difference");
    return a - b;
  });
  arithmetic("multiply", [](Expr a, Expr b) { return a * b; });
  arithmetic("divide", divide_values);
  arithmetic("floor_divide", floor_divide_values);
  arithmetic("mod", mod_values);
  arithmetic("floor_mod", floor_mod_values);
  arithmetic("power", power_values);
  arithmetic("minimum", [](Expr a, Expr b) { return sator::min(a, b); });
  arithmetic("maximum", [](Expr a, Expr b) { return sator::max(a, b); });
  // Numbers count as true where they are not 0; the result is bool.
  auto of_truths = [&](const char* name, BinaryFn f) { ops.push_back(binary(name, infer_logical, f)); };
  of_truths("logical_and", [](Expr a, Expr b) { return logical(a, b, logical_and); });
  of_truths("logical_or", [](Expr a, Expr b) { return logical(a, b, logical_or); });
  of_truths("logical_xor", [](Expr a, Expr b) { return logical(a, b, xor_truths); });
  // Errors: operands that are no integers (nor bool, of bitwise operators); of the angle, no floats.
  auto of_bits = [&](const char* name, BinaryFn f) { ops.push_back(binary(name, infer_of_bits, f)); };
  of_bits("bitwise_and", [](Expr a, Expr b) { return math("bitwise_and", a, b); });
  of_bits("bitwise_or", [](Expr a, Expr b) { return math("bitwise_or", a, b); });
  of_bits("bitwise_xor", xor_values);
  ops.push_back(binary(
      "left_shift", infer_of_integers, [](Expr a, Expr b) { return is_zero(b) ? a : math("shift_left", a, b); }));
  ops.push_back(binary(
      "right_shift", infer_of_integers, [](Expr a, Expr b) { return is_zero(b) ? a : math("shift_right", a, b); }));
  ops.push_back(binary("atan2", infer_of_floats, [](Expr a, Expr b) { return math("atan2", a, b); }));
  auto comparison = [&](const char* name, BinaryFn f) { ops.push_back(binary(name, infer_comparison, f)); };
  comparison("equal", eq);
  comparison("not_equal", ne);
  comparison("less", lt);
  comparison("less_equal", le);
  comparison("greater", gt);
  comparison("greater_equal", ge);
  ops.push_back(
      {.name = "ewise_fma", .inputs = {{"x1"}, {"x2"}, {"x3"}}, .infer = infer_fma, .compute = with(compute_fma)});
  return ops;
}

}  // namespace sator::relax
