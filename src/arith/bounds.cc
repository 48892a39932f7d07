#include "arith/bounds.h"

#include <algorithm>
#include <cmath>

#include "arith/kind.h"

namespace sator::arith {
namespace {

Bounds hull(Bounds a, Bounds b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }
Bounds meet(Bounds a, Bounds b) { return {std::max(a.min, b.min), std::min(a.max, b.max)}; }

/// Bounds of op(x, y) where op is monotonic in each argument: they lie at the corners.
template <class Op>
Bounds corners(Bounds a, Bounds b, Op op) {
  int64_t v[] = {op(a.min, b.min), op(a.max, b.max), op(a.min, b.max), op(a.max, b.min)};
  return {*std::min_element(v, v + 4), *std::max_element(v, v + 4)};
}

/// A valid program divides by no zero: a divisor known to be >= 0 is >= 1.
Bounds nonzero(Bounds b) {
  if (b.min == 0 && b.max >= 1) b.min = 1;
  return b;
}

template <class Op>
Bounds quotient(Bounds a, Bounds b, Op op) {
  b = nonzero(b);
  if (b.min == 0 && b.max == 0) return {};
  if (b.min > 0 || b.max < 0) return corners(a, b, op);
  // The divisor may have either sign: the extremes lie next to zero.
  Bounds out{kPosInf, kNegInf};
  if (b.min < 0) out = hull(out, corners(a, {b.min, -1}, op));
  if (b.max > 0) out = hull(out, corners(a, {1, b.max}, op));
  return out;
}

Bounds truncated_remainder(Bounds a, Bounds b, DType dtype) {
  b = nonzero(b);
  if (b.min <= 0) return bounds_of(dtype);
  int64_t cap = inf_add(b.max, -1);
  if (a.min >= 0) return a.max < b.min ? a : Bounds{0, std::min(a.max, cap)};
  return {std::max(a.min, inf_neg(cap)), std::min(std::max<int64_t>(a.max, 0), cap)};
}

Bounds floored_remainder(Bounds a, Bounds b, DType dtype) {
  b = nonzero(b);
  if (b.min > 0) {
    int64_t cap = inf_add(b.max, -1);
    if (a.min >= 0) return a.max < b.min ? a : Bounds{0, std::min(a.max, cap)};
    return {0, cap};
  }
  // Between 0 and the divisor, on the divisor's side.
  return meet({std::min<int64_t>(0, inf_add(b.min, 1)), std::max<int64_t>(0, inf_add(b.max, -1))}, bounds_of(dtype));
}

Bounds binary(Kind kind, Bounds a, Bounds b, DType dtype) {
  switch (kind) {
    case Kind::add: return {inf_add(a.min, b.min), inf_add(a.max, b.max)};
    case Kind::sub: return {inf_add(a.min, inf_neg(b.max)), inf_add(a.max, inf_neg(b.min))};
    case Kind::mul: return corners(a, b, inf_mul);
    case Kind::div: return quotient(a, b, inf_div);
    case Kind::floordiv: return quotient(a, b, inf_floordiv);
    case Kind::mod: return truncated_remainder(a, b, dtype);
    case Kind::floormod: return floored_remainder(a, b, dtype);
    case Kind::min: return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case Kind::max: return {std::max(a.min, b.min), std::max(a.max, b.max)};
    default: return bounds_of(dtype);
  }
}

int64_t shifted_left(int64_t x, int64_t by) {
  if (is_inf(x) || x == 0) return x;
  return by >= 63 ? kPosInf : saturate(static_cast<__int128>(x) << by);
}
int64_t shifted_right(int64_t x, int64_t by) { return is_inf(x) ? x : x >> std::clamp<int64_t>(by, 0, 63); }

/// The n of int(ceil(log2(n))), the form in which loop counts of tree reductions appear.
const Expr* ceil_log2_argument(const Cast& c) {
  if (!c.dtype.is_int()) return nullptr;
  const Call* ceil = c.value.as<Call>();
  if (!ceil || ceil->op != "tir.ceil") return nullptr;
  const Call* log2 = ceil->args.at(0).as<Call>();
  return log2 && log2->op == "tir.log2" ? &log2->args.at(0) : nullptr;
}

int64_t ceil_log2(int64_t v) {
  if (v <= 1) return 0;
  if (v == kPosInf) return 64;
  int64_t bits = 0;
  while (bits < 63 && (int64_t{1} << bits) < v) ++bits;
  return bits;
}

}  // namespace

Bounds bounds_of(DType dtype) {
  if (dtype.is_bool()) return {0, 1};
  if (!dtype.is_integer()) return {};
  int bits = dtype.bits - (dtype.is_int() ? 1 : 0);
  if (bits >= 63) return {dtype.is_uint() ? 0 : kNegInf, kPosInf};
  int64_t limit = int64_t{1} << bits;
  return {dtype.is_uint() ? 0 : -limit, limit - 1};
}

void BoundsAnalysis::bind(const VarRef& var, const Range& range) {
  Bounds min = (*this)(range.min), extent = (*this)(range.extent);
  vars_[var] = {min.min, inf_add(min.max, inf_add(extent.max, -1))};
}

Bounds BoundsAnalysis::operator()(const Expr& e) {
  Bounds b = of(*e);
  for (const Assumed& a : assumed_)
    if (same(a.expr, e)) b = meet(b, a.bounds);
  // No value lies at infinity: sums would take a lower limit there for one that nothing lowers.
  return {std::min(b.min, kPosInf - 1), std::max(b.max, kNegInf + 1)};
}

Bounds BoundsAnalysis::of(const ExprNode& e) {
  Kind kind = kind_of(e);
  if (is_binary(kind)) {
    if (!is_arithmetic(kind) || e.dtype.is_float()) return bounds_of(e.dtype);
    Operands o = operands(e, kind);
    Bounds a = (*this)(o.a);
    return binary(kind, a, (*this)(o.b), e.dtype);
  }
  switch (kind) {
    case Kind::int_imm: {
      int64_t v = static_cast<const IntImm&>(e).value;
      return e.dtype.is_uint() && v < 0 ? Bounds{0, kPosInf} : Bounds{std::max(v, kNegInf), v};
    }
    case Kind::var: {
      const auto& v = static_cast<const Var&>(e);
      if (auto at = vars_.find(VarRef(&v)); at != vars_.end()) return at->second;
      return v.is_size ? Bounds{0, kPosInf} : bounds_of(e.dtype);
    }
    case Kind::select: {
      const auto& n = static_cast<const Select&>(e);
      Bounds a = (*this)(n.true_value);
      return hull(a, (*this)(n.false_value));
    }
    case Kind::ramp: {
      const auto& n = static_cast<const Ramp&>(e);
      Bounds base = (*this)(n.base), stride = (*this)(n.stride);
      Bounds span = corners(stride, {0, n.lanes.scalable ? kPosInf : n.lanes.count - 1}, inf_mul);
      return {inf_add(base.min, span.min), inf_add(base.max, span.max)};
    }
    case Kind::broadcast: return (*this)(static_cast<const Broadcast&>(e).value);
    case Kind::cast: return of_cast(static_cast<const Cast&>(e));
    case Kind::call: return of_call(static_cast<const Call&>(e));
    case Kind::let: {
      const auto& n = static_cast<const Let&>(e);
      if (vars_.count(n.var)) return (*this)(n.body);
      vars_[n.var] = (*this)(n.value);
      Bounds b = (*this)(n.body);
      vars_.erase(n.var);
      return b;
    }
    default: return bounds_of(e.dtype);
  }
}

Bounds BoundsAnalysis::of_cast(const Cast& c) {
  if (const Expr* n = ceil_log2_argument(c)) {
    if (const FloatImm* f = n->as<FloatImm>()) {
      int64_t v = f->value > 0 ? static_cast<int64_t>(std::ceil(std::log2(f->value))) : 0;
      return meet({v, v}, bounds_of(c.dtype));
    }
    Bounds b = (*this)(*n);
    return meet({ceil_log2(b.min), ceil_log2(b.max)}, bounds_of(c.dtype));
  }
  if (c.value->dtype.is_handle()) return bounds_of(c.dtype);
  // What is cast is a value of its own dtype, whatever bounds leave open, as those of a size do.
  const Bounds value = meet((*this)(c.value), bounds_of(c.value->dtype)), all = bounds_of(c.dtype);
  if (value.min >= all.min && value.max <= all.max) return value;
  // Signed indices are taken to fit; what is read from memory and unsigned numbers wrap.
  return c.value->dtype.is_uint() || !is_pure(c.value) ? all : meet(value, all);
}

Bounds BoundsAnalysis::of_call(const Call& c) {
  if (c.args.size() == 2) {
    Bounds a = (*this)(c.args[0]), b = (*this)(c.args[1]);
    if (c.op == "tir.shift_right" && b.min >= 0) return corners(a, b, shifted_right);
    if (c.op == "tir.shift_left" && a.min >= 0 && b.min >= 0) return corners(a, b, shifted_left);
    if (c.op == "tir.bitwise_and") {
      if (a.min >= 0 && b.min >= 0) return {0, std::min(a.max, b.max)};
      if (b.min >= 0) return {0, b.max};
      if (a.min >= 0) return {0, a.max};
    }
  }
  if (c.op == "tir.vscale") return {1, kPosInf};  // a machine that has such vectors holds at least one unit
  if (c.op == "tir.likely" && c.args.size() == 1) return (*this)(c.args[0]);
  if (c.op == "tir.if_then_else" && c.args.size() == 3) {
    Bounds a = (*this)(c.args[1]);
    return hull(a, (*this)(c.args[2]));
  }
  return bounds_of(c.dtype);
}

void BoundsAnalysis::assume(const Expr& condition) {
  auto note = [&](const Expr& e, int64_t min, int64_t max) {
    if (!e.as<IntImm>()) assumed_.push_back({e, {min, max}});
  };
  for (const Expr& part : conjuncts(condition)) {
    Kind kind = kind_of(part);
    if (!is_compare(kind)) continue;
    Operands o = operands(*part, kind);
    const IntImm *ca = o.a.as<IntImm>(), *cb = o.b.as<IntImm>();
    if (!ca == !cb) continue;
    const Expr& e = ca ? o.b : o.a;
    int64_t c = ca ? ca->value : cb->value;
    bool constant_left = ca != nullptr;
    switch (kind) {
      case Kind::eq: note(e, c, c); break;
      case Kind::le: constant_left ? note(e, c, kPosInf) : note(e, kNegInf, c); break;
      case Kind::ge: constant_left ? note(e, kNegInf, c) : note(e, c, kPosInf); break;
      case Kind::lt: constant_left ? note(e, inf_add(c, 1), kPosInf) : note(e, kNegInf, inf_add(c, -1)); break;
      case Kind::gt: constant_left ? note(e, kNegInf, inf_add(c, -1)) : note(e, inf_add(c, 1), kPosInf); break;
      default: break;
    }
  }
}

}  // namespace sator::arith
