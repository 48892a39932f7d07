#pragma once

#include "dataflow/counts/relation.h"
#include "formats/timeloop/spec.h"

namespace sator::formats::timeloop {

/// The tiles of one level as TENET states a dataflow: PEs are the instances of `level`, a stamp is one of its tiles (the
/// temporal loops above it, outermost first), and each stamp runs all statement instances of the tile. The array is as
/// large as the spatial loops make it and has no wires. `assigned` counts the words of all tiles, `unique` the words that
/// come new into an instance: its fills, wherever Timeloop's own count keeps exactly what the last tile left.
///   level   -1: the arithmetic units, whose tiles are single points
dataflow::Problem as_relation(const Workload& workload, const Mapping& mapping, int level);

}  // namespace sator::formats::timeloop
