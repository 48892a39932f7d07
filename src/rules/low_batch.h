// A product whose number of rows is known at run time only, by that number: one row, a few, many.
#pragma once

#include <string>
#include <vector>

#include "tir/nodes.h"

namespace sator::rules {

/// What a function is for some of its calls.
struct LowBatchBranch {
  std::string calls;      ///< "n == 1", for people; empty: all
  Expr condition;         ///< holds for them, unless an earlier branch's does; null: for all that are left
  tir::PrimFuncRef func;  ///< for these calls, not scheduled yet
};

/// The branches of C[i, j] += A[i, k] * B[j, k] with i in [0, n), n a symbolic size: n == 1, where n is that number; n <= 13,
/// which the attribute kMostRows says; and all others. One branch without a condition for every other function.
/// Source: MLC's pass LowBatchGemvSpecialize, which branches at 2 and 8 rows. Up to 13 rows, most of the time goes into
/// reading weights and making them of their codes.
std::vector<LowBatchBranch> low_batch_branches(const tir::PrimFuncRef& func);

/// One function with the parameters of `func` whose body is the first branch whose condition holds.
///   branches   those of low_batch_branches, each scheduled; the last one has no condition
tir::PrimFuncRef join_branches(const tir::PrimFuncRef& func, const std::vector<LowBatchBranch>& branches);

/// The most rows that a function is called with, where they are few: the name of the attribute.
inline constexpr const char* kMostRows = "sator.most_rows";
/// Rows are few up to here.
inline constexpr int64_t kFewRows = 13;

}  // namespace sator::rules
