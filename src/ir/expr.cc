#include "ir/expr.h"

#include <cmath>

#include "base/float16.h"
#include "base/float8.h"
#include "ir/float_to_int.h"
#include "ir/literal.h"

namespace sator {

BufferRef make_buffer(std::string name, std::vector<Expr> shape, DType dtype, std::string scope) {
  VarRef data = make_pointer(name, dtype, std::move(scope));
  return make<Buffer>(
      data, dtype, std::move(shape), std::vector<Expr>{}, Expr(), std::move(name), 64, 1, std::vector<int>{});
}

Expr int_imm(int64_t value, DType dtype) { return make<IntImm>(dtype, value); }
Expr float_imm(double value, DType dtype) { return make<FloatImm>(dtype, value); }
Expr constant(double value, DType dtype) {
  DType element = dtype.element();
  Expr e = element.is_float() ? float_imm(value, element) : int_imm(static_cast<int64_t>(value), element);
  return dtype.lanes == 1 ? e : make<Broadcast>(e, dtype.all_lanes());
}
VarRef make_var(std::string name, DType dtype) {
  return make<Var>(std::move(name), dtype, DType::Void(), std::string(), false);
}
VarRef make_size_var(std::string name, DType dtype) {
  return make<Var>(std::move(name), dtype, DType::Void(), std::string(), true);
}
VarRef make_pointer(std::string name, DType pointee, std::string scope) {
  return make<Var>(std::move(name), DType::Handle(), pointee, std::move(scope), false);
}

std::optional<int64_t> as_int(const Expr& e) {
  if (const IntImm* i = e.as<IntImm>()) return i->value;
  return {};
}
bool is_int(const Expr& e, int64_t value) {
  const IntImm* i = e.as<IntImm>();
  return i && i->value == value;
}

void match_dtypes(Expr& a, Expr& b, const char* what) {
  if (a->dtype == b->dtype) return;
  DType x = a->dtype, y = b->dtype;
  if (x.all_lanes() != y.all_lanes()) {
    if (x.lanes == 1)
      a = make<Broadcast>(a, y.all_lanes());
    else if (y.lanes == 1)
      b = make<Broadcast>(b, x.all_lanes());
    else
      fail({.what = text(what, " of ", x, " and ", y),
            .needs = "operands with the same number of lanes",
            .hint = "broadcast the scalar side, or split the wider one"});
    x = a->dtype;
    y = b->dtype;
    if (x == y) return;
  }
  bool ia = x.is_integer() || x.is_bool(), ib = y.is_integer() || y.is_bool();
  if (x.is_handle() || y.is_handle())
    fail({.what = text(what, " of ", x, " and ", y), .needs = "numbers", .hint = "load from the buffer first"});
  if (x.is_float() && ib) {
    b = cast_to(x, b);
  } else if (ia && y.is_float()) {
    a = cast_to(y, a);
  } else if (x.is_float() && y.is_float()) {
    if (x.bits < y.bits)
      a = promoted(y, a);
    else
      b = promoted(x, b);
  } else if (x.is_bool()) {
    a = cast_to(y, a);
  } else if (y.is_bool()) {
    b = cast_to(x, b);
  } else if (x.is_int() == y.is_int()) {
    if (x.bits < y.bits)
      a = cast_to(y, a);
    else
      b = cast_to(x, b);
  } else {  // mixed signs: the wider one, unsigned where they are equal, as in C and TVM
    DType wide = x.bits > y.bits ? x : y.bits > x.bits ? y : (x.is_uint() ? x : y);
    a = cast_to(wide, a);
    b = cast_to(wide, b);
  }
}

namespace {

/// Wraps to the dtype as machine arithmetic does.
int64_t wrapped(int64_t v, DType d) {
  if (d.is_bool()) return v != 0;
  if (d.bits >= 64) return v;
  uint64_t mask = (uint64_t{1} << d.bits) - 1, u = static_cast<uint64_t>(v) & mask;
  if (d.is_int() && (u >> (d.bits - 1))) u |= ~mask;
  return static_cast<int64_t>(u);
}

double rounded(double v, DType d) {
  if (d.bits == 32) return static_cast<float>(v);
  if (d.is_float8()) return f8_to_f32(f32_to_f8(static_cast<float>(v), d.code), d.code);
  if (d.is_bfloat()) return bf16_to_f32(f32_to_bf16(static_cast<float>(v)));
  if (d.bits == 16) return f16_to_f32(f32_to_f16(static_cast<float>(v)));
  return v;
}

template <class T, class IntFn, class FloatFn>
Expr fold_binary(const Expr& a, const Expr& b, IntFn int_fn, FloatFn float_fn) {
  const IntImm *x = a.as<IntImm>(), *y = b.as<IntImm>();
  if (x && y) return int_imm(wrapped(int_fn(x->value, y->value), x->dtype), x->dtype);
  const FloatImm *u = a.as<FloatImm>(), *v = b.as<FloatImm>();
  if (u && v) return float_imm(rounded(float_fn(u->value, v->value), u->dtype), u->dtype);
  return nullptr;
}

template <class T, class Fn>
Expr compare(Expr a, Expr b, Fn fn, const char* what) {
  match_dtypes(a, b, what);
  const IntImm *x = a.as<IntImm>(), *y = b.as<IntImm>();
  if (x && y) return bool_imm(fn(x->value, y->value));
  const FloatImm *u = a.as<FloatImm>(), *v = b.as<FloatImm>();
  if (u && v) return bool_imm(fn(u->value, v->value));
  return make<T>(std::move(a), std::move(b));
}

int64_t wrapping(auto fn, int64_t x, int64_t y) {
  return static_cast<int64_t>(fn(static_cast<uint64_t>(x), static_cast<uint64_t>(y)));
}

bool is_float_value(const Expr& e, double v) {
  const FloatImm* f = e.as<FloatImm>();
  return f && f->value == v;
}

/// Whether a float is surely neither NaN, by which 0 is NaN too, nor infinity: one that was an integer is, where its dtype has all.
bool is_finite(const Expr& e) {
  const Cast* c = e.as<Cast>();
  return c && c->value->dtype.is_integer() && c->dtype.bits >= 32;
}

void need_divisor(const Expr& b, const char* what) {
  if (is_zero(b))
    fail({.what = text(what, " by the constant 0"),
          .needs = "a divisor that is not zero",
          .hint = "check how the divisor was computed"});
}

}  // namespace

Expr operator+(Expr a, Expr b) {
  match_dtypes(a, b, "addition");
  if (Expr e = fold_binary<Add>(
          a, b, [](int64_t x, int64_t y) { return wrapping(std::plus<uint64_t>(), x, y); }, std::plus<double>()))
    return e;
  if (is_zero(a) || is_float_value(a, 0)) return b;
  if (is_zero(b) || is_float_value(b, 0)) return a;
  return make<Add>(std::move(a), std::move(b));
}

Expr operator-(Expr a, Expr b) {
  match_dtypes(a, b, "subtraction");
  if (Expr e = fold_binary<Sub>(
          a, b, [](int64_t x, int64_t y) { return wrapping(std::minus<uint64_t>(), x, y); }, std::minus<double>()))
    return e;
  if (is_zero(b) || is_float_value(b, 0)) return a;
  return make<Sub>(std::move(a), std::move(b));
}

Expr operator*(Expr a, Expr b) {
  match_dtypes(a, b, "multiplication");
  if (Expr e = fold_binary<Mul>(
          a,
          b,
          [](int64_t x, int64_t y) { return wrapping(std::multiplies<uint64_t>(), x, y); },
          std::multiplies<double>()))
    return e;
  if (is_zero(a) || is_one(b) || is_float_value(b, 1)) return a;
  if (is_zero(b) || is_one(a) || is_float_value(a, 1)) return b;
  if (is_float_value(a, 0) && is_finite(b)) return a;
  if (is_float_value(b, 0) && is_finite(a)) return b;
  return make<Mul>(std::move(a), std::move(b));
}

Expr operator-(const Expr& a) {
  if (const IntImm* i = a.as<IntImm>())
    return int_imm(wrapped(static_cast<int64_t>(0 - static_cast<uint64_t>(i->value)), i->dtype), i->dtype);
  if (const FloatImm* f = a.as<FloatImm>()) return float_imm(-f->value, f->dtype);
  return constant(0, a->dtype) - a;
}

Expr div(Expr a, Expr b) {
  match_dtypes(a, b, "division");
  need_divisor(b, "division");
  if (is_float_value(b, 0))
    fail({.what = "division by the constant 0",
          .needs = "a divisor that is not zero",
          .hint = "check how the divisor was computed"});
  if (Expr e = fold_binary<Div>(
          a,
          b,
          [](int64_t x, int64_t y) { return y == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(x)) : x / y; },
          std::divides<double>()))
    return e;
  if (is_zero(a)) return a;
  if (is_one(b) || is_float_value(b, 1)) return a;
  return make<Div>(std::move(a), std::move(b));
}

