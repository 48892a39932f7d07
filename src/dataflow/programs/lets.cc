#include "dataflow/programs/lets.h"

#include <algorithm>

namespace sator::dataflow {

const Expr& Lets::add(const Expr& value, const Scope& scope) {
  lets_.push_back({value, scope.loops.size(), scope.domain.guards.size()});
  return value;
}

NamedValues Lets::in(const Scope& scope) const {
  NamedValues out;
  for (const Named& let : lets_) {
    double times = let.counted ? 0 : 1;
    if (let.guards == scope.domain.guards.size())
      for (size_t l = let.loops; l < scope.loops.size(); ++l)
        times /= static_cast<double>(std::max<int64_t>(1, scope.domain.extent[l]));
    out.times.emplace(let.value, times);
  }
  return out;
}

void Lets::note_counted(const NamedValues& left, const Scope& scope) {
  for (Named& let : lets_)
    if (let.guards == scope.domain.guards.size() && left.times.at(let.value) == 0) let.counted = true;
}

}  // namespace sator::dataflow
