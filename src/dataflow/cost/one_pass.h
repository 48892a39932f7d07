// Kernels whose two products run in one pass, tile by tile, as fused attention does.
#pragma once

#include <map>
#include <memory>

#include "dataflow/cost/cost.h"
#include "dataflow/counts/count_memo.h"

namespace sator::dataflow {

/// Costs kernels that run in one pass (Kernel::one_pass) on chips that keep what lies between two products (Chip::one_pass).
/// The kernel is Y[b,i,j] = sum over k of f(S)[b,i,k] * V[b,k,j] with S[b,i,k] = sum over d of X[b,i,d] * W[b,k,d]; f is what the
/// statements between make, reductions over k among them. It runs as blocks of rows (b, i): for each block, tile after tile along
/// k, one product, the statements between, the other product, whose sums stay until the block's last tile.
///
/// - Tiles of which `only_where` leaves nothing are left out; of the others all is computed.
/// - Blocks go to cores, the longest first, each to the core that is free first. A core starts one as another one ends.
/// - On a chip with barrier_cycles, where blocks are fewer than cores, each is cut along k in equal parts on cores of their own,
///   which put their sums (and two numbers per row) into the first memory that all share; after the barrier these are added up.
/// - Each tile multiplies sums of rows so far by a number per row: where a statement between reduces over k, its result changes.
/// - W and V come into the memories that all cores share once, if what blocks of one wave need has room in the innermost of them,
///   else once for each wave of blocks; into memories of a core for each block.
///
/// Rows of a block, columns of a tile and parts are those with the least latency of KernelCost's formula. A tile's time, and
/// what the PEs take and leave, are those of its products on one core with the chip's dataflow, counted exactly.
/// Source of the way it runs: Dao et al., FlashAttention, 2022; of parts along k: Dao et al., Flash-Decoding, 2023.
class OnePass {
 public:
  ///   by_class   the chip as it maps each class of products
  /// All of them outlive this.
  OnePass(const Chip& chip, const std::vector<Chip>& by_class, CountMemo& counts);
  ~OnePass();

  /// Nothing where the chip or the kernel has no such pass, or no tile fits the chip's memories.
  std::optional<KernelCost> cost(const Kernel& kernel);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sator::dataflow
