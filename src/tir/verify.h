// Whether a tensor program is well formed. The verifier runs after parsing and between passes.
#pragma once

#include "base/error.h"
#include "tir/nodes.h"

namespace sator::tir {

/// What a program may consist of: `scheduled` has blocks below one root block; `lowered` has none, and no regions of
/// buffers that stand for others; `any` leaves that open.
enum class Stage { any, scheduled, lowered };

/// Every mistake of the function, each with the nodes to blame and the program around them:
///   - a variable is used outside of its scope, or bound twice; a buffer's pointer is not in scope
///   - a block with iterators uses the variable of a loop around it
///   - operands, conditions, indices, stored values or loop bounds of a wrong dtype; calls that their row forbids
///   - accesses and regions with another number of indices than the buffer has dimensions
///   - bindings that do not fit a block's iterators; matched buffers that do not fit their region
///   - a division by the constant zero
///   - a statement that the stage forbids
std::vector<Reason> verify(const PrimFunc& func, Stage stage = Stage::any);

/// Throws the first mistake, and says how many there are.
void require_well_formed(const PrimFunc& func, Stage stage = Stage::any);

}  // namespace sator::tir
