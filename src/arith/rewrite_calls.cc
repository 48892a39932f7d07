// Rewriting what is not arithmetic: choices, calls, casts, lets.
#include <cmath>

#include "arith/analyzer.h"
#include "arith/fold.h"
#include "arith/numbers.h"
#include "arith/rewrite.h"
#include "arith/rules/tables.h"

namespace sator::arith {
namespace {

bool is_call(const Expr& e, std::string_view op) {
  const Call* c = e.as<Call>();
  return c && c->op == op;
}

}  // namespace

Expr Rewriter::visit_select(const Expr& e) {
  const auto& n = static_cast<const Select&>(*e);
  Expr condition = visit(n.condition), true_value, false_value;
  if (is_zero(condition)) return visit(n.false_value);
  if (is_one(condition)) return visit(n.true_value);
  {
    auto scope = analyzer_.with_constraint(condition);
    true_value = visit(n.true_value);
  }
  {
    auto scope = analyzer_.with_constraint(analyzer_.rewrite(make<Not>(condition)));
    false_value = visit(n.false_value);
  }
  Expr current = condition == n.condition && true_value == n.true_value && false_value == n.false_value
                     ? e
                     : Expr(make<Select>(condition, true_value, false_value));
  Expr r = rules::select_any().set.apply(current, *this);
  return r ? r : current;
}

Expr Rewriter::visit_if_then_else(const Expr& e) {
  const auto& n = static_cast<const Call&>(*e);
  Expr condition = visit(n.args[0]), then_value, else_value;
  if (is_zero(condition)) return visit(n.args[2]);
  if (is_one(condition)) return visit(n.args[1]);
  {
    auto scope = analyzer_.with_constraint(condition);
    then_value = visit(n.args[1]);
  }
  {
    auto scope = analyzer_.with_constraint(make<Not>(condition));
    else_value = visit(n.args[2]);
  }
  // if a: (if b: x else: k) else: k   =>   if a and b: x else: k
  if (const Call* inner = then_value.as<Call>(); inner && inner->op == n.op) {
    const Expr& k = inner->args[2];
    bool constants = (k.as<IntImm>() || k.as<FloatImm>()) && (else_value.as<IntImm>() || else_value.as<FloatImm>());
    if (constants && same(k, else_value))
      return call(n.dtype, n.op, {fold(Kind::logical_and, condition, inner->args[0]), inner->args[1], else_value});
  }
  if (condition == n.args[0] && then_value == n.args[1] && else_value == n.args[2]) return e;
  return call(n.dtype, n.op, {condition, then_value, else_value});
}

Expr Rewriter::visit_call(const Expr& e) {
  if (is_call(e, "tir.if_then_else") && static_cast<const Call&>(*e).args.size() == 3) return visit_if_then_else(e);
  Expr current = visit_other(e);
  const Call* c = current.as<Call>();
  if (!c || c->args.empty()) return current;
  const IntImm* i = c->args[0].as<IntImm>();
  if (c->op == "tir.likely") {
    if (i) return c->args[0];
    if (Expr known = by_assumption(c->args[0])) return known;
  } else if (c->op == "tir.shift_right" || c->op == "tir.shift_left") {
    const IntImm* by = c->args.at(1).as<IntImm>();
    if (!i || !by || by->value < 0 || by->value > 62) return current;
    auto v = c->op == "tir.shift_right" ? std::optional(i->value >> by->value)
                                        : checked_mul(i->value, int64_t{1} << by->value);
    if (v && fits(*v, c->dtype)) return int_imm(*v, c->dtype);
  } else if (c->op == "tir.ceil") {
    if (i) return cast_to(c->dtype, c->args[0]);
    if (const FloatImm* f = c->args[0].as<FloatImm>()) return float_imm(std::ceil(f->value), c->dtype);
    // ceil(log2(n)) of a constant is exact whatever log2 rounds to.
    if (is_call(c->args[0], "tir.log2"))
      if (const FloatImm* f = c->args[0].as<Call>()->args.at(0).as<FloatImm>(); f && f->value > 0)
        return float_imm(std::ceil(std::log2(f->value)), c->dtype);
  } else if (c->op == "tir.clz" && i) {
    int bits = i->dtype.bits;
    uint64_t v = static_cast<uint64_t>(i->value) & (bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
    int leading = 0;
    while (leading < bits && !((v >> (bits - 1 - leading)) & 1)) ++leading;
    return int_imm(leading, c->dtype);
  }
  return current;
}

Expr Rewriter::visit_cast(const Expr& e) {
  const auto& n = static_cast<const Cast&>(*e);
  Expr value = visit(n.value);
  if (const FloatImm* f = value.as<FloatImm>(); f && n.dtype == boolean) return bool_imm(f->value != 0);
  Expr result = cast_to(n.dtype, value);
  return value == n.value && kind_of(result) == Kind::cast ? e : result;
}

Expr Rewriter::visit_let(const Expr& e) {
  const auto& n = static_cast<const Let&>(*e);
  Expr value = visit(n.value);
  // Only what cannot grow the expression is put in the variable's place.
  if (value.as<IntImm>() || value.as<FloatImm>() || value.as<Var>()) {
    analyzer_.bind(n.var, value);
    return visit(n.body);
  }
  Expr body = visit(n.body);
  return value == n.value && body == n.body ? e : Expr(make<Let>(value, n.var, body));
}

}  // namespace sator::arith
