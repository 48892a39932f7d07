#pragma once

#include "dataflow/counts/relation.h"
#include "formats/maestro/network.h"

namespace sator::formats::maestro {

/// A layer's dataflow as relations. The statement runs over the layer's dimensions, outputs (Y', X') in place of the
/// input's Y and X. Space has a coordinate for every level of clusters: which unit works. Time has, level by level and
/// outermost first, the tile of each temporal map and the round of the spatial one, then the position inside of the
/// innermost tile. Units of a level hear what is sent to units before them (a bus).
/// Errors, with the line: what levels_of refuses; tiles that overlap or leave gaps (they would compute twice or not at
/// all); two dimensions that move together over the units of a level.
dataflow::Problem problem_of(const Layer& layer, int64_t pes);

}  // namespace sator::formats::maestro
