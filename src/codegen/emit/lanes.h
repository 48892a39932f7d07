#pragma once

#include <optional>
#include <vector>

#include "ir/expr.h"

namespace sator::codegen {

/// A vector of integers as one scalar plus a constant for each lane: what tells a contiguous access from a strided, a
/// repeated or a scattered one.
struct Lanes {
  Expr base;  ///< null: 0
  std::vector<int64_t> offsets;
};

/// Nothing where the lanes differ by something that is not known here.
std::optional<Lanes> lanes_of(const Expr& index);

}  // namespace sator::codegen
