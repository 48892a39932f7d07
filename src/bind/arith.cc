// Facts about integer expressions and what follows from them: the analyzer that sator.arith is a face of.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "arith/analyzer.h"
#include "bind/node.h"
#include "bind/parts.h"

namespace sator::bind {

namespace {

using arith::Analyzer;

/// A bound as Python knows it; none where there is none.
nb::object bound(int64_t value) {
  return value == arith::kNegInf || value == arith::kPosInf ? nb::none() : nb::object(nb::int_(value));
}

void bind_var(Analyzer& analyzer, nb::handle var, nb::handle value) {
  const NodeRef node = node_of(var);
  const Var* v = node.as<Var>();
  if (!v) wrong_type(var, "a variable, tir.Var");
  const NodeRef given = nb::isinstance<Handle>(value) ? node_of(value) : nullptr;
  if (const Range* range = given.as<Range>())
    analyzer.bind(VarRef(v), RangeRef(range));
  else
    analyzer.bind(VarRef(v), expr_of(value, "a Range or an expression"));
}

/// A condition that an analyzer holds until it is let go.
struct Constraint {
  std::optional<Analyzer::Scope> scope;
};

/// A bound of Python's.
int64_t bound_of(nb::handle value) {
  const auto v = nb::cast<int64_t>(value);
  return v >= arith::kPosInf ? arith::kPosInf : v <= -arith::kPosInf ? arith::kNegInf : v;
}

}  // namespace

void add_arith(nb::module_& m) {
  nb::class_<Constraint>(m, "Constraint", "A condition that an Analyzer holds until it ends.")
      .def("end", [](Constraint& c) { c.scope.reset(); });
  nb::class_<Analyzer>(m, "Analyzer")
      .def(nb::init<>())
      .def("bind", bind_var)
      .def(
          "constrain",
          [](Analyzer& a, nb::handle e) {
            Constraint out;
            out.scope.emplace(a.with_constraint(expr_of(e)));
            return out;
          },
          nb::keep_alive<0, 1>())
      .def("bind_bounds",
           [](Analyzer& a, nb::handle var, nb::handle low, nb::handle high) {
             const NodeRef node = node_of(var);
             if (!node.as<Var>()) wrong_type(var, "a variable, tir.Var");
             a.bind(VarRef(node.as<Var>()), arith::Bounds{bound_of(low), bound_of(high)});
           })
      .def("bind_modular",
           [](Analyzer& a, nb::handle var, int64_t coeff, int64_t base) {
             const NodeRef node = node_of(var);
             if (!node.as<Var>()) wrong_type(var, "a variable, tir.Var");
             a.bind(VarRef(node.as<Var>()), arith::Modular{coeff, base});
           })
      .def_rw("chain_inequalities", &Analyzer::chain_inequalities)
      .def_rw("constrain_branches", &Analyzer::constrain_branches)
      .def("simplify", [](Analyzer& a, nb::handle e, int steps) { return to_python(a.simplify(expr_of(e), steps)); })
      .def("rewrite", [](Analyzer& a, nb::handle e) { return to_python(a.rewrite(expr_of(e))); })
      .def("canonical", [](Analyzer& a, nb::handle e) { return to_python(a.canonical(expr_of(e))); })
      .def("prove",
           [](Analyzer& a, nb::handle e, bool symbolic) {
             return a.prove(expr_of(e), symbolic ? arith::Strength::symbolic : arith::Strength::simple);
           })
      .def("prove_equal", [](Analyzer& a, nb::handle x, nb::handle y) { return a.prove_equal(expr_of(x), expr_of(y)); })
      .def("bounds",
           [](Analyzer& a, nb::handle e) {
             const arith::Bounds b = a.bounds(expr_of(e));
             return nb::make_tuple(bound(b.min), bound(b.max));
           })
      .def("modular", [](Analyzer& a, nb::handle e) {
        const arith::Modular m = a.modular(expr_of(e));
        return nb::make_tuple(m.coeff, m.base);
      });
}

}  // namespace sator::bind
