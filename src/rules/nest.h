// The loop nest of one block, whatever it computes: which iterator is a vector, which ones a register tile reuses, what runs
// in parallel.
#pragma once

#include <cstdint>
#include <optional>

#include "rules/rule.h"

namespace sator::rules {

/// Schedules a block by how its accesses step along its iterators:
///   no reduction    the iterator along which the result lies is the vector; where an operand lies along another one, both go
///                   in tiles of 16 x 16, so that a cache line is used whole
///   a reduction     the same vector, where every operand lies along it or does not depend on it; the sums of a tile of 4 to 8
///                   values of another spatial iterator stay in registers, if an operand is the same for all of them
///   else            partial results of 16 or 64 lanes along a reduction iterator
/// Outer loops run in parallel; a reduction with few results is cut into parts, which are combined in order. How it is cut
/// follows from the extents alone, so results are the same for any number of threads.
/// What a primitive refuses stays undone: the block is correct at any rate.
void schedule_nest(schedule::Schedule& s, const schedule::BlockHandle& block, const target::CpuLevel& level);

/// Lanes of a vector of partial results, at every level: the order of a sum does not depend on it.
constexpr int64_t kLanes = 16;

/// Partial results along a reduction of this extent (nothing: symbolic): four vectors of kLanes, or up to seven where these leave no
/// rest, one of a short one. A vector with a rest asks for each lane.
int64_t lanes_along(std::optional<int64_t> extent);

/// Of a block that combines `lanes` partial results, the last axis of what it reads: the block in front of it that leaves kLanes of
/// them, which are combined vector by vector; null where there are no more. schedule_folded writes its loops, once it stands
/// where it is computed.
schedule::BlockHandle fold_lanes(schedule::Schedule& s, const schedule::BlockHandle& block, int64_t lanes);
void schedule_folded(schedule::Schedule& s, const schedule::BlockHandle& folded);

/// Whether all operands of a block lie along its last iterator, or do not depend on it.
bool lies_along_last_iterator(const tir::Block& block);

}  // namespace sator::rules
