#pragma once

#include <optional>

#include "tir/nodes.h"

namespace sator::passes {

/// The expression for all `lanes` iterations of the loop at once, as wide (an invariant one is repeated); nothing if it
/// has no vector form.
std::optional<Expr> vectorized(const Expr& e, const tir::For& loop, int lanes);

}  // namespace sator::passes
