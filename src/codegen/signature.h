#pragma once

#include "runtime/bytecode.h"
#include "tir/nodes.h"

namespace sator::codegen {

/// What a kernel is called with, as variables of its function.
///   buffers  the data pointers, in the order of the parameters that are buffers or plain pointers
///   values   the scalar parameters, then the symbolic extents that are bound by a buffer's shape, each once, in the
///            order of first sight
///   offsets  element offsets of buffers: always 0, for a kernel gets the address of the first element
///   strides  variables that are strides of buffers, and those of a dense array, for that is what a kernel gets
struct KernelArguments {
  std::vector<VarRef> buffers, values, offsets;
  std::vector<std::pair<VarRef, Expr>> strides;
};

/// Errors: a symbolic extent that neither a scalar parameter nor a plain extent of a buffer gives; strides and offsets that no dense
/// array has.
KernelArguments kernel_arguments(const tir::PrimFunc& func);

/// The same for the virtual machine. Errors: as above.
runtime::KernelSignature kernel_signature(const tir::PrimFunc& func);

}  // namespace sator::codegen
