#pragma once

#include "tir/nodes.h"

namespace sator::passes {

/// The program with sums and products of float16 and bfloat16 kept in float32 until they are whole, as NumPy keeps them: each addition
/// would be rounded to 11 or 8 bits otherwise, and a sum of ones ends at 2,048 or 256. Blocks that compute from such an intermediate sum
/// compute in float32 too and round what they store.
///   f  what a formula was made into: the nests of its blocks stand one after the other in the root block
tir::PrimFuncRef with_wide_sums(const tir::PrimFuncRef& f);

}  // namespace sator::passes
