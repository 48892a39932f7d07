#pragma once

#include "passes/pass.h"

namespace sator::passes {

enum class Inlined : uint8_t { all, private_ones };

/// Tensor functions in the place of their calls in others: as statements where nothing is returned, as values where a function is
/// bindings, choices and what it returns. A pointer argument is bound, or takes the place of the parameter; of a parameter that is a
/// buffer the argument is the data of one.
/// Calls stay of functions that call themselves, that are for another target, that return before their end, or whose blocks need
/// allocations. A private function of which no call is left goes.
ModuleRef inline_prim_funcs(const ModuleRef& module, Inlined which);

}  // namespace sator::passes
