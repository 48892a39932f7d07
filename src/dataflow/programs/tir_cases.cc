#include "dataflow/programs/tir_cases.h"

#include "ir/visit.h"

namespace sator::dataflow {

namespace {

constexpr size_t kMostCases = 16;

using Cases = std::vector<Guards>;
using MaybeCases = std::optional<Cases>;

/// a - b >= least, as a set of points; none at all where it never holds.
MaybeCases compared(const Expr& a, const Expr& b, int64_t least, const VarValues& values) {
  auto x = to_quasi_affine(a, values), y = to_quasi_affine(b, values);
  if (!x || !y) return {};
  QuasiAffine guard = *x - *y - least;
  if (!guard.is_constant()) return Cases{{std::move(guard)}};
  return guard.constant >= 0 ? Cases{{}} : Cases{};
}

MaybeCases both(const MaybeCases& a, const MaybeCases& b) {
  if (!a || !b || a->size() * b->size() > kMostCases) return {};
  Cases out;
  for (const Guards& x : *a)
    for (const Guards& y : *b) {
      out.push_back(x);
      out.back().insert(out.back().end(), y.begin(), y.end());
    }
  return out;
}

/// The two sets, which are disjoint, side by side.
MaybeCases either(MaybeCases a, const MaybeCases& b) {
  if (!a || !b || a->size() + b->size() > kMostCases) return {};
  a->insert(a->end(), b->begin(), b->end());
  return a;
}

struct Choice {
  NodeRef node;
  Expr condition, then_value, else_value;
};

/// The outermost choices of a value, from the left.
std::vector<Choice> choices_in(const Expr& value) {
  std::vector<Choice> found;
  walk(
      value,
      [&](const Call& c) {
        if (c.op == "tir.if_then_else" && c.args.size() == 3)
          found.push_back({ref(c), c.args[0], c.args[1], c.args[2]});
      },
      [&](const Select& s) { found.push_back({ref(s), s.condition, s.true_value, s.false_value}); });
  return found;
}

}  // namespace

std::optional<std::vector<Guards>> cases_of(const Expr& condition, bool outcome, const VarValues& values) {
  auto compare = [&](const Expr& a, const Expr& b, int64_t least) { return compared(a, b, least, values); };
  // a and b, or its opposite: the second part of the opposite leaves out what the first has.
  auto conjunction = [&](const Expr& a, const Expr& b, bool of_opposites) -> MaybeCases {
    const bool truth = !of_opposites;
    const MaybeCases x = cases_of(a, truth, values);
    if (outcome == truth) return both(x, cases_of(b, truth, values));
    return either(cases_of(a, !truth, values), both(x, cases_of(b, !truth, values)));
  };
  auto equality = [&](const Expr& a, const Expr& b, bool same) -> MaybeCases {
    if (outcome == same) return both(compare(a, b, 0), compare(b, a, 0));
    return either(compare(a, b, 1), compare(b, a, 1));
  };
  return match(
      condition,
      [&](const IntImm& n) -> MaybeCases { return (n.value != 0) == outcome ? Cases{{}} : Cases{}; },
      [&](const And& n) -> MaybeCases { return conjunction(n.a, n.b, false); },
      [&](const Or& n) -> MaybeCases { return conjunction(n.a, n.b, true); },
      [&](const Not& n) -> MaybeCases { return cases_of(n.a, !outcome, values); },
      [&](const LT& n) -> MaybeCases { return outcome ? compare(n.b, n.a, 1) : compare(n.a, n.b, 0); },
      [&](const LE& n) -> MaybeCases { return outcome ? compare(n.b, n.a, 0) : compare(n.a, n.b, 1); },
      [&](const GT& n) -> MaybeCases { return outcome ? compare(n.a, n.b, 1) : compare(n.b, n.a, 0); },
      [&](const GE& n) -> MaybeCases { return outcome ? compare(n.a, n.b, 0) : compare(n.b, n.a, 1); },
      [&](const EQ& n) -> MaybeCases { return equality(n.a, n.b, true); },
      [&](const NE& n) -> MaybeCases { return equality(n.a, n.b, false); },
      [&](const Call& n) -> MaybeCases {
        return n.op == "tir.likely" && n.args.size() == 1 ? cases_of(n.args[0], outcome, values) : MaybeCases();
      },
      [](const ExprNode&) -> MaybeCases { return {}; });
}

bool certainly_empty(const Guards& guards, const Domain& domain) {
  for (size_t i = 0; i < guards.size(); ++i) {
    if (largest(guards[i], domain) < 0) return true;
    for (size_t j = 0; j < i; ++j)
      if (QuasiAffine sum = guards[i] + guards[j]; sum.is_constant() && sum.constant < 0) return true;
  }
  return false;
}

std::vector<Arm> arms_of(const Expr& value, const VarValues& values, const Domain& domain, bool& undecided) {
  std::vector<Arm> arms = {{{}, value}};
  for (size_t a = 0; a < arms.size();) {
    const Arm arm = arms[a];
    bool split = false;
    for (const Choice& choice : choices_in(arm.value)) {
      const MaybeCases yes = cases_of(choice.condition, true, values), no = cases_of(choice.condition, false, values);
      if (!yes || !no || arms.size() + yes->size() + no->size() > kMostCases + 1) {
        undecided = true;
        continue;
      }
      std::vector<Arm> parts;
      for (bool outcome : {true, false})
        for (const Guards& guards : outcome ? *yes : *no) {
          Guards all = arm.guards;
          all.insert(all.end(), guards.begin(), guards.end());
          Guards around = domain.guards;
          around.insert(around.end(), all.begin(), all.end());
          if (certainly_empty(around, domain)) continue;
          const Expr& chosen = outcome ? choice.then_value : choice.else_value;
          parts.push_back({std::move(all), replaced(arm.value, {{choice.node, chosen}})});
        }
      arms.erase(arms.begin() + static_cast<long>(a));
      arms.insert(arms.begin() + static_cast<long>(a), parts.begin(), parts.end());
      split = true;
      break;
    }
    if (!split) ++a;
  }
  return arms;
}

}  // namespace sator::dataflow
