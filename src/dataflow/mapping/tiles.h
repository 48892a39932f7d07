#pragma once

#include <array>
#include <optional>

#include "dataflow/mapping/mapper.h"

namespace sator::dataflow {

/// The mapping of a product with the chip's dataflow and tiles of `tile` (i, j, k) in all memories below the outermost; the
/// loops over a batch and over tiles run in the order batch, i, j, k, outermost first, those over groups that are summed up later before k. What
/// of the kernel's own tensors has no room beside such tiles stands outside. A tile of 0, or one beyond the
/// product, is the whole extent. Rows of the array lie along i and columns along j where outputs stay, else rows along k;
/// several cores take blocks of output axes.
/// Nothing where the product is none of one i, one j and one k.
/// Errors: a tile below 0; what the tiles take does not fit a memory.
std::optional<Placement> tiled_placement(const Work& work, const Product& product, const Chip& chip, const Pace& pace,
                                         const Beside& beside, const std::array<int64_t, 3>& tile);

}  // namespace sator::dataflow
