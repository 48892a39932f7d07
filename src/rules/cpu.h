// Default schedules for CPUs.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "ir/module.h"
#include "target/cpu.h"

namespace sator::rules {

/// Told for each function and rule in turn why the rule declined, or nothing where it was applied.
using ExplainSchedule =
    std::function<void(std::string_view function, std::string_view rule, const std::optional<Reason>& declined)>;

/// Schedules every tensor function that is not scheduled yet (`tir.is_scheduled`) for a level, by the first rule of
/// cpu_rules() that takes it.
ModuleRef schedule_for_cpu(const ModuleRef& module, const target::CpuLevel& level, const ExplainSchedule& explain = {});

}  // namespace sator::rules
