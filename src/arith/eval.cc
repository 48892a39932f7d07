#include "arith/eval.h"

#include "arith/fold.h"
#include "arith/numbers.h"

namespace sator::arith {
namespace {

using Value = std::optional<int64_t>;

Value evaluate_call(const Call& c, const Values& values, int lane) {
  auto arg = [&](size_t i) { return i < c.args.size() ? evaluate(c.args[i], values, lane) : Value(); };
  if (c.op == "tir.likely") return arg(0);
  if (c.op == "tir.if_then_else" && c.args.size() == 3) {
    Value condition = arg(0);
    return condition ? arg(*condition ? 1 : 2) : Value();
  }
  if (c.args.size() != 2) return {};
  Value a = arg(0), b = arg(1);
  if (!a || !b) return {};
  if (c.op == "tir.bitwise_and") return *a & *b;
  if (c.op == "tir.bitwise_or") return *a | *b;
  if (c.op == "tir.bitwise_xor") return *a ^ *b;
  if (*b < 0 || *b > 62) return {};
  if (c.op == "tir.shift_left") return checked_mul(*a, int64_t{1} << *b);
  if (c.op == "tir.shift_right") return *a >> *b;
  return {};
}

}  // namespace

Value evaluate(const Expr& e, const Values& values, int lane) {
  Kind kind = kind_of(e);
  if (is_binary(kind)) {
    Operands o = operands(*e, kind);
    Value a = evaluate(o.a, values, lane);
    if (!a) return {};
    if (kind == Kind::logical_and && !*a) return 0;
    if (kind == Kind::logical_or && *a) return 1;
    Value b = evaluate(o.b, values, lane);
    return b ? fold_value(kind, *a, *b) : Value();
  }
  switch (kind) {
    case Kind::int_imm: return static_cast<const IntImm&>(*e).value;
    case Kind::var: {
      auto at = values.find(VarRef(static_cast<const Var*>(e.get())));
      return at == values.end() ? Value() : at->second;
    }
    case Kind::logical_not: {
      Value a = evaluate(static_cast<const Not&>(*e).a, values, lane);
      return a ? Value(!*a) : Value();
    }
    case Kind::select: {
      const auto& n = static_cast<const Select&>(*e);
      Value condition = evaluate(n.condition, values, lane);
      if (!condition) return {};
      return evaluate(*condition ? n.true_value : n.false_value, values, lane);
    }
    case Kind::cast: {
      Value v = evaluate(static_cast<const Cast&>(*e).value, values, lane);
      if (!v || e->dtype.is_float() || e->dtype.is_handle()) return {};
      Expr converted = cast_to(e->dtype.element(), int_imm(*v, i64));
      return as_int(converted);
    }
    case Kind::call: return evaluate_call(static_cast<const Call&>(*e), values, lane);
    case Kind::let: {
      const auto& n = static_cast<const Let&>(*e);
      Value v = evaluate(n.value, values, lane);
      if (!v) return {};
      Values inner = values;
      inner[n.var] = *v;
      return evaluate(n.body, inner, lane);
    }
    case Kind::ramp: {
      const auto& n = static_cast<const Ramp&>(*e);
      if (n.lanes.scalable) return {};
      Value base = evaluate(n.base, values, lane / n.lanes.count),
            stride = evaluate(n.stride, values, lane / n.lanes.count);
      if (!base || !stride) return {};
      Value step = checked_mul(*stride, lane % n.lanes.count);
      return step ? checked_add(*base, *step) : Value();
    }
    case Kind::broadcast: return evaluate(static_cast<const Broadcast&>(*e).value, values, 0);
    default: return {};
  }
}

}  // namespace sator::arith
