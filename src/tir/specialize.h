// A function for given values of some of its parameters.
#pragma once

#include "tir/nodes.h"

namespace sator::tir {

/// The function with values for scalar parameters, which it then no longer has, and with the shapes, strides and offsets of
/// `buffers` for buffer parameters: sizes that these tell are put in everywhere, and constants folded.
/// Errors: what is no parameter of the kind; a buffer of another rank or dtype, or with sizes that contradict each other.
PrimFuncRef specialize(const PrimFuncRef& func, const VarMap& values,
                       const std::unordered_map<VarRef, BufferRef>& buffers);

}  // namespace sator::tir
