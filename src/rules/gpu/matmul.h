// The normal form of products: C[S, I, J] += A[S, I, K] * B[S, J, K], whatever axes the tensors have.
#pragma once

#include "rules/gpu/blocks.h"

namespace sator::rules::gpu {

/// The only reduction of the function, whose two operands and result use its iterators as a product does.
///   S  of both operands and the result     I  of A and the result
///   J  of B and the result                 K  of A and B: what is summed
/// Iterators of one value belong to none of them.
struct MatmulForm {
  BlockHandle block;
  DType in_dtype, out_dtype;
  arith::IndexMapRef block_map, a_map, b_map, c_map;  ///< the axes of each, fused to S, I, J, K
  std::vector<Expr> extents;                          ///< of S, I, J, K
};
/// Declines where the function is no such product.
MaybeReason find_matmul(Schedule& s, MatmulForm& out);
/// "C[S, I, J] += A[S, I, K] * B[S, J, K] with S = 1, I = n, J = 768, K = 256".
std::string describe(const MatmulForm& form);

/// Gives the block the loops S, I, J, K, and copies of its tensors in that order of axes in front and behind; extents are padded
/// to whole tiles.
///   tile  of I, J, K
/// Returns the four loops.
std::vector<Loop> to_normal_form(Schedule& s, const MatmulForm& form, const std::vector<int64_t>& tile);

}  // namespace sator::rules::gpu
