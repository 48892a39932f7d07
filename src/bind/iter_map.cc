// Symbolic intervals and quasi-affine maps of iterators, for sator.arith. Python's classes are in sator/arith.py and
// sator/iter_map.py: sets come as (least, greatest, whether it is empty), None for an open end; sums of iterators as objects
// with TVM's attributes.
#include "arith/iter_map.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <unordered_map>

#include "arith/analyzer.h"
#include "arith/deduce_bound.h"
#include "arith/linear.h"
#include "bind/node.h"
#include "bind/parts.h"

namespace sator::bind {

namespace {

using arith::Analyzer;
using arith::IntSet;

VarRef var_of(nb::handle o) {
  const NodeRef node = node_of(o);
  const Var* v = node.as<Var>();
  if (!v) wrong_type(o, "a variable, tir.Var");
  return VarRef(v);
}

RangeRef range_of(nb::handle o) {
  const NodeRef node = nb::isinstance<Handle>(o) ? node_of(o) : nullptr;
  const Range* r = node.as<Range>();
  if (!r) wrong_type(o, "a Range");
  return RangeRef(r);
}

std::vector<VarRef> vars_of(nb::handle list) {
  std::vector<VarRef> out;
  for (nb::handle o : nb::iter(list)) out.push_back(var_of(o));
  return out;
}

std::vector<Expr> indices_of(nb::handle list) {
  std::vector<Expr> out;
  for (nb::handle o : nb::iter(list)) out.push_back(expr_of(o));
  return out;
}

arith::RangeMap ranges_of(nb::dict given) {
  arith::RangeMap out;
  for (auto [var, range] : given) out.emplace(var_of(var), range_of(range));
  return out;
}

arith::Region region_of(nb::handle list) {
  arith::Region out;
  for (nb::handle o : nb::iter(list)) out.push_back(range_of(o));
  return out;
}

IntSet set_of(nb::handle o) {
  if (nb::cast<bool>(o[2])) return IntSet::nothing();
  auto end = [](nb::handle e) { return e.is_none() ? Expr() : expr_of(e); };
  return IntSet::interval(end(o[0]), end(o[1]));
}

arith::SetMap sets_of(nb::dict given) {
  arith::SetMap out;
  for (auto [var, set] : given) out.emplace(var_of(var), set_of(set));
  return out;
}

nb::object set_to_python(const IntSet& s) { return nb::make_tuple(to_python(s.min), to_python(s.max), s.empty); }

nb::object sets_to_python(const std::optional<std::vector<IntSet>>& sets) {
  if (!sets) return nb::none();
  nb::list out;
  for (const IntSet& s : *sets) out.append(set_to_python(s));
  return std::move(out);
}

/// A condition; none for True.
Expr predicate_of(nb::handle o) {
  if (nb::isinstance<nb::bool_>(o) && nb::cast<bool>(o)) return nullptr;
  return expr_of(o);
}

/// Sums of iterators to Python: one object per iterator.
class ToPython {
 public:
  ToPython() : classes_(nb::module_::import_("sator.iter_map")) {}

  nb::object sum(const arith::IterSum& s) {
    nb::list args;
    for (const arith::IterSplit& a : s.args) args.append(split(a));
    return classes_.attr("IterSumExpr")(args, to_python(s.base));
  }

 private:
  nb::object split(const arith::IterSplit& s) {
    return classes_.attr("IterSplitExpr")(
        mark(s.source), to_python(s.lower_factor), to_python(s.extent), to_python(s.scale));
  }
  nb::object mark(const arith::IterMarkRef& m) {
    if (auto at = marks_.find(m.get()); at != marks_.end()) return at->second;
    nb::object made = classes_.attr("IterMark")(m->is_sum() ? sum(m->sum) : to_python(m->expr), to_python(m->extent));
    marks_.emplace(m.get(), made);
    return made;
  }

  nb::module_ classes_;
  std::unordered_map<const arith::IterMark*, nb::object> marks_;
};

/// And back.
class FromPython {
 public:
  arith::IterSum sum(nb::handle s) {
    arith::IterSum out;
    for (nb::handle a : nb::iter(s.attr("args"))) out.args.push_back(split(a));
    out.base = expr_of(s.attr("base"));
    return out;
  }

 private:
  arith::IterSplit split(nb::handle s) {
    return {.source = mark(s.attr("source")),
            .lower_factor = expr_of(s.attr("lower_factor")),
            .extent = expr_of(s.attr("extent")),
            .scale = expr_of(s.attr("scale"))};
  }
  arith::IterMarkRef mark(nb::handle m) {
    if (auto at = marks_.find(m.ptr()); at != marks_.end()) return at->second;
    const nb::object source = m.attr("source");
    const Expr extent = expr_of(m.attr("extent"));
    const NestedList nested;
    arith::IterMarkRef made(nb::hasattr(source, "args") && nb::hasattr(source, "base")
                                ? new arith::IterMark(sum(source), extent)
                                : new arith::IterMark(expr_of(source), extent));
    marks_.emplace(m.ptr(), made);
    return made;
  }

