// Reductions that may be taken apart: what a reduction block combines, told from its init and its update.
#pragma once

#include "schedule/analysis.h"

namespace sator::schedule {

/// A commutative, associative combination of tuples. A new one is a row of reducers().
struct Reducer {
  std::string name;
  size_t arity;  ///< values that are combined together: 1 for a sum, 2 for an argmax (index, value)
  std::vector<Expr> (*combine)(const std::vector<Expr>& acc, const std::vector<Expr>& x);
  bool (*is_identity)(const std::vector<Expr>& values);
};
const std::vector<Reducer>& reducers();

/// A reduction block read as `buffers[k][indices] = combine(buffers[..][indices], operands)[k]`.
struct Reduction {
  const Reducer* reducer = nullptr;
  std::vector<BufferRef> buffers;
  std::vector<Expr> indices;   ///< the same for all buffers
  std::vector<Expr> identity;  ///< what the init stores
  std::vector<Expr> operands;  ///< what an instance adds
};

/// Why the block is not of that form; nothing if it is, and `out` is filled.
MaybeReason not_a_known_reduction(const Schedule& s, int block_site, Reduction& out);
/// The same of any block; `at` is shown in the reason.
MaybeReason not_a_known_reduction(const tir::Block& block, const tir::Stmt& at, Reduction& out);

/// The stores of the combination, through let variables where several values depend on each other.
tir::Stmt reduction_update(const Reducer& reducer, const std::vector<BufferRef>& buffers,
                           const std::vector<Expr>& indices, const std::vector<Expr>& operands);

}  // namespace sator::schedule