Expr truncmod(Expr a, Expr b) {
  match_dtypes(a, b, "remainder");
  need_divisor(b, "remainder");
  const IntImm *x = a.as<IntImm>(), *y = b.as<IntImm>();
  if (x && y) return int_imm(y->value == -1 ? 0 : x->value % y->value, x->dtype);
  if (is_zero(a)) return a;
  if (is_one(b)) return int_imm(0, a->dtype);
  return make<Mod>(std::move(a), std::move(b));
}

Expr floordiv(Expr a, Expr b) {
  match_dtypes(a, b, "floordiv");
  need_divisor(b, "floordiv");
  if (a->dtype.is_float()) {
    const FloatImm *u = a.as<FloatImm>(), *v = b.as<FloatImm>();
    if (u && v && v->value != 0) return float_imm(std::floor(u->value / v->value), u->dtype);
  }
  const IntImm *x = a.as<IntImm>(), *y = b.as<IntImm>();
  if (x && y)
    return int_imm(
        y->value == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(x->value)) : floor_div(x->value, y->value),
        x->dtype);
  if (is_zero(a) || is_one(b)) return a;
  return make<FloorDiv>(std::move(a), std::move(b));
}

Expr floormod(Expr a, Expr b) {
  match_dtypes(a, b, "floormod");
  need_divisor(b, "floormod");
  const IntImm *x = a.as<IntImm>(), *y = b.as<IntImm>();
  if (x && y) return int_imm(y->value == -1 ? 0 : floor_mod(x->value, y->value), x->dtype);
  if (is_zero(a)) return a;
  if (is_one(b)) return int_imm(0, a->dtype);
  return make<FloorMod>(std::move(a), std::move(b));
}

