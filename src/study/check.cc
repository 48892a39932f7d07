#include "study/check.h"

#include "base/error.h"
#include "dataflow/count_memo.h"
#include "dataflow/enumerate.h"

namespace sator::study {

using dataflow::Problem;
using dataflow::TensorCounts;

namespace {

/// The statement on the chip's array under a mapping, with the skew that belongs to the chip.
Problem problem_of(const dataflow::Statement& statement, const dataflow::Placement& placement, const Chip& chip) {
  Problem problem{
      statement, placement.mapping, {dataflow::Domain::box({"row", "column"}, {chip.rows, chip.columns}), {}}};
  if (chip.wires != Wires::none)
    problem.array.interconnect = {dataflow::link::shift({-1, 0}), dataflow::link::shift({0, -1})};
  if (chip.wires == Wires::systolic && !placement.skewed && !problem.mapping.time.empty())
    for (const dataflow::QuasiAffine& p : placement.mapping.space)
      problem.mapping.time.back() = problem.mapping.time.back() + p;
  return problem;
}

bool equal(const TensorCounts& a, const TensorCounts& b) {
  return a.total == b.total && a.assigned == b.assigned && a.unique == b.unique && a.temporal_hits == b.temporal_hits &&
         a.spatial_hits == b.spatial_hits && a.footprint == b.footprint;
}

}  // namespace

bool CountChecker::confirms(const dataflow::Statement& statement, const dataflow::StatementCost& cost) {
  if (!cost.counts || !cost.placement || cost.instances > limit_) return false;
  if (cost.counts->enumerated) return true;
  const Problem problem = problem_of(statement, *cost.placement, chip_);
  const std::string key = structure_key(problem);
  auto known = listed_.find(key);
  if (known == listed_.end()) {
    // An instance has a few accesses: room for their triples.
    auto counted = dataflow::enumerate(problem, limit_ * static_cast<int64_t>(statement.accesses.size() + 1));
    if (std::holds_alternative<Reason>(counted)) return false;
    known = listed_.emplace(key, std::get<dataflow::Counts>(std::move(counted))).first;
  }
  const dataflow::Counts& listed = known->second;
  bool same = listed.macs == cost.counts->macs && listed.space == cost.counts->space &&
              listed.time == cost.counts->time && listed.spacetime == cost.counts->spacetime &&
              listed.tensors.size() <= cost.counts->tensors.size();
  // What the engine takes into the statement (codes of weights that are made on the way) stands behind its own accesses.
  for (size_t t = 0; same && t < listed.tensors.size(); ++t) same = equal(listed.tensors[t], cost.counts->tensors[t]);
  if (!same)
    internal_error(text("counts of ", statement.name, " on ", chip_.name, " are not those of its listed instances"));
  return true;
}

bool CountChecker::confirms(const dataflow::Kernel& kernel, const dataflow::KernelCost& cost) {
  size_t next = 0, confirmed = 0;
  for (const dataflow::Work& work : kernel.work) {
    if (!product_of(work)) continue;
    while (next < cost.statements.size() && !cost.statements[next].on_array) ++next;
    if (next == cost.statements.size() || !confirms(work.statement, cost.statements[next++])) return false;
    ++confirmed;
  }
  return confirmed > 0;
}

}  // namespace sator::study
