#pragma once

#include <optional>

#include "base/error.h"
#include "dataflow/counts/boxes.h"
#include "dataflow/counts/relation.h"

namespace sator::dataflow {

/// An interval that holds every value of e where variable i lies in values[i]; nothing if e or a part of it may pass 62 bits.
std::optional<Interval> bounds_of(const QuasiAffine& e, BoxView values);

/// The domain without its guards, as a box. Empty intervals where an extent is 0.
Box box_of(const Domain& domain);

/// Why an interconnect cannot be evaluated in 64 bits for PEs inside of `reach`; nothing if it can.
std::optional<Reason> overflow(const std::vector<Link>& interconnect, BoxView reach);

/// The same for all maps, guards and wires of a problem.
std::optional<Reason> overflow(const Problem& problem);

}  // namespace sator::dataflow