Expr ceildiv(const Expr& a, const Expr& b) { return floordiv(a + (b - 1), b); }

Expr min(Expr a, Expr b) {
  match_dtypes(a, b, "min");
  if (Expr e = fold_binary<Min>(
          a, b, [](int64_t x, int64_t y) { return std::min(x, y); }, [](double x, double y) { return std::min(x, y); }))
    return e;
  if (a == b) return a;
  return make<Min>(std::move(a), std::move(b));
}
Expr max(Expr a, Expr b) {
  match_dtypes(a, b, "max");
  if (Expr e = fold_binary<Max>(
          a, b, [](int64_t x, int64_t y) { return std::max(x, y); }, [](double x, double y) { return std::max(x, y); }))
    return e;
  if (a == b) return a;
  return make<Max>(std::move(a), std::move(b));
}

Expr lt(Expr a, Expr b) { return compare<LT>(std::move(a), std::move(b), std::less<>(), "comparison"); }
Expr le(Expr a, Expr b) { return compare<LE>(std::move(a), std::move(b), std::less_equal<>(), "comparison"); }
Expr gt(Expr a, Expr b) { return compare<GT>(std::move(a), std::move(b), std::greater<>(), "comparison"); }
Expr ge(Expr a, Expr b) { return compare<GE>(std::move(a), std::move(b), std::greater_equal<>(), "comparison"); }
Expr eq(Expr a, Expr b) { return compare<EQ>(std::move(a), std::move(b), std::equal_to<>(), "comparison"); }
Expr ne(Expr a, Expr b) { return compare<NE>(std::move(a), std::move(b), std::not_equal_to<>(), "comparison"); }

static void need_bool(const Expr& e, const char* what) {
  if (!e->dtype.is_bool())
    fail({.what = text(what, " of a ", e->dtype), .needs = "bool operands", .hint = "compare with 0 first"});
}

Expr logical_and(Expr a, Expr b) {
  need_bool(a, "and");
  need_bool(b, "and");
  match_dtypes(a, b, "and");
  if (const IntImm* x = a.as<IntImm>()) return x->value ? b : a;
  if (const IntImm* y = b.as<IntImm>()) return y->value ? a : b;
  return make<And>(std::move(a), std::move(b));
}
Expr logical_or(Expr a, Expr b) {
  need_bool(a, "or");
  need_bool(b, "or");
  match_dtypes(a, b, "or");
  if (const IntImm* x = a.as<IntImm>()) return x->value ? a : b;
  if (const IntImm* y = b.as<IntImm>()) return y->value ? b : a;
  return make<Or>(std::move(a), std::move(b));
}
Expr logical_not(Expr a) {
  need_bool(a, "not");
  if (const IntImm* x = a.as<IntImm>()) return bool_imm(!x->value);
  return make<Not>(std::move(a));
}

Expr select(Expr condition, Expr true_value, Expr false_value) {
  need_bool(condition, "select");
  match_dtypes(true_value, false_value, "select");
  if (const IntImm* c = condition.as<IntImm>()) return c->value ? true_value : false_value;
  return make<Select>(std::move(condition), std::move(true_value), std::move(false_value));
}

