// The space-time diagram: which PE gets its operands from where, stamp by stamp.
#pragma once

#include "dataflow/counts/space_time.h"
#include "study/svg_parts.h"

namespace sator::study {

/// Shares of a tensor's triples (PE, stamp, element) over the whole problem. They add up to 1.
struct SupplyShares {
  int64_t kept = 0, neighbour = 0, memory = 0;  // triples
  int64_t all() const { return kept + neighbour + memory; }
};
/// What neither the same PE had nor memory gave came from a neighbour alone.
SupplyShares shares_of(const dataflow::TensorCounts& tensor);

/// One field per tensor: PEs downwards, stamps to the right. A full square comes from memory, a small one from a neighbour, and a
/// line is kept: so an element that stays draws a line through time. The legend has the shares of the whole problem, from its counts;
/// last stands what the diagram leaves out.
std::string space_time_plot(const dataflow::SpaceTime& shown, const dataflow::Counts& counts, std::string_view about);

/// A figure as a file of its own, with the page's colours.
std::string svg_file(std::string_view figure);

}  // namespace sator::study
