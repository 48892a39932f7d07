// Tensor functions for several experts, made of those for one: nothing that a scheme means is said twice.
#pragma once

#include <vector>

#include "frontend/model_config.h"
#include "tir/nodes.h"

namespace sator::llm {

/// The function for each of `experts` matrices: every tensor gets them as its first dimension.
///   [rows, words] -> [rows, cols]   =>   [experts, rows, words] -> [experts, rows, cols]
tir::PrimFuncRef for_each_expert(const tir::PrimFuncRef& func, int64_t experts);

/// The function with an expert for each row. Tensors of weights get the experts as their first dimension, and the numbers of
/// the rows' experts, int32 [n], are one more argument behind the others. In every block that reads weights the first iterator is
/// the row.
///   C[i, j] += A[i, k] * B[j, k]   =>   C[i, j] += A[i, k] * B[expert[i], j, k]
///   weights   which of the arguments are weights
tir::PrimFuncRef by_expert_of_row(const tir::PrimFuncRef& func, int64_t experts, const std::vector<size_t>& weights);

/// y[i, j] = sum over k of x[i, k] * w[j, k]: f32 [n, cols], f32 [rows, cols] -> f32 [n, rows].
tir::PrimFuncRef matmul_function(int64_t rows, int64_t cols);
/// y = x * p ("multiply") or x + p ("add"), p the same for all rows: f32 [n, cols], f32 | f16 | bf16 [numbers], numbers = cols
/// or 1 -> f32 [n, cols].
tir::PrimFuncRef vector_function(std::string_view op, int64_t cols, int64_t numbers, DType dtype);

/// The experts of each token, chosen from groups of consecutive ones: the `open_groups` whose best score (or whose best two
/// together) is largest, and of these groups the `per_token` experts of the largest scores. Of equal ones the first.
///   scores f32 [n, experts], what is added to them where experts are compared, f32 [experts]
///   →  f32 [n, per_token] the scores of those chosen, without the addition; int32 [n, per_token] which they are
tir::PrimFuncRef choose_experts_function(const ExpertsConfig& experts);

/// The rows of all experts in one order, those of an expert side by side: of m pairs of a token and an expert of its own, `share`
/// for each token, one after the other.
///   expert   int32 [m]   of each pair
///   →  int32 [m] the expert of each row, ascending; int32 [m] the token of each row; int32 [m] the row of each pair
/// Pairs of one expert keep their order.
tir::PrimFuncRef sort_by_expert_function(int64_t experts, int64_t share);

}  // namespace sator::llm
