// Default schedules for CPUs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "passes/pass.h"
#include "target/cpu.h"

namespace sator::rules {

/// How a function was scheduled, for people and for replay.
struct AppliedSchedule {
  std::string function;
  std::string calls;  ///< for which these steps are, "n == 1"; empty: for all (low_batch.h)
  std::string rule;
  std::string block;  ///< that the rule is about
  std::string form;   ///< of a product: "C[S, I, J] += A[S, I, K] * B[S, J, K] with S = 1, I = n, J = 768, K = 256"
  std::string
      configuration;  ///< tile sizes and the like, "blocks of 32 x 64, 16 deep, ..."; empty: the rule has only one
  /// The steps from the phase-3 function to this one, those of packed parameters included (schedule/script.h runs them).
  std::string trace;
  struct Declined {
    std::string rule;
    Reason why;
  };
  std::vector<Declined> declined;  ///< the other rules, in the order in which they are tried
};
using ScheduleLog = std::function<void(const AppliedSchedule&)>;

/// Schedules every tensor function that is not scheduled yet (`tir.is_scheduled`) for a level, by the first rule of
/// cpu_rules() that takes it. Products of a symbolic number of rows are scheduled for one row, a few and many (low_batch.h);
/// `log` hears of each.
ModuleRef schedule_for_cpu(const ModuleRef& module, const target::CpuLevel& level, const ScheduleLog& log = {});

/// Where attach_param_layouts notes the steps that it took on a function: the name of the attribute.
inline constexpr const char* kLayoutTrace = "sator.layout_trace";

}  // namespace sator::rules
