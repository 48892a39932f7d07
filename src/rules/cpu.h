// Default schedules for CPUs.
#pragma once

#include "ir/module.h"

namespace sator::rules {

/// Schedules every tensor function that is not scheduled yet (`tir.is_scheduled`): element-wise producers are put into
/// their consumers, rows run in parallel, the innermost spatial loop is vectorised where it is contiguous.
ModuleRef schedule_for_cpu(const ModuleRef& module);

}  // namespace sator::rules
