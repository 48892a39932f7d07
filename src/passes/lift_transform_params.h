#pragma once

#include "passes/pass.h"

namespace sator::passes {

/// What depends on the parameters alone moves out of the functions that take them (attribute `num_input`: how many of
/// their arguments are inputs; the next one is the parameter tuple) into one function `transform_params`, which runs
/// once when the model is loaded. The functions then take the tuple it returns. A weight's dequantize function stays:
/// the weight keeps its few bits.
ModuleRef lift_transform_params(const ModuleRef& module, const PassContext& ctx);

}  // namespace sator::passes
