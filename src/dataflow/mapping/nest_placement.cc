// A nest that was found as a mapping.
#include "base/text.h"
#include "dataflow/mapping/nest_search.h"
#include "dataflow/mapping/sharing.h"

namespace sator::dataflow {

Placement NestSearch::build(const SpacePlan& plan, const Nest& found) const {
  const size_t memories = s_.chip.memories.size();
  Placement placement;
  placement.mapping.space = plan.space;
  placement.weight = weight_under(s_, plan);
  placement.held_since.assign(found.held_since.begin(), found.held_since.begin() + static_cast<long>(memories));
  rules::ArrayNest nest{.time = {}, .rows = plan.rows, .columns = plan.columns, .at_once = plan.at_once};
  nest.held_since.assign(placement.held_since.begin(), placement.held_since.end());
  for (size_t n = 0; n < beside_.standing.size(); ++n)
    if (found.outside >> n & 1) nest.stored_outside.push_back(beside_.standing[n].tensor);
  placement.stored_outside = nest.stored_outside;
  std::vector<int64_t> parent(s_.rank(), 0);
  std::vector<std::string> words;
  for (size_t d = 0; d < found.depth; ++d) {
    const BlockLoop& loop = found.loops[d];
    QuasiAffine e = floor_div(s_.from_zero(loop.iterator), loop.block);
    if (parent[loop.iterator] > 0) e = mod(e, ceil_div(parent[loop.iterator], loop.block));
    parent[loop.iterator] = loop.block;
    placement.mapping.time.push_back(e);
    nest.time.push_back({.loop = loop.iterator, .block = loop.block});
    words.push_back(loop.block == 1 ? s_.name(loop.iterator) : text(s_.name(loop.iterator), " by ", loop.block));
  }
  if (placement.mapping.time.empty()) placement.mapping.time.push_back(number(0));
  placement.words = text("for ", words.empty() ? "one stamp" : join(words, ", "), "; ", plan.words);
  placement.nest = std::move(nest);
  return placement;
}

}  // namespace sator::dataflow
