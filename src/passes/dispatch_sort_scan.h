#pragma once

#include "passes/pass.h"

namespace sator::passes {

/// R.sort, R.argsort, R.topk and R.median for a CPU become calls of the runtime (runtime/builtins/sort.cc), where shapes and
/// dtypes are known; R.argmax and R.argmin become tensor programs that find the extreme and then its first position. Scans stay
/// tensor programs: they take one pass.
ModuleRef dispatch_sort_scan(const ModuleRef& module, const PassContext& ctx);

}  // namespace sator::passes
