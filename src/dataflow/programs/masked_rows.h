// Kernels whose rows see a part of the columns, as causal attention does, cut into blocks of rows.
#pragma once

#include <optional>
#include <vector>

#include "dataflow/programs/masks.h"

namespace sator::dataflow {

/// The rows and columns of a kernel's masks: which iterators of each statement they are. All statements go over the rows, and
/// what each of them makes for one row depends on nothing that it makes for another.
struct MaskedRows {
  std::vector<size_t> row;                    // per statement of the kernel
  std::vector<std::optional<size_t>> column;  // likewise; none where a statement has no columns
  int64_t rows = 0, columns = 0;
};

/// Nothing where the kernel masks nothing (Work::only_where), or has statements that do not follow its rows.
std::optional<MaskedRows> masked_rows_of(const Kernel& kernel);

/// The kernel's work for some of its rows, over those columns of which one may count for one of them.
struct RowsOfKernel {
  Kernel kernel;  // its rows and columns begin where the whole kernel's do
  Span rows, columns;
};

/// The kernel in blocks of at most `rows` rows, in their order. Blocks for which nothing counts are left out.
std::vector<RowsOfKernel> in_blocks(const Kernel& kernel, const MaskedRows& masked, int64_t rows);

}  // namespace sator::dataflow
