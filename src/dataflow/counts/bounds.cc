#include "dataflow/counts/bounds.h"

#include "base/text.h"

namespace sator::dataflow {

namespace {

constexpr Wide kLargestBound = Wide{1} << 62;

Reason too_large(std::string_view what) {
  return {.what = text("a value of ", what, " does not fit 62 bits"),
          .needs = "coordinates below 2^62",
          .hint = "use smaller extents or coefficients"};
}

}  // namespace

std::optional<Interval> bounds_of(const QuasiAffine& e, BoxView values) {
  Wide lo = e.constant, hi = e.constant;
  for (const Term& t : e.terms) {
    Interval atom;
    if (t.division) {
      std::optional<Interval> inner = bounds_of(t.division->inner, values);
      if (!inner) return std::nullopt;
      const int64_t m = t.division->divisor;
      atom = {floor_quotient(inner->lo, m), floor_quotient(inner->hi, m)};
      if (t.division->remainder)
        atom = atom.lo == atom.hi ? Interval{inner->lo - atom.lo * m, inner->hi - atom.lo * m} : Interval{0, m - 1};
    } else {
      atom = values[static_cast<size_t>(t.variable)];
    }
    const Wide a = static_cast<Wide>(t.coefficient) * atom.lo, b = static_cast<Wide>(t.coefficient) * atom.hi;
    lo += std::min(a, b);
    hi += std::max(a, b);
    // Partial sums are what evaluation goes through.
    if (lo <= -kLargestBound || hi >= kLargestBound) return std::nullopt;
  }
  return Interval{static_cast<int64_t>(lo), static_cast<int64_t>(hi)};
}

Box box_of(const Domain& domain) {
  Box box;
  for (size_t i = 0; i < domain.extent.size(); ++i)
    box.push_back({domain.lower[i], domain.lower[i] + domain.extent[i] - 1});
  return box;
}

std::optional<Reason> overflow(const std::vector<Link>& interconnect, BoxView reach) {
  // A free variable is a coordinate of some PE.
  Interval widest = reach.empty() ? Interval{0, 0} : reach[0];
  for (Interval i : reach) widest = {std::min(widest.lo, i.lo), std::max(widest.hi, i.hi)};
  for (const Link& link : interconnect) {
    Box values(reach.begin(), reach.end());
    values.resize(values.size() + static_cast<size_t>(link.free_variables), widest);
    for (const Map* map : {&link.source, &link.guards})
      for (const QuasiAffine& e : *map)
        if (!bounds_of(e, values)) return too_large("a wire");
  }
  return {};
}

std::optional<Reason> overflow(const Problem& problem) {
  const Box domain = box_of(problem.statement.domain);
  if (is_empty(domain)) return {};
  Box reach;
  for (const QuasiAffine& e : problem.mapping.space) {
    std::optional<Interval> values = bounds_of(e, domain);
    if (!values) return too_large("the space map");
    reach.push_back(*values);
  }
  for (const QuasiAffine& e : problem.mapping.time)
    if (!bounds_of(e, domain)) return too_large("the time map");
  for (const QuasiAffine& e : problem.statement.domain.guards)
    if (!bounds_of(e, domain)) return too_large("a condition of the domain");
  for (const Access& access : problem.statement.accesses)
    for (const Map& reference : access.references)
      for (const QuasiAffine& e : reference)
        if (!bounds_of(e, domain)) return too_large(text("an index of tensor ", access.tensor));
  // Conditions of the PE set are asked of PEs that work and of those that the array has.
  const Box pes = box_of(problem.array.pes);
  for (const QuasiAffine& e : problem.array.pes.guards)
    if (!bounds_of(e, reach) || (!is_empty(pes) && !bounds_of(e, pes))) return too_large("a condition of the PE set");
  return overflow(problem.array.interconnect, reach);
}

}  // namespace sator::dataflow
