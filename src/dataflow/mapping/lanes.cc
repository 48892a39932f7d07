#include "dataflow/mapping/lanes.h"

#include "dataflow/counts/nest_forms.h"
#include "dataflow/mapping/at_pes.h"

namespace sator::dataflow {

Problem at_once(const Work& work) { return {work.statement, {{number(0)}, {}}, one_pe()}; }

std::vector<int64_t> reads_of_lanes(const Work& work, const Chip& chip, CountMemo& memo) {
  const Domain& domain = work.statement.domain;
  size_t last = domain.extent.size();
  for (size_t x = 0; x < domain.extent.size(); ++x) {
    if (domain.extent[x] < 2) continue;
    const bool longer = last == domain.extent.size() || domain.extent[x] > domain.extent[last];
    if (chip.lanes_along == LanesAlong::last || longer) last = x;
  }
  Problem lanes{work.statement, {{number(0)}, {}}, {Domain::box({"lane"}, {chip.vector.lanes}), {link::shift({-1})}}};
  if (last < domain.extent.size()) {
    const QuasiAffine x = variable(static_cast<int>(last)) - domain.lower[last];
    lanes.mapping.space = {mod(x, chip.vector.lanes)};
    lanes.mapping.time = {floor_div(x, chip.vector.lanes)};
  }
  for (size_t x = 0; x < domain.extent.size(); ++x)
    if (domain.extent[x] > 1 && x != last) lanes.mapping.time.push_back(variable(static_cast<int>(x)));
  // Lanes whose elements differ pass nothing on, and what all need one reads: together they are one place.
  if (auto merged = nest_counts({work.statement, {{number(0)}, lanes.mapping.time}, one_pe()})) {
    std::vector<int64_t> reads;
    for (const TensorCounts& t : merged->tensors) reads.push_back(t.unique);
    return reads;
  }
  const Counts* counts = memo.find(lanes);
  std::vector<int64_t> reads;
  for (const TensorCounts& t : counts ? counts->tensors : memo.of(at_once(work), "").tensors)
    reads.push_back(counts ? t.unique : t.total);
  return reads;
}

}  // namespace sator::dataflow
