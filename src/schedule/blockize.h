// A loop nest as a block of its own: what blockize does, and tensorize begins with.
#pragma once

#include "schedule/analysis.h"

namespace sator::schedule {

/// What a block and the loops around it become when the loops from one of them inward are put into an outer block.
struct Blockized {
  tir::BlockRealizeRef outer;  ///< takes the loop's place
  BlockHandle name;            ///< of the outer block
};
/// Why the loop and those below it cannot become a block; nothing if they can, and `out` is filled.
///   preserve_unit_iters  iterators of extent 1 stay in the indices
MaybeReason cannot_blockize(const Schedule& s, const Loop& loop, bool preserve_unit_iters, Blockized& out);

}  // namespace sator::schedule
