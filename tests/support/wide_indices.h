// Whether the index arithmetic of a program stays within its dtypes, where its sizes are too large to run it.
#pragma once

#include <cstdint>
#include <string>

#include "tir/nodes.h"

namespace sator::test {

/// What is wrong, in words, on walks through the function on which each loop takes one of its values (mostly the first or the
/// last) and each number its exact value: an expression of integers has a value that its dtype does not hold, a loop ends
/// beyond its variable's dtype, an iterator leaves its domain, an index its dimension. Empty if nothing is. What depends
/// on the contents of buffers is left out.
///   sizes  the values of the symbolic sizes; others are left out
std::string index_mistake(const tir::PrimFunc& func, const std::vector<std::pair<VarRef, int64_t>>& sizes,
                          uint64_t seed, int walks = 48);

/// The same of `after`, which schedule steps or passes made of `before`, for random large sizes at which nothing is wrong with
/// `before`. Both have the same parameters.
///   ran  whether there were any
std::string new_index_mistake(const tir::PrimFunc& before, const tir::PrimFunc& after, uint64_t seed,
                              bool* ran = nullptr);

}  // namespace sator::test
