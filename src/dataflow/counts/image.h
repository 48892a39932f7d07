#pragma once

#include <variant>
#include <vector>

#include "base/error.h"
#include "dataflow/counts/boxes.h"

namespace sator::dataflow {

/// Affine rows over digits: point[r] = constants[r] + coefficient[r] . digits.
using Rows = std::vector<std::vector<int64_t>>;

/// A box of digits and the constants that hold on it.
struct Patch {
  Box box;
  std::vector<int64_t> constants;  // one per row
};

/// Changes rows by subtracting multiples of others where that leaves fewer digits per row, so that digits
/// move one row each where possible. Points stay distinct if they were. `ordered`: only later rows change,
/// which also keeps the lexicographic order. The constants of all patches change along.
void separate_rows(Rows& rows, std::vector<Patch>& patches, bool ordered);

/// Divides a row by the greatest common divisor of all its steps and of the constants' differences.
void reduce_rows(Rows& rows, std::vector<Patch>& patches);

/// The points of a patch as disjoint or overlapping boxes, appended to `out`.
/// False if digits do not combine into intervals and listing them takes more than `limit` boxes.
bool image_boxes(const Rows& rows, const Patch& patch, size_t limit, BoxList& out);

/// Number of distinct points that the patches reach together.
/// Errors: the points are no boxes and too many to list.
std::variant<Wide, Reason> image_size(Rows rows, std::vector<Patch> patches);

}  // namespace sator::dataflow
