#pragma once

#include "tir/nodes.h"

namespace sator::tir {

/// A copy of a statement in which the nodes of `values` are replaced, and every other variable, loop, block name and buffer
/// that the statement itself defines is a new one: it may stand beside the original in one function, which binds each once.
Stmt fresh_copy(const Stmt& stmt, NodeMap values = {});

/// The same function with variables and buffers of its own: nothing that it defines is defined elsewhere.
PrimFuncRef fresh_function(const PrimFuncRef& func);

/// What a statement uses and does not define itself, in order of first sight.
struct FreeNames {
  std::vector<VarRef> vars;        ///< values, and pointers of buffers
  std::vector<BufferRef> buffers;  ///< over such pointers, declared outside
};
FreeNames free_names(const Stmt& stmt);

/// The variables that a function defines: parameters, sizes of its buffers, loops, bindings, allocations, thread axes.
std::unordered_set<const Var*> defined_in(const PrimFunc& func);

}  // namespace sator::tir
