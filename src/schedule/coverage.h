// What of a buffer is surely written: what a copy of it may copy.
#pragma once

#include "schedule/analysis.h"

namespace sator::schedule {

/// Why one iteration of `location` (a loop or the scope block) might not write all of the box that the block's writes to
/// the buffer span there, as far as it lies in the buffer; empty if it writes all of it. What is written through a pointer
/// is what the block declares.
std::string leaves_unwritten(const Schedule& s, int block_site, const BufferRef& buffer, int location);

}  // namespace sator::schedule
