#include "study/costing.h"

#include <algorithm>

#include "base/error.h"
#include "dataflow/cost/scheduled.h"
#include "dataflow/programs/row_groups.h"

namespace sator::study {

namespace {

/// By which two launches of a function are the same work.
std::string key_of(const dataflow::FunctionFacts& facts) {
  std::string key;
  for (const auto& [name, value] : facts.sizes) key += text(name, " = ", value, "\n");
  key += text(facts.sequences, "\n");
  for (const dataflow::ParamFacts& p : facts.params) key += text(name_of(p.kind), " ", p.bits, "\n");
  return key;
}

size_t hash_of(const tir::PrimFuncRef& func, const llm::KernelCall& call) {
  size_t hash = std::hash<tir::PrimFuncRef>()(func);
  auto mix = [&](int64_t v) { hash = (hash ^ static_cast<size_t>(v)) * 0x9e3779b97f4a7c15u + (hash >> 29); };
  for (const auto& [name, value] : call.sizes) mix(value);
  mix(call.sequences);
  for (const dataflow::ParamFacts& p : call.params) mix(p.bits * 8 + static_cast<int>(p.kind));
  return hash;
}

}  // namespace

std::string ChipCoster::schedule_of(const PhaseKernel& kernel, const dataflow::KernelCost& cost) {
  const bool chosen = std::any_of(cost.statements.begin(), cost.statements.end(), [](const auto& s) {
    return s.on_array() && s.placement->nest.has_value();
  });
  if (!kernel.func || !chosen) return "";
  auto [at, fresh] = schedules_.try_emplace({kernel.func, key_of(kernel.facts)});
  if (!fresh) return at->second;
  std::string other;
  try {
    dataflow::require_one_group(*kernel.func, kernel.facts);
    const dataflow::ScheduledFunction scheduled = schedule_as_costed(kernel.func, kernel.facts.name, cost);
    const dataflow::TirWork again = work_of(*scheduled.func, kernel.facts, &chip());
    other = difference(cost, engine_.cost(again.kernel, again.placements));
    at->second = scheduled.trace;
  } catch (const Error& error) {
    at->second = text("# not written as a schedule: ", error.reason.what, "\n");
  }
  if (!other.empty())
    internal_error(text("the schedule of ", kernel.facts.name, " on ", chip().name, " has other counts: ", other));
  return at->second;
}

/// Schemes share kernels: attention, norms, products of one precision.
const tir::PrimFuncRef& ChipCoster::first_like(const tir::PrimFuncRef& func) {
  auto [at, fresh] = like_.try_emplace(func, func);
  if (!fresh) return at->second;
  const uint64_t hash = structural_hash(func);
  for (auto [known, end] = firsts_.equal_range(hash); known != end; ++known)
    if (equal(known->second, func)) return at->second = known->second;
  firsts_.emplace(hash, func);
  return at->second;
}

const SweepCost& ChipCoster::cost_of(const llm::KernelCall& call) {
  const tir::PrimFuncRef& func = first_like(call.work);
  const size_t hash = hash_of(func, call);
  for (auto [known, end] = launches_.equal_range(hash); known != end; ++known)
    if (const Launch& l = known->second;
        l.func == func && l.sizes == call.sizes && l.params == call.params && l.sequences == call.sequences)
      return l.cost;
  const dataflow::FunctionFacts facts{call.function, call.sizes, call.params, call.sequences};
  SweepCost& sum = launches_.emplace(hash, Launch{func, call.sizes, call.params, call.sequences, {}})->second.cost;
  try {
    const dataflow::TirWork work = dataflow::work_of(*call.work, facts, &chip());
    const dataflow::KernelCost cost = engine_.cost(work.kernel, work.placements);
    sum = {.latency_cycles = cost.latency_cycles,
           .latency_s = cost.latency_s,
           .macs = cost.macs,
           .utilization = cost.utilization,
           .energy_j = cost.energy_j,
           .bound = cost.bound,
           .components = components_of(cost)};
    if (!cost.memories.empty()) sum.outer_bytes = cost.memories[0].read_bytes + cost.memories[0].write_bytes;
  } catch (const Error&) {
    sum.kernels_without_cost = 1;
  }
  return sum;
}

std::vector<LargerMemory> ChipCoster::larger_memories(std::span<const PhaseKernel> kernels, const PhaseResult& phase) {
  constexpr double kMostOfTheLatency = 0.98;
  if (chip().tenet || chip().tile) return {};
  struct Part {
    const PhaseKernel* kernel;
    double each_s = 0, all_s = 0;
  };
  std::vector<Part> parts;
  for (const PhaseKernel& k : kernels) {
    if (!k.refused.empty()) continue;
    try {
      const dataflow::KernelCost cost = engine_.cost(k.work.kernel, k.work.placements);
      if (cost.macs > 0) parts.push_back({&k, cost.latency_s, cost.latency_s * static_cast<double>(k.calls.count)});
    } catch (const Error&) {  // it has no cost in the phase either
    }
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.all_s > b.all_s; });
  double products_s = 0, covered_s = 0;
  for (const Part& p : parts) products_s += p.all_s;
  size_t dominating = 0;
  while (dominating < parts.size() && covered_s < kMostOfTheLatency * products_s)
    covered_s += parts[dominating++].all_s;
  parts.resize(dominating);

  std::vector<LargerMemory> all;
  for (size_t m = 1; m < chip().memories.size(); ++m) {
    const Memory& memory = chip().memories[m];
    if (!memory.capacity_bytes) continue;
    std::unique_ptr<dataflow::CostEngine>& engine = larger_[m];
    if (!engine) {
      Chip larger = chip();
      larger.memories[m].capacity_bytes = *memory.capacity_bytes + *memory.capacity_bytes / 10;
      engine = std::make_unique<dataflow::CostEngine>(std::move(larger), goal_);
    }
    LargerMemory result{.name = memory.name,
                        .capacity_bytes = *engine->chip().memories[m].capacity_bytes,
                        .latency_s = phase.cost.latency_s};
    for (const Part& p : parts) {
      try {
        const double each_s = engine->cost(p.kernel->work.kernel, p.kernel->work.placements).latency_s;
        result.latency_s -= std::max(0.0, p.each_s - each_s) * static_cast<double>(p.kernel->calls.count);
      } catch (const Error&) {  // a mapping for the larger memory that cannot be counted: nothing is known to be gained
      }
    }
    all.push_back(std::move(result));
  }
  return all;
}

PhaseResult ChipCoster::cost(std::span<const PhaseKernel> kernels,
                             const std::function<void(std::vector<KernelRow>&)>& add_rows) {
  std::vector<KernelRow> rows;
  for (const PhaseKernel& k : kernels) {
    auto refuse = [&](const std::string& why) {
      rows.push_back(uncosted_row(k.calls, text(k.calls.function, " has no cost: ", why)));
    };
    if (!k.refused.empty()) {
      refuse(k.refused);
      continue;
    }
    try {
      const dataflow::KernelCost cost = engine_.cost(k.work.kernel, k.work.placements);
      KernelRow row = kernel_row(k.calls, k.work.kernel, cost, chip(), checker_.confirms(cost));
      row.notes.insert(row.notes.end(), k.work.notes.begin(), k.work.notes.end());
      row.schedule = schedule_of(k, cost);
      rows.push_back(std::move(row));
    } catch (const Error& error) {
      refuse(error.reason.what);
    }
  }
  if (add_rows) add_rows(rows);
  return sum_of(std::move(rows), chip());
}

}  // namespace sator::study
