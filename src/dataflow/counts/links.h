#pragma once

#include <variant>
#include <vector>

#include "base/error.h"
#include "dataflow/counts/boxes.h"
#include "dataflow/counts/relation.h"

namespace sator::dataflow {

/// A wire as a constant shift: PE p is supplied by p + offset, for p in `when` (kAnyValue: no condition).
struct Hop {
  std::vector<int64_t> offset;
  Box when;
};

/// The interconnect as shifts, for PEs inside of `reach` on both ends.
/// Errors: a link that is no catalogue kind connects more PEs than `limit` can list.
std::variant<std::vector<Hop>, Reason> hops_of(const std::vector<Link>& interconnect, BoxView reach,
                                               size_t limit = 1 << 16);

}  // namespace sator::dataflow
