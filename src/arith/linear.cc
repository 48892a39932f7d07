#include "arith/linear.h"

#include <algorithm>

#include "arith/analyzer.h"
#include "arith/fold.h"
#include "arith/kind.h"

namespace sator::arith {
namespace {

/// coefficient * var + base; a null coefficient is 0.
struct Term {
  Expr coefficient, base;
};

bool uses(const Expr& e, const std::vector<VarRef>& vars) {
  bool found = false;
  walk(e, [&](const Var& v) { found |= std::ranges::find(vars, VarRef(&v)) != vars.end(); });
  return found;
}

std::optional<Term> linear_in(const Expr& e, const VarRef& var) {
  if (!uses_var(e, *var)) return Term{nullptr, e};
  Kind kind = kind_of(e);
  if (kind == Kind::var) return Term{int_imm(1, e->dtype), int_imm(0, e->dtype)};
  if (kind != Kind::add && kind != Kind::sub && kind != Kind::mul) return {};
  Operands o = operands(*e, kind);
  auto a = linear_in(o.a, var), b = linear_in(o.b, var);
  if (!a || !b) return {};
  if (kind == Kind::mul) {
    if (a->coefficient && b->coefficient) return {};
    const Term &with = a->coefficient ? *a : *b, &factor = a->coefficient ? *b : *a;
    return Term{fold(kind, with.coefficient, factor.base), fold(kind, with.base, factor.base)};
  }
  Expr zero = int_imm(0, e->dtype);
  return Term{fold(kind, a->coefficient ? a->coefficient : zero, b->coefficient ? b->coefficient : zero),
              fold(kind, a->base, b->base)};
}

}  // namespace

std::optional<Linear> detect_linear(const Expr& e, const std::vector<VarRef>& vars) {
  Linear out;
  Analyzer analyzer;
  Expr rest = e;
  for (const VarRef& v : vars) {
    auto term = linear_in(rest, v);
    if (!term) return {};
    Expr coefficient = term->coefficient ? analyzer.simplify(term->coefficient) : int_imm(0, e->dtype);
    if (uses(coefficient, vars)) return {};
    out.coefficients.push_back(coefficient);
    rest = analyzer.simplify(term->base);
  }
  out.base = rest;
  return out;
}

}  // namespace sator::arith
