// What a kernel that runs in one pass consists of.
#pragma once

#include <optional>
#include <vector>

#include "dataflow/programs/merged.h"

namespace sator::dataflow {

/// A kernel of two products, the second of which sums over what the first one makes (OnePass). Extents are those of its
/// batches, rows, columns of scores (the second product's reduction), the first one's reduction, and columns of the result.
struct PassForm {
  /// One of the products: which accesses are what.
  struct Part {
    size_t statement = 0;
    Product product;
    size_t input = 0, weight = 0, output = 0;
  };
  Merged merged;
  Part first, second;
  std::vector<size_t> before, between, after;  // other statements
  std::vector<size_t> rows;                    // iterators of the first product
  std::optional<size_t> column;                // likewise; none where there is one column
  int64_t batches = 1, row_count = 1, columns = 1, depth = 1, values = 1;
  bool reduces_between = false;

  const Work& work(const Part& part) const { return merged.works[part.statement]; }
};

/// Nothing where the kernel has another form: then it is no such pass.
std::optional<PassForm> pass_form_of(const Kernel& kernel, const Chip& chip);

/// A block of rows: how many, and the columns of scores of which one may count for one of them.
struct RowBlock {
  int64_t rows = 0, begin = 0, end = 0;
};

/// The rows of one batch in blocks of at most `rows`: of the last iterator of rows first, then of those around it.
std::vector<RowBlock> row_blocks(const PassForm& form, int64_t rows);

}  // namespace sator::dataflow
