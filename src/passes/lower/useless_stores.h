// Stores that change nothing that is read later.
#pragma once

#include "passes/lower/lower.h"

namespace sator::passes {

/// What remains of a store or binding whose value nobody needs: the values' effects.
tir::Stmt effects_of(const std::vector<Expr>& values);
tir::Stmt effects_of(const tir::BufferStore& n);

/// Without stores of an element where it lies: A[i] = A[j] where i is j. `follow`: also of what the element is known to hold.
tir::Stmt without_known_stores(const tir::Stmt& body, bool follow);

/// Without stores that a later statement overwrites before anything reads them.
tir::Stmt without_overwritten_stores(const tir::Stmt& body);

/// Without stores into memory of the function's own after the last statement that reads it.
tir::Stmt without_unread_stores(const tir::Stmt& body);

}  // namespace sator::passes
