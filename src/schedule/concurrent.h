// Whether the iterations of a loop may run at the same time: what parallel, vectorize and bind ask.
#pragma once

#include "schedule/schedule.h"

namespace sator::schedule {

/// Why the iterations of a loop cannot run at the same time; nothing if they can: every block below is complete or a
/// reduction, the loop feeds spatial axes alone (threadIdx.*, pe.* and core.* may feed reductions, whose sums they share), and no two
/// iterations write different values to an element that both can see.
///   how     "parallel", "vectorized", "bound": for the message
///   thread  the axis that the loop is bound to, else empty
MaybeReason cannot_run_at_once(const Schedule& s, const Loop& loop, const std::string& how,
                               const std::string& thread = "");

/// Why a loop of the function that runs its iterations at the same time, the first of them, must not: they would overwrite
/// each other's results.
MaybeReason cannot_stay_concurrent(const Schedule& s);

}  // namespace sator::schedule
