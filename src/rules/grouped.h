// Products of which each row reads a matrix of its own: C[i, j] += A[i, k] * B[g[i], j, k], as experts of a language model are.
// Rows of one group that follow each other are one dense product, to which every rule for dense products applies.
#pragma once

#include <optional>
#include <vector>

#include "tir/nodes.h"

namespace sator::rules {

/// What a parameter of a grouped function is.
enum class GroupedParam {
  groups,  ///< g: the matrix of each row
  rows,    ///< [n, ...]: one row each
  stack,   ///< [matrices, ...]: one matrix each
  shared,  ///< a tensor that is the same for all rows
  scalar,  ///< no tensor
};

/// A function with a grouped product, seen from one group: rows that read the same matrix.
struct GroupedFunction {
  /// C[i, j] += A[i, k] * B[j, k] with the parameters of the function but g; stacks lose their first dimension.
  tir::PrimFuncRef one;
  /// The rows of a group, a variable of `one`; null where a group is one row: few rows, that are all of different groups or
  /// read so little that it does not matter.
  VarRef rows;
  Expr all_rows;                     ///< n, over the variables of the function
  std::vector<GroupedParam> params;  ///< of the function, in order
};

/// The line of a trace behind which its steps are those of `one`.
inline constexpr const char* kOneGroup = "# the rows of one group, as a function of their own:";

/// The function seen so; nothing if none of its products is grouped, or if more than rows and matrices depend on g.
std::optional<GroupedFunction> grouped_function(const tir::PrimFuncRef& func);

/// The function as a loop over its groups, runs of rows of the same g, whose body is `one`, scheduled.
tir::PrimFuncRef for_all_groups(const tir::PrimFuncRef& func, const GroupedFunction& grouped,
                                const tir::PrimFuncRef& one);

}  // namespace sator::rules