  std::unordered_map<PyObject*, arith::IterMarkRef> marks_;
};

arith::IterMapLevel level_of(int level) { return static_cast<arith::IterMapLevel>(level); }

nb::object detect_iter_map(nb::handle indices, nb::dict iters, nb::handle predicate, int level, bool simplify) {
  Analyzer analyzer;
  const arith::IterMap found = arith::detect_iter_map(
      indices_of(indices), ranges_of(iters), predicate_of(predicate), level_of(level), analyzer, simplify);
  nb::list sums;
  ToPython to;
  for (const arith::IterSum& s : found.indices) sums.append(to.sum(s));
  return nb::make_tuple(sums, found.error, to_python(found.padding_predicate));
}

nb::object subspace_divide(nb::handle bindings, nb::dict iters, nb::handle sub_iters, nb::handle predicate, int level,
                           bool simplify) {
  Analyzer analyzer;
  const arith::SubspaceDivision d = arith::subspace_divide(indices_of(bindings),
                                                           ranges_of(iters),
                                                           vars_of(sub_iters),
                                                           predicate_of(predicate),
                                                           level_of(level),
                                                           analyzer,
                                                           simplify);
  if (!d.ok()) return nb::none();
  nb::list out;
  for (const arith::Division& b : d.bindings)
    out.append(
        nb::make_tuple(to_python(b.outer), to_python(b.outer_extent), to_python(b.inner), to_python(b.inner_extent)));
  return nb::make_tuple(out, to_python(d.outer_predicate), to_python(d.inner_predicate));
}

nb::object inverse_affine_iter_map(nb::handle sums, nb::handle outputs) {
  FromPython from;
  std::vector<arith::IterSum> map;
  for (nb::handle s : nb::iter(sums)) map.push_back(from.sum(s));
  const arith::InverseResult inverse = arith::inverse_affine_iter_map(map, indices_of(outputs));
  if (!inverse.ok())
    fail({.what = text("the map has no inverse here: ", inverse.error),
          .needs = "what detect_iter_map gives with the level Bijective, and one output for each sum",
          .hint = "detect it again with check_level=IterMapLevel.Bijective"});
  nb::dict out;
  for (const auto& [var, value] : inverse.values) out[to_python(var)] = to_python(value);
  return std::move(out);
}

}  // namespace

void add_iter_map(nb::module_& m) {
  m.def("detect_iter_map", detect_iter_map);
  m.def("iter_map_simplify", [](nb::handle indices, nb::dict iters, nb::handle predicate, int level, bool simplify) {
    Analyzer analyzer;
    nb::list out;
    for (const Expr& e : arith::iter_map_simplify(
             indices_of(indices), ranges_of(iters), predicate_of(predicate), level_of(level), analyzer, simplify))
      out.append(to_python(e));
    return out;
  });
  m.def("normalize_to_iter_sum", [](nb::handle index, nb::dict iters) {
    Analyzer analyzer;
    return ToPython().sum(arith::normalize_to_iter_sum(expr_of(index), ranges_of(iters), analyzer));
  });
  m.def("normalize_iter_map_to_expr",
        [](nb::handle sum) { return to_python(arith::normalize_iter_map_to_expr(FromPython().sum(sum))); });
  m.def("subspace_divide", subspace_divide);
  m.def("inverse_affine_iter_map", inverse_affine_iter_map);
  m.def("detect_linear", [](nb::handle e, nb::handle vars) -> nb::object {
    const auto found = arith::detect_linear(expr_of(e), vars_of(vars));
    if (!found) return nb::none();
    nb::list out;
    for (const Expr& c : found->coefficients) out.append(to_python(c));
    out.append(to_python(found->base));
    return std::move(out);
  });
  m.def("detect_clip_bound", [](nb::handle e, nb::handle vars) {
    return sets_to_python(arith::detect_clip_bound(expr_of(e), vars_of(vars)));
  });
  m.def("deduce_bound", [](nb::handle var, nb::handle condition, nb::dict hints, nb::dict relaxed) {
    return set_to_python(arith::deduce_bound(var_of(var), expr_of(condition), sets_of(hints), sets_of(relaxed)));
  });
  m.def("estimate_region", [](const std::string& how, nb::handle region, nb::dict domains, nb::handle predicate) {
    Analyzer analyzer;
    const arith::Region ranges = region_of(region);
    const arith::RangeMap over = ranges_of(domains);
    const Expr holds = predicate_of(predicate);
    if (how == "strict") return sets_to_python(arith::estimate_region_strict_bound(ranges, over, holds, analyzer));
    if (how == "lower") return sets_to_python(arith::estimate_region_lower_bound(ranges, over, holds, analyzer));
    return sets_to_python(arith::estimate_region_upper_bound(ranges, over, holds, analyzer));
  });
  m.def("unite_lower_bound", [](nb::handle sets) {
    std::vector<IntSet> all;
    for (nb::handle s : nb::iter(sets)) all.push_back(set_of(s));
    return set_to_python(arith::unite_lower_bound(all));
  });
  m.def("vector_set", [](nb::handle e) { return set_to_python(arith::vector_set(expr_of(e))); });
  m.def("set_over",
        [](Analyzer& a, nb::handle e, nb::dict domains) { return set_to_python(a.set(expr_of(e), sets_of(domains))); });
}

}  // namespace sator::bind
