// Constants as values of a dtype.
#pragma once

#include <optional>

#include "base/error.h"
#include "ir/expr.h"

namespace sator {

/// Why a dtype cannot hold a constant: it would wrap around, or become infinite. Nothing of an expression that is no constant.
std::optional<Reason> cannot_hold(const Expr& value, DType dtype);

}  // namespace sator
