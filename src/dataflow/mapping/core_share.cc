#include "dataflow/mapping/core_share.h"

#include <algorithm>

#include "dataflow/mapping/sharing.h"

namespace sator::dataflow {

CoreShare::CoreShare(const Work& work, const Product& product, const Chip& chip, const Pace& pace,
                     const std::vector<int64_t>& block)
    : work(work), product(product), chip(chip), pace(pace) {
  for (size_t x = 0; x < block.size(); ++x) {
    const int64_t whole = work.statement.domain.extent[x];
    extent.push_back(block[x]);
    parts.push_back(block[x] > 0 ? ceil_div(whole, block[x]) : 1);
    cores *= parts[x];
    shares_reduction |= parts[x] > 1 && !product.uses[x].output;
  }
  for (const Access& access : work.statement.accesses) {
    uint64_t indexes = 0;
    std::vector<size_t> iterators;
    bool plain = access.references.size() == 1;
    for (const Map& reference : access.references)
      for (const QuasiAffine& e : reference) {
        for (size_t x = 0; x < rank(); ++x)
          if (mentions(e, static_cast<int>(x))) indexes |= uint64_t{1} << x;
        if (e.is_constant()) continue;
        if (e.terms.size() == 1 && !e.terms[0].division)
          iterators.push_back(static_cast<size_t>(e.terms[0].variable));
        else
          plain = false;
      }
    indexes_.push_back(indexes);
    plain_.push_back(std::move(iterators));
    is_plain_.push_back(plain);
  }
  for (size_t a = 0; a < indexes_.size(); ++a) {
    footprint.push_back(elements(a, extent));
    double share = 1;
    for (size_t x = 0; x < rank(); ++x)
      if (relevant(a, x)) share *= static_cast<double>(parts[x]);
    spread.push_back(share);
  }
}

QuasiAffine CoreShare::from_zero(size_t x) const {
  const QuasiAffine value = variable(static_cast<int>(x)) - work.statement.domain.lower[x];
  return parts[x] > 1 ? mod(value, extent[x]) : value;
}

double CoreShare::elements(size_t access, const std::vector<int64_t>& block) const {
  if (!is_plain_[access]) return elements_of(work.statement.accesses[access], block);
  double elements = 1;
  for (size_t x : plain_[access]) elements *= static_cast<double>(block[x]);
  return elements;
}

double CoreShare::bits_of(size_t access) const {
  const int bits = work.operands[access].bits;
  return access == product.output ? std::max(pace.sum_bits, bits) : bits;
}

bool CoreShare::is_running_sum(size_t access) const {
  return access != product.output &&
         work.statement.accesses[access].tensor == work.statement.accesses[product.output].tensor;
}

double CoreShare::copies(size_t a, size_t m) const {
  return m < chip.memories.size() && !chip.memories[m].per_core ? spread[a] : static_cast<double>(cores);
}

}  // namespace sator::dataflow
