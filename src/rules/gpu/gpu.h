// Default schedules for NVIDIA GPUs: what TVM calls DLight.
#pragma once

#include <span>

#include "rules/cpu.h"
#include "schedule/schedule.h"
#include "target/nvidia.h"

namespace sator::rules {

/// What a rule works with, beside the schedule.
struct GpuContext {
  target::NvidiaGpu gpu;
  int64_t bucket = 4;  ///< rows to which LowBatchGEMV pads
};

/// What a rule found, for people: filled as far as it came.
struct GpuChoice {
  std::string block, form, configuration;  ///< as in AppliedSchedule
};

/// One row of the table of rules.
struct GpuRule {
  std::string_view name;  ///< TVM's
  std::string_view does;
  bool by_default = true;  ///< among the rules that are tried where nobody names any
  /// Why the rule does not take the function; nothing if it has scheduled it. What it left half done is thrown away.
  schedule::MaybeReason (*apply)(schedule::Schedule& s, const GpuContext& context, GpuChoice& choice);
};

/// In the order in which they are tried.
const std::vector<GpuRule>& gpu_rules();
/// The rules of these names, in that order; "LowBatchGEMV" and others as in gpu_rules(). No names: those tried by default.
/// Errors: no such rule; lists the nearest names.
std::vector<const GpuRule*> gpu_rules_named(std::span<const std::string> names);

/// Schedules every tensor function that is not scheduled yet (`tir.is_scheduled`) by the first of `rules` that takes it; one that
/// none takes, or whose target (attribute `target`, else `target`) is no NVIDIA GPU, stays as it is. `log` hears of each.
/// Errors: a function without a target where none is given.
ModuleRef schedule_for_gpu(const ModuleRef& module, const TargetConfigRef& target,
                           std::span<const GpuRule* const> rules, int64_t bucket = 4, const ScheduleLog& log = {});

}  // namespace sator::rules
