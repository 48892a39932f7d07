#pragma once

#include "dataflow/programs/work.h"

namespace sator::dataflow {

/// A kernel's statements with the dequantize statements of its products taken into them.
struct Merged {
  struct Made {
    size_t consumer, producer, access;  // of the consumer: the stream of made elements
  };
  std::vector<Work> works;
  std::vector<std::optional<Product>> products;  // per statement
  std::vector<bool> gone;                        // taken into another
  std::vector<Made> made;
};

/// Puts the dequantize statements that make what another statement reads in the places of these reads: a product has them
/// made on their way into the array, and a smaller statement (rows taken of a table) makes just what it reads. Reads that
/// are put in behind a product's own leave its factors and its output where they are.
/// On a chip with TENET's files products are those of i, j, k.
Merged merge_producers(const Kernel& kernel, const Chip& chip);

}  // namespace sator::dataflow
