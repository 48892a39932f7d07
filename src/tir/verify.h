// Whether a tensor program is well formed. The verifier runs after parsing and between passes.
#pragma once

#include "base/error.h"
#include "tir/nodes.h"

namespace sator::tir {

/// What a program consists of, from what schedules work on to what machine code is made of. From `blocks` on each stage
/// has less than the one before, so that a program of a later stage is one of the earlier too. verify.cc has the table.
///   any        left open
///   scheduled  blocks below one root block
///   blocks     blocks with iterators, init and predicates
///   opaque     blocks without iterators: loops and the buffers that a block owns
///   loops      no blocks; buffers are allocated by T.allocate and have several dimensions
///   flat       buffers have one dimension
///   machine    no vectorized loops: what codegen/ translates
enum class Stage { any, scheduled, blocks, opaque, loops, flat, machine };
std::string_view stage_name(Stage stage);

/// Every mistake of the function, each with the nodes to blame and the program around them:
///   - a variable is used outside of its scope, or bound twice; a buffer's pointer is not in scope
///   - a block with iterators uses the variable of a loop around it
///   - operands, conditions, indices, stored values or loop bounds of a wrong dtype; calls that their row forbids
///   - accesses and regions with another number of indices than the buffer has dimensions
///   - bindings that surely leave their iterator's domain; bindings that do not fit a block's iterators; matched buffers that do not fit their region
///   - a division by the constant zero, where it can run
///   - a statement that the stage forbids
std::vector<Reason> verify(const PrimFunc& func, Stage stage = Stage::any);

/// Throws the first mistake, and says how many there are.
void require_well_formed(const PrimFunc& func, Stage stage = Stage::any);

}  // namespace sator::tir
