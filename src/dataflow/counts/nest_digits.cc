#include "dataflow/counts/nest_digits.h"

#include "dataflow/counts/boxes.h"

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

std::optional<int64_t> read_extents(const Domain& domain, IteratorDigits& digits) {
  if (!domain.guards.empty() || domain.extent.size() > kMostIterators) return {};
  Wide instances = 1;
  for (size_t x = 0; x < domain.extent.size(); ++x) {
    if (domain.extent[x] < 1) return {};
    digits[x].extent = domain.extent[x];
    instances *= domain.extent[x];
    if (instances >= Wide{1} << 61) return {};
  }
  return static_cast<int64_t>(instances);
}

std::optional<Grains> grains_of(const Access& access, const Domain& domain) {
  if (access.references.size() != 1) return {};
  Grains grains{};
  for (const QuasiAffine& e : access.references[0]) {
    if (e.is_constant()) continue;
    if (e.terms.size() != 1) return {};
    const std::optional<Part> part = part_of(e.terms[0], e.terms[0].division ? 0 : e.constant, domain);
    if (!part || part->modulus != kWhole || grains[part->iterator] != 0) return {};
    grains[part->iterator] = part->block;
  }
  return grains;
}

int64_t footprint_of(const Grains& grains, const Domain& domain) {
  int64_t elements = 1;
  for (size_t x = 0; x < domain.extent.size(); ++x)
    if (grains[x] > 0) elements *= ceil_div(domain.extent[x], grains[x]);
  return elements;
}

}  // namespace sator::dataflow
