#include "dataflow/nest_digits.h"

namespace sator::dataflow {

std::optional<Part> part_of(const Term& term, int64_t constant, const Domain& domain) {
  if (!term.division) {
    const auto x = static_cast<size_t>(term.variable);
    return Part{.iterator = x, .offset = constant + domain.lower[x]};
  }
  const QuasiAffine& inner = term.division->inner;
  if (constant != 0 || inner.terms.size() != 1 || inner.terms[0].coefficient != 1) return {};
  std::optional<Part> part = part_of(inner.terms[0], inner.constant, domain);
  if (!part || part->offset != 0) return {};
  int64_t reach = 0;
  if (__builtin_mul_overflow(part->block, term.division->divisor, &reach)) return {};
  if (!term.division->remainder) {
    part->block = reach;
  } else if (part->modulus == kWhole || part->modulus % reach == 0) {
    part->modulus = reach;
  } else if (part->modulus > reach) {
    return {};
  }
  return part;
}

}  // namespace sator::dataflow
