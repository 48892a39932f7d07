// Tensor intrinsics: what a piece of hardware computes, and how it is called.
#pragma once

#include <string>

#include "tir/nodes.h"

namespace sator::schedule {

/// Two functions of the same parameters: `desc` says in loops and blocks what is computed, on buffers of the intrinsic's
/// shape; `impl` does it. Each is one block below the root, with its reads and writes. Strides and offsets of impl's
/// buffers that are variables take those of the part of the larger buffer that is worked on.
struct TensorIntrin {
  tir::PrimFuncRef desc, impl;
};
/// Adds a row to the table of intrinsics, or replaces the one of that name.
/// Errors: the two have different parameters; a body that is not one block.
void register_tensor_intrin(const std::string& name, tir::PrimFuncRef desc, tir::PrimFuncRef impl);
/// A registered row, else one of intrinsics/. Errors: no such intrinsic; lists the nearest names.
TensorIntrin tensor_intrin(const std::string& name);

/// The block of a desc or impl.
tir::BlockRef intrinsic_block(const tir::PrimFunc& func);

}  // namespace sator::schedule
