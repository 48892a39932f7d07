#include "dataflow/cost/scheduled.h"

#include "base/error.h"
#include "base/text.h"
#include "schedule/schedule.h"

namespace sator::dataflow {

ScheduledFunction schedule_as_costed(const tir::PrimFuncRef& func, const std::string& name, const KernelCost& cost) {
  schedule::Schedule s(func, name);
  s.work_on(name);
  for (const StatementCost& statement : cost.statements) {
    if (!statement.on_array()) continue;
    const Placement& placement = *statement.placement;
    if (!placement.nest || !placement.weight) internal_error("a mapping that is not the engine's own");
    rules::ArrayNest nest = *placement.nest;
    nest.weight = statement.work.statement.accesses[*placement.weight].tensor;
    rules::schedule_on_array(s, statement.name, nest);
  }
  return {s.func(), s.trace().as_python()};
}

namespace {

std::string differs(const std::string& what, int64_t a, int64_t b) {
  return a == b ? "" : text(what, " ", a, " and ", b);
}

std::string difference(const Counts& a, const Counts& b) {
  std::vector<std::string> found = {
      differs("instances", a.macs, b.macs),
      differs("PEs", a.space, b.space),
      differs("stamps", a.time, b.time),
      differs("PEs at stamps", a.spacetime, b.spacetime),
      differs("tensors", static_cast<int64_t>(a.tensors.size()), static_cast<int64_t>(b.tensors.size()))};
  for (size_t t = 0; t < std::min(a.tensors.size(), b.tensors.size()); ++t) {
    const TensorCounts &x = a.tensors[t], &y = b.tensors[t];
    found.push_back(differs(text("total of ", x.tensor), x.total, y.total));
    found.push_back(differs(text("assigned of ", x.tensor), x.assigned, y.assigned));
    found.push_back(differs(text("unique of ", x.tensor), x.unique, y.unique));
    found.push_back(differs(text("temporal hits of ", x.tensor), x.temporal_hits, y.temporal_hits));
    found.push_back(differs(text("spatial hits of ", x.tensor), x.spatial_hits, y.spatial_hits));
    found.push_back(differs(text("footprint of ", x.tensor), x.footprint, y.footprint));
  }
  std::erase(found, "");
  return join(found, ", ");
}

}  // namespace

std::string difference(const KernelCost& a, const KernelCost& b) {
  std::vector<std::string> found = {
      differs("latency cycles", a.latency_cycles, b.latency_cycles),
      differs("MACs", a.macs, b.macs),
      differs("statements", static_cast<int64_t>(a.statements.size()), static_cast<int64_t>(b.statements.size()))};
  for (size_t s = 0; s < std::min(a.statements.size(), b.statements.size()); ++s)
    if (a.statements[s].on_array() && b.statements[s].on_array())
      found.push_back(difference(*a.statements[s].counts, *b.statements[s].counts));
  for (size_t r = 0; r < std::min(a.resources.size(), b.resources.size()); ++r)
    found.push_back(differs(text("cycles of ", a.resources[r].name), a.resources[r].cycles, b.resources[r].cycles));
  for (size_t m = 0; m < std::min(a.memories.size(), b.memories.size()); ++m) {
    found.push_back(
        differs(text("bytes read from ", a.memories[m].name), a.memories[m].read_bytes, b.memories[m].read_bytes));
    found.push_back(
        differs(text("bytes written to ", a.memories[m].name), a.memories[m].write_bytes, b.memories[m].write_bytes));
  }
  std::erase(found, "");
  return join(found, ", ");
}

}  // namespace sator::dataflow