Expr cast_to(DType dtype, Expr value) {
  if (value->dtype == dtype) return value;
  if (dtype.lanes == 1 && value->dtype.lanes == 1) {
    if (const IntImm* i = value.as<IntImm>()) {
      if (dtype.is_integer() || dtype.is_bool()) return int_imm(wrapped(i->value, dtype), dtype);
      if (dtype.is_float()) return float_imm(rounded(static_cast<double>(i->value), dtype), dtype);
    }
    if (const FloatImm* f = value.as<FloatImm>()) {
      // A narrower constant keeps its decimal value, as the text of a program shows it; it is rounded where it is used.
      if (dtype.is_float())
        return float_imm(dtype.bits > f->dtype.bits ? rounded(f->value, f->dtype) : f->value, dtype);
      if (dtype.is_integer()) return int_imm(float_to_int(f->value, dtype), dtype);
    }
  } else if (value->dtype.lanes == 1 && dtype.lanes > 1) {
    return make<Broadcast>(cast_to(dtype.element(), value), dtype.all_lanes());
  } else if (const Broadcast* b = value.as<Broadcast>();
             b && dtype.all_lanes() == value->dtype.all_lanes() && b->value->dtype.lanes == 1) {
    return make<Broadcast>(cast_to(dtype.element(), b->value), b->lanes);
  }
  return make<Cast>(dtype, std::move(value));
}

Expr call(DType dtype, std::string op, std::vector<Expr> args) {
  return make<Call>(dtype, std::move(op), std::move(args));
}

RangeRef range_of(Expr extent) {
  Expr zero = int_imm(0, extent->dtype);
  return make<Range>(zero, std::move(extent));
}

Expr lane_count(Lanes lanes, DType dtype) {
  Expr count = int_imm(lanes.count, dtype);
  return lanes.scalable ? make<Mul>(cast_to(dtype, call(i32, "tir.vscale", {})), count) : count;
}

std::optional<Lanes> as_lanes(const Expr& count) {
  auto small = [](const Expr& e) {
    auto v = as_int(e);
    return v && *v >= 1 && *v <= 65535 ? v : std::nullopt;
  };
  if (auto v = small(count)) return Lanes(static_cast<int>(*v));
  const Mul* product = count.as<Mul>();
  if (!product) return {};
  auto is_vscale = [](Expr e) {
    if (const Cast* c = e.as<Cast>()) e = c->value;
    const Call* c = e.as<Call>();
    return c && c->op == "tir.vscale";
  };
  for (const auto& [scale, factor] : {std::pair(product->a, product->b), std::pair(product->b, product->a)})
    if (auto v = small(factor); v && is_vscale(scale)) return Lanes(static_cast<int>(*v), true);
  return {};
}

NodeMap substitutions(const VarMap& map) {
  NodeMap nodes;
  for (const auto& [var, value] : map) {
    if (value->dtype != var->dtype)
      internal_error(
          text("the variable ", var, " of dtype ", var->dtype, " is replaced by ", value, " of dtype ", value->dtype));
    nodes.emplace(var, value);
  }
  return nodes;
}

bool uses_var(const NodeRef& root, const Var& var) {
  bool found = false;
  walk(root, [&](const Var& v) { found |= &v == &var; }, [&](const NodeBase&) { return !found; });
  return found;
}

std::vector<VarRef> vars_in(const NodeRef& root) {
  std::vector<VarRef> vars;
  walk(root, [&](const Var& v) { vars.push_back(ref(v)); });
  return vars;
}

template class Node<Var, ExprNode>;
template class Node<IntImm, ExprNode>;
template class Node<FloatImm, ExprNode>;
template class Node<StringImm, ExprNode>;
template class Node<Not, ExprNode>;
template class Node<Select, ExprNode>;
template class Node<Cast, ExprNode>;
template class Node<Buffer>;
template class Node<BufferLoad, ExprNode>;
template class Node<Call, ExprNode>;
template class Node<Let, ExprNode>;
template class Node<Ramp, ExprNode>;
template class Node<Broadcast, ExprNode>;
template class Node<Shuffle, ExprNode>;
template class Node<Range>;
template class Node<Array>;
template class Node<Dict>;
template class Node<Add, ExprNode>;
template class Node<Sub, ExprNode>;
template class Node<Mul, ExprNode>;
template class Node<Div, ExprNode>;
template class Node<Mod, ExprNode>;
template class Node<FloorDiv, ExprNode>;
template class Node<FloorMod, ExprNode>;
template class Node<Min, ExprNode>;
template class Node<Max, ExprNode>;
template class Node<EQ, ExprNode>;
template class Node<NE, ExprNode>;
template class Node<LT, ExprNode>;
template class Node<LE, ExprNode>;
template class Node<GT, ExprNode>;
template class Node<GE, ExprNode>;
template class Node<And, ExprNode>;
template class Node<Or, ExprNode>;

}  // namespace sator
