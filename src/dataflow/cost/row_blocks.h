// Kernels whose rows see a part of the columns, on chips that do not keep what lies between two products: block of rows by block of rows.
#pragma once

#include "dataflow/cost/cost.h"
#include "dataflow/counts/count_memo.h"
#include "dataflow/programs/masked_rows.h"

namespace sator::dataflow {

/// Sizes of blocks that are tried: all rows, and powers of two below them, at most kMostBlocks blocks.
std::vector<int64_t> block_sizes(const MaskedRows& masked);
inline constexpr int64_t kLeastRows = 16, kMostBlocks = 32;

/// A block of rows, costed as a kernel of its own.
struct CostedRows {
  Span rows, columns;
  const KernelCost* cost = nullptr;
};

/// The mappings that were found for a block of rows: those of the same rows and somewhat fewer columns take them over.
class SearchedRows {
 public:
  SearchedRows(const RowsOfKernel& block, const MaskedRows& masked, const KernelCost& cost);
  bool suits(const RowsOfKernel& block) const;
  std::vector<Placement> placements_for(const Kernel& block, const Chip& chip, CountMemo& counts) const;

 private:
  int64_t rows_, columns_;
  double least_ = 0.5;  // of these columns; of those that cores share most: part of the cores would have no work
  std::vector<Placement> placements_;
  std::vector<std::string> statements_;
};

/// The kernel as one launch that goes through the blocks one after the other, each over its own columns: products, vector
/// work and traffic are those of all blocks, and array, vector unit and memories work on different parts of them.
/// Nothing where the blocks do not consist of the same statements, or cores meet at a barrier in each of several blocks.
///   blocks   of all rows, in their order
std::optional<KernelCost> added_up(const Kernel& kernel, const MaskedRows& masked,
                                   const std::vector<CostedRows>& blocks, const Chip& chip);

}  // namespace sator::dataflow
