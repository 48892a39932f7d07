#pragma once

#include <string>
#include <vector>

#include "tir/nodes.h"

namespace sator::dataflow {

/// The function with each memory seen through one buffer: several buffers may lie over one pointer (T.decl_buffer and
/// T.Buffer with `data`), as the passes that flatten buffers leave them. The only one that is used stands for the others,
/// also as the parameter; where several are used, a flat one does.
/// Memory of the function's own where that cannot be stays as it is, and is noted.
/// Errors: of a parameter, buffers whose elements differ in width, or in dtype where several are used; a box that is
/// matched of one of several.
///   name   what messages call the function
tir::PrimFuncRef with_one_view_per_memory(const tir::PrimFunc& func, const std::string& name,
                                          std::vector<std::string>& notes);

}  // namespace sator::dataflow
