#include "dataflow/programs/tir_index.h"

#include "dataflow/counts/boxes.h"
#include "ir/visit.h"

namespace sator::dataflow {

namespace {

using Maybe = std::optional<QuasiAffine>;

constexpr int64_t kLargestNumber = int64_t{1} << 50;

/// e, if its numbers leave room for sums and products of their kind.
Maybe bounded(Maybe e) {
  if (!e || std::abs(e->constant) > kLargestNumber) return {};
  for (const Term& t : e->terms)
    if (std::abs(t.coefficient) > kLargestNumber) return {};
  return e;
}

Maybe scaled(const QuasiAffine& e, int64_t factor) {
  auto fits = [&](int64_t v) { return factor == 0 || std::abs(v) <= kLargestNumber / std::abs(factor); };
  if (!fits(e.constant)) return {};
  for (const Term& t : e.terms)
    if (!fits(t.coefficient)) return {};
  return e * factor;
}

Maybe divided(const Expr& a, const Expr& b, bool remainder, const VarValues& values) {
  Maybe numerator = to_quasi_affine(a, values), divisor = to_quasi_affine(b, values);
  if (!numerator || !divisor || !divisor->is_constant() || divisor->constant <= 0) return {};
  return remainder ? mod(*numerator, divisor->constant) : floor_div(*numerator, divisor->constant);
}

}  // namespace

std::optional<QuasiAffine> to_quasi_affine(const Expr& e, const VarValues& values) {
  auto sum = [&](const Expr& a, const Expr& b, int64_t sign) -> Maybe {
    Maybe x = to_quasi_affine(a, values), y = to_quasi_affine(b, values);
    if (!x || !y) return {};
    return bounded(*x + *y * sign);
  };
  return match(
      e,
      [&](const IntImm& n) -> Maybe { return bounded(number(n.value)); },
      [&](const Var& v) -> Maybe {
        auto at = values.find(ref(v));
        return at == values.end() ? Maybe() : Maybe(at->second);
      },
      [&](const Cast& n) -> Maybe { return n.dtype.is_integer() ? to_quasi_affine(n.value, values) : Maybe(); },
      [&](const Broadcast& n) -> Maybe { return to_quasi_affine(n.value, values); },
      [&](const Add& n) -> Maybe { return sum(n.a, n.b, 1); },
      [&](const Sub& n) -> Maybe { return sum(n.a, n.b, -1); },
      [&](const Mul& n) -> Maybe {
        Maybe x = to_quasi_affine(n.a, values), y = to_quasi_affine(n.b, values);
        if (!x || !y || (!x->is_constant() && !y->is_constant())) return {};
        return x->is_constant() ? scaled(*y, x->constant) : scaled(*x, y->constant);
      },
      [&](const FloorDiv& n) -> Maybe { return divided(n.a, n.b, false, values); },
      [&](const FloorMod& n) -> Maybe { return divided(n.a, n.b, true, values); },
      [&](const Div& n) -> Maybe { return n.dtype.is_integer() ? divided(n.a, n.b, false, values) : Maybe(); },
      [&](const Mod& n) -> Maybe { return divided(n.a, n.b, true, values); },
      [&](const Call& n) -> Maybe {
        // Index arithmetic writes x * 2^c, x / 2^c and x % 2^c also as shifts and masks.
        if (n.args.size() != 2) return {};
        auto by = as_int(n.args[1]);
        if (!by || *by < 0) return {};
        const bool shift = n.op == "tir.shift_right" || n.op == "tir.shift_left";
        if (shift && *by > 40) return {};
        if (n.op == "tir.shift_right") return divided(n.args[0], int_imm(int64_t{1} << *by, i64), false, values);
        if (n.op == "tir.bitwise_and" && (*by & (*by + 1)) == 0)
          return divided(n.args[0], int_imm(*by + 1, i64), true, values);
        Maybe x = to_quasi_affine(n.args[0], values);
        return n.op == "tir.shift_left" && x ? scaled(*x, int64_t{1} << *by) : Maybe();
      },
      [](const ExprNode&) -> Maybe { return {}; });
}

bool to_guards(const Expr& condition, const VarValues& values, std::vector<QuasiAffine>& guards) {
  // a - b >= least
  auto compare = [&](const Expr& a, const Expr& b, int64_t least) {
    Maybe x = to_quasi_affine(a, values), y = to_quasi_affine(b, values);
    if (!x || !y) return false;
    QuasiAffine guard = *x - *y - least;
    if (!guard.is_constant() || guard.constant < 0) guards.push_back(std::move(guard));
    return true;
  };
  return match(
      condition,
      [&](const IntImm& n) { return n.value != 0 || (guards.push_back(number(-1)), true); },
      [&](const And& n) {
        const bool a = to_guards(n.a, values, guards), b = to_guards(n.b, values, guards);
        return a && b;
      },
      [&](const LT& n) { return compare(n.b, n.a, 1); },
      [&](const LE& n) { return compare(n.b, n.a, 0); },
      [&](const GT& n) { return compare(n.a, n.b, 1); },
      [&](const GE& n) { return compare(n.a, n.b, 0); },
      [&](const EQ& n) { return compare(n.a, n.b, 0) && compare(n.b, n.a, 0); },
      [&](const Call& n) { return n.op == "tir.likely" && n.args.size() == 1 && to_guards(n.args[0], values, guards); },
      [](const ExprNode&) { return false; });
}

namespace {

Range reach(const QuasiAffine& e, const Domain& domain) {
  Range range{e.constant, e.constant};
  for (const Term& t : e.terms) {
    Range atom;
    if (!t.division) {
      const size_t x = static_cast<size_t>(t.variable);
      atom = {domain.lower[x], static_cast<Wide>(domain.lower[x]) + std::max<int64_t>(domain.extent[x], 1) - 1};
    } else {
      const Range inner = reach(t.division->inner, domain);
      const Wide m = t.division->divisor;
      auto floor_of = [&](Wide v) { return v / m - (v % m < 0); };
      atom = t.division->remainder ? Range{0, m - 1} : Range{floor_of(inner.lo), floor_of(inner.hi)};
    }
    const Wide a = atom.lo * t.coefficient, b = atom.hi * t.coefficient;
    range.lo += std::min(a, b);
    range.hi += std::max(a, b);
  }
  return range;
}

}  // namespace

int64_t largest(const QuasiAffine& e, const Domain& domain) { return narrow(reach(e, domain).hi).value_or(INT64_MAX); }
int64_t smallest(const QuasiAffine& e, const Domain& domain) { return narrow(reach(e, domain).lo).value_or(INT64_MIN); }

}  // namespace sator::dataflow
