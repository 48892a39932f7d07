#pragma once

#include "dataflow/counts/count_memo.h"
#include "dataflow/programs/work.h"

namespace sator::dataflow {

/// All instances of a statement at one stamp of one place: how many there are and what they touch.
Problem at_once(const Work& work);

/// Elements of each access that the vector unit reads, its lanes along the last iterator (or the longest): a lane keeps what
/// it needs again at the next stamp, and what all lanes need at one stamp is read once.
std::vector<int64_t> reads_of_lanes(const Work& work, const Chip& chip, CountMemo& memo);

}  // namespace sator::dataflow
