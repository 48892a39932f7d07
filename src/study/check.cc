#include "study/check.h"

#include "base/error.h"
#include "dataflow/cost/array_cost.h"
#include "dataflow/counts/count_memo.h"
#include "dataflow/counts/enumerate.h"

namespace sator::study {

using dataflow::Problem;
using dataflow::TensorCounts;

namespace {

bool equal(const TensorCounts& a, const TensorCounts& b) {
  return a.total == b.total && a.assigned == b.assigned && a.unique == b.unique && a.temporal_hits == b.temporal_hits &&
         a.spatial_hits == b.spatial_hits && a.footprint == b.footprint;
}

}  // namespace

bool CountChecker::confirms(const dataflow::StatementCost& cost) {
  const dataflow::Counts& counts = cost.tile ? cost.tile->counts : *cost.counts;
  if (counts.enumerated) return true;
  if ((cost.tile ? counts.macs : cost.instances) > limit_) return false;
  const dataflow::Statement& statement = cost.work.statement;
  const Problem problem = problem_at_pes(cost, chip_);
  const std::string key = structure_key(problem);
  auto known = listed_.find(key);
  if (known == listed_.end()) {
    // An instance has a few accesses: room for their triples.
    auto counted = dataflow::enumerate(problem, limit_ * static_cast<int64_t>(statement.accesses.size() + 1));
    if (std::holds_alternative<Reason>(counted)) return false;
    known = listed_.emplace(key, std::get<dataflow::Counts>(std::move(counted))).first;
  }
  const dataflow::Counts& listed = known->second;
  bool same = listed.macs == counts.macs && listed.space == counts.space && listed.time == counts.time &&
              listed.spacetime == counts.spacetime && listed.tensors.size() == counts.tensors.size();
  for (size_t t = 0; same && t < listed.tensors.size(); ++t) same = equal(listed.tensors[t], counts.tensors[t]);
  if (!same)
    internal_error(text("counts of ", statement.name, " on ", chip_.name, " are not those of its listed instances"));
  return true;
}

bool CountChecker::confirms(const dataflow::KernelCost& cost) {
  size_t confirmed = 0;
  for (const dataflow::StatementCost& statement : cost.statements) {
    if (!statement.on_array()) continue;
    if (!confirms(statement)) return false;
    ++confirmed;
  }
  return confirmed > 0;
}

}  // namespace sator::study
