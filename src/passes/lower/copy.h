#pragma once

#include "tir/nodes.h"

namespace sator::passes {

/// A copy of a statement in which the variables of `values` are replaced and every variable, loop and buffer that the
/// statement itself defines is a new one: each is bound once per function.
tir::Stmt fresh_copy(const tir::Stmt& stmt, const VarMap& values);

}  // namespace sator::passes
