// The loop nest of one block, whatever it computes: which iterator is a vector, which ones a register tile reuses, what runs
// in parallel.
#pragma once

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

/// Whether all operands of a block lie along its last iterator, or do not depend on it.
bool lies_along_last_iterator(const tir::Block& block);

}  // namespace sator::rules
