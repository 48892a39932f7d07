// The pass ApplyDefaultSchedule: the rules of the target that is compiled for.
#pragma once

#include "rules/cpu.h"

namespace sator::rules {

/// schedule_for_cpu at the best level of the context's target, this machine where there is none; schedule_for_gpu for an NVIDIA GPU, by
/// the rules that the option "ApplyDefaultSchedule.rules" names, or by those tried by default. A module with the attribute
/// kDefaultSchedule = False stays as it is, and any module where the context's option of that name is 0.
/// Errors: a target of another kind; rules for a CPU by name; as of gpu_rules_named.
ModuleRef apply_default_schedule(const ModuleRef& module, const passes::PassContext& ctx, const ScheduleLog& log);
/// The context's `explain` hears of each function.
ModuleRef apply_default_schedule(const ModuleRef& module, const passes::PassContext& ctx);
inline constexpr const char* kDefaultSchedule = "sator.default_schedule";

/// How a rule scheduled a function: block, rule, form, configuration, steps, and why other rules declined.
std::string words_of(const AppliedSchedule& schedule);

}  // namespace sator::rules
