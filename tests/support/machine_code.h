// Whether a function computes as machine code what the interpreter says.
#pragma once

#include "support/random_arguments.h"

namespace sator::test {

/// 64 ulps of the dtype: for programs whose reductions are short.
double some_ulps(const std::string& name, DType dtype);

/// What differs between the interpreter's results for `func` and those of the lowered function, by the interpreter and as
/// machine code of every level of this CPU, on random data; in words, empty if nothing does. Errors of the lowering and of
/// code generation that are the user's come as Error.
///   ran  whether results were compared: the function may be too large, or at fault itself
std::string machine_difference(const tir::PrimFuncRef& func, uint64_t seed, const Allowed& allowed = some_ulps,
                               bool* ran = nullptr);

}  // namespace sator::test
