#include "dataflow/programs/regions.h"

#include <algorithm>

#include "dataflow/counts/bounds.h"

namespace sator::dataflow {

namespace {

/// The domain as a box, narrowed by the guards that bound one iterator: constant + coefficient x >= 0.
Box narrowed(const Domain& domain) {
  Box box = box_of(domain);
  for (const QuasiAffine& guard : domain.guards) {
    if (guard.terms.size() != 1 || guard.terms[0].division) continue;
    const Term& t = guard.terms[0];
    Interval& values = box[static_cast<size_t>(t.variable)];
    if (t.coefficient > 0)
      values.lo = std::max(values.lo, -floor_quotient(guard.constant, t.coefficient));
    else if (t.coefficient < 0)
      values.hi = std::min(values.hi, floor_quotient(guard.constant, -t.coefficient));
  }
  return box;
}

std::vector<Box> boxes_around(const Access& access, const Domain& domain) {
  const Box values = narrowed(domain);
  std::vector<Box> boxes;
  for (const Map& reference : access.references) {
    Box& box = boxes.emplace_back();
    for (const QuasiAffine& e : reference) box.push_back(bounds_of(e, values).value_or(Interval{INT64_MIN, INT64_MAX}));
  }
  return boxes;
}

bool apart(const Box& a, const Box& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (intersect(a[i], b[i]).empty()) return true;
  return false;
}

}  // namespace

bool Regions::add(const Work& work, size_t a) {
  const Access& access = work.statement.accesses[a];
  const Domain& domain = work.statement.domain;
  std::vector<Touched>& before = before_[access.tensor];
  bool fresh = true;
  if (!before.empty()) {
    const std::vector<Box> touched = boxes_around(access, domain);
    for (const Touched& earlier : before)
      for (const Box& box : boxes_around(*earlier.access, *earlier.domain))
        fresh = fresh && std::all_of(touched.begin(), touched.end(), [&](const Box& b) { return apart(box, b); });
  }
  before.push_back({&access, &domain});
  return fresh;
}

}  // namespace sator::dataflow
