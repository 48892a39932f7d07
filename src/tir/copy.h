#pragma once

#include "tir/nodes.h"

namespace sator::tir {

/// A copy of a statement in which the nodes of `values` are replaced, and every other variable, loop, block name and buffer
/// that the statement itself defines is a new one: it may stand beside the original in one function, which binds each once.
Stmt fresh_copy(const Stmt& stmt, NodeMap values = {});

}  // namespace sator::tir
