#pragma once

#include "dataflow/counts/counts.h"

namespace sator::dataflow {

/// Counts by visiting every instance and every triple: the meaning of the counts, the oracle of the tests,
/// and the way out for problems of at most `limit` instances that boxes do not reach. Errors (as a value):
/// more points or more triples than `limit` allows. Cost: about a second per four million triples.
std::variant<Counts, Reason> enumerate(const Problem& problem, int64_t limit);

/// Counts::work_cycles alone; nothing if there are more than `limit` instances.
std::optional<int64_t> list_work_cycles(const Problem& problem, int64_t limit);

}  // namespace sator::dataflow
