#pragma once

#include "passes/pass.h"

namespace sator::rules {

/// Weights that products read are stored in panels of 32 rows: W[n, x] as P[n // 32, x, n % 32], rows of zeros where 32 does
/// not divide n. All tensor functions that read such a parameter are rewritten by transform_layout (a table that is
/// gathered from as well), and the change of layout becomes a call in front of them, which LiftTransformParams moves to
/// the loading of the model. The same panel width serves every instruction-set level.
ModuleRef attach_param_layouts(const ModuleRef& module, const passes::PassContext& ctx);

}  // namespace sator::rules
