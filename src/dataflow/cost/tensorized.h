// A kernel whose products run by calls of the chip's array: tensorized instead of bound.
#pragma once

#include <variant>

#include "base/error.h"
#include "dataflow/cost/scheduled.h"
#include "dataflow/programs/from_tir.h"

namespace sator::dataflow {

/// The nest with a loop along an axis that a mapping left empty: the longest of those that the chip's dataflow puts there.
///   nest   of the statement's product
rules::ArrayNest on_both_axes(rules::ArrayNest nest, const StatementCost& statement, const Chip& chip);

/// The nest on all of an array, with one loop along each axis: the longest one there; the others take turns, innermost.
/// Blocks in time grow to whole tiles.
rules::ArrayNest on_whole_array(rules::ArrayNest nest, int64_t rows, int64_t columns);

/// The nest with whole tiles of the array for each core: the mapping's own blocks where they are that, else the tiles are
/// dealt out as the mapper does, but for batches that it leaves to one core (sharing.h).
///   nest   of the statement's product, on the whole array of `chip`
rules::ArrayNest share_whole_tiles(rules::ArrayNest nest, const StatementCost& statement, const Chip& chip);

/// The function at the sizes of `facts`, with every product tiled as its cost's default mapping says, on the whole array, and
/// its inner loops replaced by the intrinsic of one stamp (rules/array_intrin.h). An intrinsic has one shape and computes whole
/// tiles: extents that are none are padded (rules/chip.h), and the zeros are multiplied. work_of reads from it the mapping that it
/// reads where loops of the same nest are bound to pe.x and pe.y.
///   cost   of the kernel by CostEngine, under mappings of the engine's own
///   →      the function, or why a product cannot be called so
std::variant<ScheduledFunction, Reason> tensorize_as_costed(const tir::PrimFuncRef& func, const FunctionFacts& facts,
                                                            const KernelCost& cost, const Chip& chip);

}  // namespace sator::dataflow
