#include "arith/fold.h"

#include "arith/numbers.h"

namespace sator::arith {

std::optional<int64_t> fold_value(Kind kind, int64_t a, int64_t b) {
  switch (kind) {
    case Kind::add: return checked_add(a, b);
    case Kind::sub: return checked_sub(a, b);
    case Kind::mul: return checked_mul(a, b);
    case Kind::div:
      if (b == 0) return {};
      return b == -1 ? checked_sub(0, a) : a / b;
    case Kind::mod:
      if (b == 0) return {};
      return b == -1 ? 0 : a % b;
    case Kind::floordiv:
      if (b == 0) return {};
      return b == -1 ? checked_sub(0, a) : floor_div(a, b);
    case Kind::floormod:
      if (b == 0) return {};
      return b == -1 ? 0 : floor_mod(a, b);
    case Kind::min: return std::min(a, b);
    case Kind::max: return std::max(a, b);
    case Kind::eq: return a == b;
    case Kind::ne: return a != b;
    case Kind::lt: return a < b;
    case Kind::le: return a <= b;
    case Kind::gt: return a > b;
    case Kind::ge: return a >= b;
    case Kind::logical_and: return a && b;
    case Kind::logical_or: return a || b;
    default: return {};
  }
}

namespace {

/// Floats fold as ir/ folds them; a result that is still an operation is none.
Expr fold_floats(Kind kind, const Expr& a, const Expr& b) {
  const FloatImm *x = a.as<FloatImm>(), *y = b.as<FloatImm>();
  if (!x && !y) return nullptr;
  if ((kind == Kind::div || kind == Kind::floordiv) && y && y->value == 0) return nullptr;
  Expr e;
  switch (kind) {
    case Kind::add: e = a + b; break;
    case Kind::sub: e = a - b; break;
    case Kind::mul: e = a * b; break;
    case Kind::div: e = div(a, b); break;
    case Kind::min: e = min(a, b); break;
    case Kind::max: e = max(a, b); break;
    case Kind::eq: e = eq(a, b); break;
    case Kind::ne: e = ne(a, b); break;
    case Kind::lt: e = lt(a, b); break;
    case Kind::le: e = le(a, b); break;
    case Kind::gt: e = gt(a, b); break;
    case Kind::ge: e = ge(a, b); break;
    default: return nullptr;
  }
  return kind_of(e) == kind ? nullptr : e;
}

}  // namespace

Expr try_fold(Kind kind, const Expr& a, const Expr& b) {
  const IntImm *x = a.as<IntImm>(), *y = b.as<IntImm>();
  if (x && y) {
    // uint64 values beyond int64 are stored negative: they are left alone.
    if (a->dtype.is_uint() && (x->value < 0 || y->value < 0)) return nullptr;
    std::optional<int64_t> v = fold_value(kind, x->value, y->value);
    DType dtype = is_arithmetic(kind) ? a->dtype : DType::Bool();
    if (!v || !fits(*v, dtype)) return nullptr;
    return int_imm(*v, dtype);
  }
  switch (kind) {
    case Kind::add:
      if (x && x->value == 0) return b;
      if (y && y->value == 0) return a;
      break;
    case Kind::sub:
      if (y && y->value == 0) return a;
      break;
    case Kind::mul:
      if (x && x->value == 1) return b;
      if (x && x->value == 0) return a;
      if (y && y->value == 1) return a;
      if (y && y->value == 0) return b;
      break;
    case Kind::div:
    case Kind::floordiv:
      if (x && x->value == 0) return a;
      if (y && y->value == 1) return a;
      break;
    case Kind::mod:
    case Kind::floormod:
      if (x && x->value == 0) return a;
      if (y && y->value == 1) return int_imm(0, a->dtype);
      break;
    case Kind::min:
    case Kind::max:
      if (a == b) return a;
      break;
    case Kind::logical_and:
      if (x) return x->value ? b : a;
      if (y) return y->value ? a : b;
      break;
    case Kind::logical_or:
      if (x) return x->value ? a : b;
      if (y) return y->value ? b : a;
      break;
    default: break;
  }
  return a->dtype.is_float() && a->dtype.lanes == 1 ? fold_floats(kind, a, b) : nullptr;
}

Expr fold(Kind kind, Expr a, Expr b) {
  if (a->dtype != b->dtype)
    internal_error(text(a, " of dtype ", a->dtype, " meets ", b, " of dtype ", b->dtype, " in one operation"));
  if (Expr e = try_fold(kind, a, b)) return e;
  return make_binary(kind, std::move(a), std::move(b));
}

Expr fold_not(Expr a) {
  if (const IntImm* i = a.as<IntImm>()) return bool_imm(!i->value);
  return make<Not>(std::move(a));
}

Expr kept_divisor(Kind kind, const Expr& given, Expr simplified) {
  const bool divides = kind == Kind::div || kind == Kind::mod || kind == Kind::floordiv || kind == Kind::floormod;
  auto is_nothing = [](const Expr& e) {
    const Broadcast* b = e.as<Broadcast>();
    return e->dtype.is_integer() && is_zero(b ? b->value : e);
  };
  return divides && is_nothing(simplified) && !is_nothing(given) ? given : std::move(simplified);
}

Expr int_constant(int64_t value, DType dtype) {
  Expr e = int_imm(value, dtype.element());
  return dtype.lanes == 1 ? e : make<Broadcast>(std::move(e), dtype.all_lanes());
}

}  // namespace sator::arith
