#pragma once

#include "tir/nodes.h"

namespace sator::passes {

/// Memory that is only accessed in aligned vectors of one width gets elements of that width:
///   A[i * 4 : i * 4 + 4] of float32 [16]   =>   A[i * 4 / 4] of float32x4 [4]
struct VectorElements {
  bool parameters = true;    ///< also where an argument names the memory
  bool scalar_reads = true;  ///< also where single elements are read: they are taken out of their vector
};
tir::PrimFuncRef with_vector_elements(const tir::PrimFuncRef& func, const VectorElements& options);

}  // namespace sator::passes
