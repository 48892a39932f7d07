// The half of a study that costs kernels on a described chip.
#pragma once

#include <span>

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "dataflow/programs/from_tir.h"
#include "llm/workload.h"
#include "study/check.h"
#include "study/phase.h"

namespace sator::study {

/// A kernel of a phase: who calls it, and its work at the sizes of the phase.
struct PhaseKernel {
  KernelCalls calls;
  dataflow::TirWork work;
  tir::PrimFuncRef func;          // that the work was read from, if there is one
  dataflow::FunctionFacts facts;  // by which it was read
  std::string refused;            // why there is no work: the program says something that the engine does not count
};

/// Costs phases on one chip. Equal structures are counted, mapped and checked once, over all schemes of a study.
class ChipCoster {
 public:
  ///   goal   what mappings are chosen for
  explicit ChipCoster(const Chip& chip, const dataflow::Goal& goal = {})
      : engine_(chip, goal), checker_(chip), goal_(goal) {}
  const Chip& chip() const { return engine_.chip(); }

  /// A kernel that the engine refuses stays in the list without a cost, with its words. Where its function is known, the
  /// mapping is written as a schedule of it (KernelRow::schedule), and read again from there.
  /// Errors: InternalError if that program has other counts than the mapping.
  ///   add_rows  puts further rows between them before they are summed up
  PhaseResult cost(std::span<const PhaseKernel> kernels,
                   const std::function<void(std::vector<KernelRow>&)>& add_rows = {});

  /// The phase with each memory on the chip larger by a tenth, ports as they are: kernels that make up most of its latency
  /// are mapped anew, and keep their mapping where no better one is found. Nothing where mappings are not searched: on
  /// chips with TENET's files or tiles of the user's.
  ///   phase   of these kernels, as cost() gives it
  std::vector<LargerMemory> larger_memories(std::span<const PhaseKernel> kernels, const PhaseResult& phase);

  /// One launch, as a sweep takes it: nothing is checked or written as a schedule, and equal launches are costed once.
  /// Of a launch that the engine refuses: one kernel without a cost.
  const SweepCost& cost_of(const llm::KernelCall& call);

 private:
  /// A launch that was costed before.
  struct Launch {
    tir::PrimFuncRef func;  // the first one of equal text
    std::map<std::string, int64_t> sizes;
    std::vector<dataflow::ParamFacts> params;
    int64_t sequences = 1;
    SweepCost cost;
  };

  const tir::PrimFuncRef& first_like(const tir::PrimFuncRef& func);
  std::string schedule_of(const PhaseKernel& kernel, const dataflow::KernelCost& cost);

  dataflow::CostEngine engine_;
  CountChecker checker_;
  const dataflow::Goal goal_;
  std::map<size_t, std::unique_ptr<dataflow::CostEngine>> larger_;             // the chip with that memory larger
  std::map<std::pair<tir::PrimFuncRef, std::string>, std::string> schedules_;  // by function and facts
  std::unordered_multimap<size_t, Launch> launches_;                           // by hash
  std::map<tir::PrimFuncRef, tir::PrimFuncRef> like_;  // functions, by the first one of equal text
  std::multimap<uint64_t, tir::PrimFuncRef> firsts_;   // by their structural hash
};

}  // namespace sator::study
